// Thread: what one thread of the process has flushed and not fenced yet, and how it flushes.
//
// What a flush does depends on the thread's way (Way) and the line's domain:
//
//                   inline          epoch                        decoupled
//   memory          executed        executed, or put off until   pushed to the FIFO, and executed
//                                   the fence (line_set.h)       by a flusher, or by the fence
//   device          sent to the     the same                     the same
//                   device
//   file            noted as a range, whatever the way
//   flush_on_fail   nothing, whatever the way
//   in no domain    executed, whatever the way: the line may be unmapped before the fence
//
// A fence 1 executes what was put off, and what waits in the FIFO unless that is left to flushers (flushers.h), 2 waits for what flushers have taken,
// 3 has the kernel write the ranges, 4 has the devices fence, 5 executes sfence.
//
// Why this keeps the CPU's semantics: a flush promises nothing before its thread's fence. A line that is flushed later holds what it held at its
// flush, or something newer, which could have become durable at any time anyway. So every state that a crash can leave is one that it could leave
// without the runtime. What is promised is promised by the fence, and all that was asked for is durable when it returns. clflush, which is ordered
// before later stores, is executed at once (flush_ordered).
//
// Signals: a handler may call all of this at any moment of its thread. While the thread changes where it flushes to or what it has put off,
// is_inside_ is set. Then a handler's flush is executed at once; and a handler's fence also executes what its thread has put off, and leaves it put
// off, and what its thread holds of its FIFO, which nobody else will execute (fifo.h).
//
// Invariants
//  1 what is put off or noted lies in a domain, or did when it was flushed. What is in no domain any more is dropped at the fence: whoever removed
//    the domain has executed it
//  2 what was put off or noted is executed inside the gate, so that a domain is removed while no thread is in the middle of that (runtime.h)
//  3 while pending() is 0, a locked instruction orders all that the thread has flushed
//
// Compiled code flushes and fences without a call where direct() is open (direct.h). It is closed while each flush has to be counted: in a trial of
// the policy, and if the process keeps statistics.
//  4 the range of an instruction is open while the last line was in it, in memory: that of the thread's own instruction if a flush is executed there;
//    that of clflush in any case
//  5 the table of lines that are put off is open while the thread's fence does not execute them, and the last line was where lines may be put off
//  6 fences are open while the way is inline: whatever else a fence has to do makes pending() 1
//
// Thread contract: for one thread and its signal handlers; for other threads as runtime.h says.
#pragma once
#include <atomic>

#include "base/error.h"
#include "base/single_writer.h"
#include "persist/direct.h"
#include "persist/domains.h"
#include "persist/fifo.h"
#include "persist/file_ranges.h"
#include "persist/line_set.h"
#include "persist/policy.h"
#include "sys/gate.h"
#include "sys/line_flush.h"
#include "sys/persistent.h"

namespace persist {

class Runtime;

// Counts of one thread, or of all. They only grow.
struct Counts {
  uint64_t asked_lines = 0;     // flushes of a line that were asked for
  uint64_t executed_lines = 0;  // written back by the thread itself, by instructions or a device
  uint64_t pushed_lines = 0;    // handed to flushers
  uint64_t fence_lines = 0;     // those of them that no flusher had taken, so that the fence executed them
  uint64_t noted_lines = 0;     // of files' mappings, for the kernel to write
  uint64_t outside_lines = 0;   // of those asked for: in no domain
  uint64_t fences = 0;
  uint64_t copied_lines = 0;  // written past the caches
  uint64_t sampled_stores = 0;

  void add(const Counts& other);
};

class alignas(base::kLineBytes) Thread {
 public:
  // `direct`: the variable of the thread that compiled code looks at, which outlives this; null: no code does.
  explicit Thread(Runtime& runtime, Direct* direct = nullptr);
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  // Flushes the line of this address. Cost: some 1 ns besides the instruction, if it is in the domain of the last flush (spillway bench persist).
  [[gnu::always_inline]] void flush(uintptr_t address) {
    const uintptr_t line = base::round_down(address, base::kLineBytes);
    if (!flush_quickly(line)) flush_otherwise(line);
  }
  // Flushes the lines of [address, address + bytes).
  void flush(uintptr_t address, size_t bytes);
  // As clflush: ordered before whatever the thread stores afterwards.
  void flush_ordered(uintptr_t address);
  // Returns when all that the thread has flushed is durable. Errors: EIO, ENOSPC: the kernel cannot write a file.
  base::Expected<void> fence();

