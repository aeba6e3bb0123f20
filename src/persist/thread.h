// Thread: what one thread of the process has flushed and not fenced, and how it does so.
//
// A flush is, by the thread's way (Way) and the line's domain:
//
//                   inline          epoch                        decoupled
//   memory          executed        executed, or put off until   pushed to the FIFO, and executed
//                                   the fence (line_set.h)       by a flusher, or by the fence
//   device          to the device   the same                     the same
//   file            noted as a range, whatever the way
//   flush_on_fail   nothing, whatever the way
//   in no domain    executed, whatever the way: it may be unmapped before the fence
//
// and a fence 1 executes what was put off, and what waits in the FIFO unless it is the flushers' (flushers.h), 2 waits for what those have taken, 3 has the kernel write the ranges, 4 has the devices fence, 5 is an sfence.
//
// Why the semantics stay: a flush promises nothing before its thread's fence, and a line that is flushed later holds what it held then, or newer content, which
// may have become durable at any time in any case. So every state that a crash can leave is one that it could leave before. What is promised is promised by the fence, at
// whose end all that was asked for is durable. clflush, which comes before what is stored later, is executed at once (flush_ordered).
//
// Signals: a handler may call all of this at any moment of its thread. While the thread changes where it flushes to or what it has put off, is_inside_ is set: then a handler's
// flush is executed at once, and its fence executes, too, what its thread has put off, and leaves it there; and what it was about to execute of its FIFO: nobody else will (fifo.h).
//
// Invariants
//  1 what is put off or noted lies in a domain, or did: what is in none any more when it is executed is dropped; who removed the domain has executed it
//  2 what was put off or noted is executed under the gate, so that a domain can be removed while no thread is in the middle of it (runtime.h)
//  3 pending() is 0 only if a locked instruction orders all that it has flushed
//
// Compiled code flushes and fences without a call as far as direct() is open (direct.h). That is while nobody wants each to be counted: neither a trial of the policy, nor who has the process count.
//  4 a range is open while the last line was in it, of memory: of the instruction if that is what a flush is there; of clflush, in any case
//  5 what is put off is open while the thread's own fence executes none of it, and the last line was where lines may be put off
//  6 fences are open while the way is inline: what else a fence has to do makes pending() 1
//
// Thread contract: one thread's, and its signal handlers'; others as runtime.h says.
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

// Counts of one thread, or of all; each goes up only.
struct Counts {
  uint64_t asked_lines = 0;     // flushes of a line that were asked for
  uint64_t executed_lines = 0;  // written back by the thread itself, by instructions or a device
  uint64_t pushed_lines = 0;    // handed to flushers
  uint64_t fence_lines = 0;     // of these: no flusher had taken them at the fence, which executed them
  uint64_t noted_lines = 0;     // of files' mappings, for the kernel to write
  uint64_t outside_lines = 0;   // of those asked for: in no domain
  uint64_t fences = 0;
  uint64_t copied_lines = 0;  // written past the caches
  uint64_t sampled_stores = 0;

  void add(const Counts& other);
};

class alignas(base::kLineBytes) Thread {
 public:
  // `direct`: the thread's, for compiled code to look at, as long as the thread is used; null: nobody looks.
  explicit Thread(Runtime& runtime, Direct* direct = nullptr);
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  // Flushes the line of this address. Cost: some 1 ns beside the instruction, if it is in the domain of the flush before (spillway bench persist).
  [[gnu::always_inline]] void flush(uintptr_t address) {
    const uintptr_t line = base::round_down(address, base::kLineBytes);
    if (!flush_quickly(line)) flush_otherwise(line);
  }
  // Flushes the lines of [address, address + bytes).
  void flush(uintptr_t address, size_t bytes);
  // The same, before whatever the thread stores afterwards.
  void flush_ordered(uintptr_t address);
  // All that the thread has flushed is durable. Errors: EIO, ENOSPC of a file that the kernel cannot write.
  base::Expected<void> fence();

  // Lines that were written past the caches, and need no flush.
  void note_copied(uint64_t lines) { base::increase(counts_.copied_lines, lines); }
  // The address of a store, now and then. Cost: some 10 ns.
  void sample_store(uintptr_t address);

  // 1 while it has flushed what no instruction has written back yet: then mfence and locked instructions, which order flushes as sfence does, need a fence of
  // the thread's before them.
  uint32_t pending() const { return *pending_; }
  Direct& direct() { return direct_; }
  // Of the kernel.
  int id() const { return id_; }

  // How the thread flushes from now on; what is put off stays so. Takes memory for its queues. Errors: ENOMEM; EAGAIN: no flusher can be started; the way stays then.
  base::Expected<void> set_way(Way way);
  // The one that it has now, as auto has decided; decoupled, too, while all that are auto hand over their lines (together.h).
  Way way() const { return is_together_ ? Way::kDecoupled : policy_.chosen(); }