  // Counts lines that were written past the caches, and need no flush.
  void note_copied(uint64_t lines) { base::increase(counts_.copied_lines, lines); }
  // Is given the address of a store now and then, for kProactive. Cost: some 10 ns.
  void sample_store(uintptr_t address);

  // 1 while the thread has flushed lines that no instruction has written back yet. mfence and locked instructions, which order flushes as sfence
  // does, then need a fence of the thread before them.
  uint32_t pending() const { return *pending_; }
  Direct& direct() { return direct_; }
  // The kernel's number of the thread.
  int id() const { return id_; }

  // Sets how the thread flushes from now on; what is put off stays put off. Takes memory for queues. Errors, after which the way is as before:
  // ENOMEM; EAGAIN: no flusher can be started.
  base::Expected<void> set_way(Way way);
  // How it flushes now: with auto, what that has decided; or decoupled while all threads that are auto hand over their lines (together.h).
  Way way() const { return is_together_ ? Way::kDecoupled : policy_.chosen(); }

  Counts counts() const;
  // Null as long as the thread has never handed lines over.
  Fifo* fifo() const { return fifo_.load(std::memory_order_acquire); }
  // The lines that the thread has stored to lately; null as long as its way has never been proactive.
  Fifo* recent() const { return recent_.load(std::memory_order_acquire); }

  // For another thread, while this one is kept out by its gate: executes what this one has put off or pushed in a domain that is being removed, and
  // leaves it put off.
  sys::Gate& gate() { return gate_; }
  void execute_for(const Domain& removed) const;
  // For the thread that has forked, in the child.
  void enter_child();
  // From now on the thread's compiled code has to call for each flush and fence.
  void close_direct();
  // Something that the thread has flushed in a file could not be written, and whoever asked for that cannot be told: the thread's next fence fails.
  // `error`: an errno value.
  void fail_next_fence(int error);

 private:
  // The domain that the last line was in, and what is done with lines there.
  enum class Action : uint8_t { kOutside, kExecute, kSet, kDevice, kDeviceSet, kPush, kNote, kNothing };
  struct Place {
    uintptr_t begin = 0, bytes = 0;
    uint64_t version = 0;  // of the domains when it was found
    Action action = Action::kOutside;
    Domain domain;  // its device is null unless its kind is kDevice
  };
  struct Inside;
  // Changed by the thread alone. Each line that is asked for is counted once, by what is done with it: so a flush changes one count, and their sum is
  // what was asked for.
  struct OwnCounts {
    std::atomic<uint64_t> now_lines{0};   // executed by the flush itself
    std::atomic<uint64_t> away_lines{0};  // put off, or with nothing to be done
    std::atomic<uint64_t> pushed_lines{0}, noted_lines{0};
    // Not in that sum: lines that were put off and have been executed; lines in no domain; pushed lines that a fence has executed.
    std::atomic<uint64_t> late_lines{0}, outside_lines{0}, fence_lines{0};
    std::atomic<uint64_t> fences{0}, copied_lines{0}, sampled_stores{0};