  Counts counts() const;
  // Null as long as it has pushed nothing.
  Fifo* fifo() const { return fifo_.load(std::memory_order_acquire); }
  // Lines that it stored to lately; null as long as its way is not proactive.
  Fifo* recent() const { return recent_.load(std::memory_order_acquire); }

  // Of another thread, while this one is kept out by its gate: executes what this one has put off or pushed of a domain that is being removed, and leaves it there.
  sys::Gate& gate() { return gate_; }
  void execute_for(const Domain& removed) const;
  // In the child of a fork, of the thread that forked.
  void enter_child();
  // The thread itself flushes no more: compiled code is to call.
  void close_direct();

 private:
  // Where the last line was, and what is done with lines there.
  enum class Action : uint8_t { kOutside, kExecute, kSet, kDevice, kDeviceSet, kPush, kNote, kNothing };
  struct Place {
    uintptr_t begin = 0, bytes = 0;
    uint64_t version = 0;  // of the domains
    Action action = Action::kOutside;
    Domain domain;  // its device is null unless it is of that kind
  };
  struct Inside;
  // Changed by the thread alone. A line that it is asked for is counted once, by what is done with it: so a flush changes one count, and the sum is what it was asked for.
  struct OwnCounts {
    std::atomic<uint64_t> now_lines{0};   // executed where the flush stands
    std::atomic<uint64_t> away_lines{0};  // put off; or nothing was to be done
    std::atomic<uint64_t> pushed_lines{0}, noted_lines{0};
    // Beside these: executed of those that were put off; in no domain; executed at a fence of those that were pushed.
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
  // Of a line in memory in the place of the line before. Returns false if it is another, which flush_otherwise() is for. A handler that comes in between may leave another
  // place behind: then place_changes_ says so.
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
  // In memory.
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
  // Is each flush and fence to be counted?
  bool counts_all() const;
  bool may_open() const;
  bool is_place_true() const;
  void open_direct();
  void open_put_off();
  // Fences that compiled code may execute from now on, and those that it has.
  void grant_fences();
  uint64_t take_fences();
  uintptr_t flush_slowly(uintptr_t line, uintptr_t end);
  void flush_alone(const Place& place, uintptr_t line);
  // To the device; null: by the CPU's instruction.
  void execute(LineDevice* device, uintptr_t line) const;
  void flush_to_device(LineDevice* device, uintptr_t line);  // and it is known at the fence
  void put_to_device(LineDevice* device, uintptr_t line);
  void put_in(uintptr_t line);
  void look_again(uintptr_t line);
  void push(LineDevice* device, uintptr_t line);
  void note(const Domain& domain, uintptr_t begin, uintptr_t end);
  // Returns whether it was executed; `place` is where the line before was.
  bool execute_again(Place& place, uintptr_t line);
  void note_device(LineDevice* device);
  // Under the gate.
  void execute_put_off();
  // The policy decides anew.
  void end_window();
  // From now on the policy tries other threads, too: once, when the thread has come to a domain where they may pay.
  void offer_flushers();
  // What waits in the FIFO is executed, or flushers are asked for it.
  void take_or_ask(Fifo& pushed);
  base::Expected<void> fence_slowly();
  base::Expected<void> fence_in_handler();
  base::Expected<void> take_queue(std::atomic<Fifo*>& queue);

  // What a flush needs lies in the first lines.
  Place place_;
  uint32_t place_changes_ = 0;  // how often it became another
  std::atomic<uint32_t> is_inside_{0};
  const sys::LineFlush instruction_;
  const Domains& domains_;
  OwnCounts counts_;
  int id_;
  Direct own_direct_;
  Direct& direct_;
  uint32_t* const pending_;  // of it
  int32_t granted_fences_ = 0;
  std::atomic<uint32_t> handler_failed_{0};  // of a handler's files, to be told by the next fence
  Runtime& runtime_;
  LineSet set_;
  uint64_t set_version_ = 0;  // of the domains, that its epoch began with or later
  Policy policy_;
  FileRanges ranges_;
  static constexpr size_t kDevicesMax = 4;
  LineDevice* devices_[kDevicesMax] = {};  // that lines went to since the last fence
  size_t device_count_ = 0;
  enum class Offer : uint8_t { kNone, kWanted, kRefused, kMade };
  Offer offer_ = Offer::kNone;
  bool is_together_ = false;  // of its last place
  std::atomic<Fifo*> fifo_{nullptr};
  std::atomic<Fifo*> recent_{nullptr};
  sys::Gate gate_;
};

// While one lives, handlers of signals leave alone where the thread flushes to and what it has put off. One may live inside of another's life.
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