    uint64_t asked_lines() const {
      const auto get = [](const std::atomic<uint64_t>& count) {
        return count.load(std::memory_order_relaxed);
      };
      return get(now_lines) + get(away_lines) + get(pushed_lines) + get(noted_lines);
    }
  };
  [[gnu::always_inline]] bool is_known(uintptr_t line) const {
    return line - place_.begin < place_.bytes && place_.version == domains_.version();
  }
  // Flushes a line of memory that is in the same place as the line before. Returns false for all others, which are for flush_otherwise(). A handler
  // that comes in between may leave another place: place_changes_ tells.
  [[gnu::always_inline]] bool flush_quickly(uintptr_t line) {
    const uint32_t changes = place_changes_;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const Action action = place_.action;
    if (!is_known(line) || is_inside_.load(std::memory_order_relaxed) != 0) return false;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (place_changes_ != changes) return false;
    if (action == Action::kExecute) {
      execute_now(line);
      return true;
    }
    if (action != Action::kSet) return false;
    put(line);
    return true;
  }
  // By the CPU's instruction.
  [[gnu::always_inline]] void execute_now(uintptr_t line) {
    sys::flush_line(line, instruction_);
    base::increase<uint64_t>(counts_.now_lines, 1);
  }
  [[gnu::always_inline]] void put(uintptr_t line) {
    switch (set_.add(line)) {
      case LineSet::Flush::kNow: return execute_now(line);
      case LineSet::Flush::kPutOff: return base::increase<uint64_t>(counts_.away_lines, 1);
      case LineSet::Flush::kPutIn: return put_in(line);
    }
  }
  void flush_otherwise(uintptr_t line);
  Place find_place(uintptr_t line) const;
  Action action_of(const Domain& domain) const;
  bool is_together(const Domain& domain) const;
  void take_place(uintptr_t line);
  Place known_place(uintptr_t line);
  void forget_place();
  // Does each flush and fence have to be counted?
  bool counts_all() const;
  bool may_open() const;
  bool is_place_true() const;
  void open_direct();
  void open_put_off();
  // Fences that compiled code may execute from now on, and those that it has executed.
  void grant_fences();
  uint64_t take_fences();
  uintptr_t flush_slowly(uintptr_t line, uintptr_t end);
  void flush_alone(const Place& place, uintptr_t line);
  // Executes a flush: by the device, or, if that is null, by the CPU's instruction.
  void execute(LineDevice* device, uintptr_t line) const;
  void flush_to_device(LineDevice* device, uintptr_t line);  // and notes the device for the fence
  void put_to_device(LineDevice* device, uintptr_t line);
  void put_in(uintptr_t line);
  void look_again(uintptr_t line);
  void push(LineDevice* device, uintptr_t line);
  void note(const Domain& domain, uintptr_t begin, uintptr_t end);
  // Executes a line that was put off. Returns whether it was executed; `place` is where the line before was.
  bool execute_again(Place& place, uintptr_t line);
  void note_device(LineDevice* device);
  // Executes all that is put off, inside the gate.
  void execute_put_off();
  // Lets the policy decide anew.
  void end_window();
  // Lets the policy try handing lines over, too, from now on. Called once, when the thread has come to a domain where that may pay.
  void offer_flushers();
  // Executes what waits in the FIFO, or asks flushers for it.
  void take_or_ask(Fifo& pushed);
  base::Expected<void> fence_slowly();
  base::Expected<void> fence_in_handler();
  base::Expected<void> take_queue(std::atomic<Fifo*>& queue);

  // What a flush needs lies in the first lines.
  Place place_;
  uint32_t place_changes_ = 0;  // how often it has changed
  std::atomic<uint32_t> is_inside_{0};
  const sys::LineFlush instruction_;
  const Domains& domains_;
  OwnCounts counts_;
  int id_;
  Direct own_direct_;
  Direct& direct_;
  uint32_t* const pending_;  // direct_'s
  int32_t granted_fences_ = 0;
  std::atomic<int> untold_error_{0};  // of fail_next_fence(); 0: there is none
  Runtime& runtime_;
  LineSet set_;
  uint64_t set_version_ = 0;  // of the domains: the table of set_ knows nothing of older ones
  Policy policy_;
  FileRanges ranges_;
  static constexpr size_t kMaxDevices = 4;
  LineDevice* devices_[kMaxDevices] = {};  // those that lines were sent to since the last fence
  size_t device_count_ = 0;
  enum class Offer : uint8_t { kNone, kWanted, kRefused, kMade };
  Offer offer_ = Offer::kNone;
  bool is_together_ = false;  // whether the last place is one where all hand over their lines
  std::atomic<Fifo*> fifo_{nullptr};
  std::atomic<Fifo*> recent_{nullptr};
  sys::Gate gate_;
};

// While one lives, signal handlers leave alone where the thread flushes to and what it has put off. They may be nested.
struct Thread::Inside {
  explicit Inside(Thread& thread)
      : thread_(thread), before_(thread.is_inside_.load(std::memory_order_relaxed)) {
    thread.is_inside_.store(1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~Inside() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    thread_.is_inside_.store(before_, std::memory_order_relaxed);
  }
  Thread& thread_;
  const uint32_t before_;
};

}  // namespace persist
