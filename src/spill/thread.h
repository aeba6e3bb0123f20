// What the runtime knows of a thread: its hazard slots, and whether it is inside the runtime.
//
//   Thread record (from the OS, never unmapped, reused after the thread is gone)
//     levels[0]   slots while no signal handler runs     <- __spillway_slots
//     levels[1]   slots of a handler that interrupted it  <- __spillway_slots in the handler
//     ...         kMaxLevels, which take memory as they are used
//
// A signal handler does not save slots, it moves to the next level: the interrupted code's slots stay
// where they are, visible to the evictor. The evictor scans every level of every record.
//
// Invariants
//  1 a thread that has not registered has __spillway_slots == kUnregisteredSlots; its first slot store
//    faults, and the fault handler registers it (fault.cc)
//  2 records are only added to the list, so that a scan needs no lock
//  3 a record is reused only after the kernel reports its thread dead: destructors of thread-local
//    objects run instrumented code until the very end
#pragma once
#include <cstdint>

#include "spill/abi.h"
#include "sys/barrier.h"

namespace cache {
class Workspace;
}
struct Satc;

namespace spill {

inline constexpr unsigned kMaxLevels = 100;

class Prefetcher;
struct LoopTask;

struct Level {
  Slot slots[kAllSlotCount];
};

struct Thread {
  std::atomic<uint32_t> top_level;  // levels above it hold no live slot
  std::atomic<uint32_t> thread_id;  // kernel thread id; 0: never used
  std::atomic<uint32_t> finished;   // its start routine returned, or no thread has the record
  Thread* next;                     // list of all records

  // Owner thread only.
  uint32_t runtime_depth;   // > 0: inside the runtime; handlers are deferred
  uint32_t deferred_count;  // signals that came meanwhile: queued again, and all are blocked
  uint64_t deferred_mask;   // the signal mask to return to
  uint32_t closing_depth;   // > 0: inside dlclose (globals.h)
  LoopTask* task;           // the task whose code the thread runs, or null (loop.h)
  uint32_t busy_count;      // > 0: that task must not be suspended; counted while loops run
  uint64_t task_mask;       // the signal mask that tasks begin with
  bool has_other_mask;      // the task has set another one: it must not be suspended either
  bool is_in_plain_loop;    // it runs a loop's iterations, and those of loops inside it, one after the other
  uint64_t blocked_faults;  // those of kFaultSignals that the program believes blocked (signals.h)
  alignas(16) unsigned char kept_fault[128];  // siginfo_t of one that was sent and has to wait; zeros: none
  char* scratch;                              // kScratchBlockBytes (access.cc), or null before first use
  uint32_t scratch_used_bytes;
  cache::Workspace* workspace;       // null before first use; workspace_of() in runtime.h
  Prefetcher* prefetcher;            // null before first use; ahead/prefetch.h
  std::atomic<Satc*> satc;           // null before first use; satc.h
  bool has_left_satc;                // it gets no caches any more
  std::atomic<bool> has_heap_arena;  // the heap chose an arena for it; relaxed: read by every allocation
  bool has_left_heap;                // it is ending, and its blocks are plain memory from now on (heap.h)
  // Bytes that are not in the statistics yet (heap.cc). Relaxed: only the thread itself changes them while the program runs.
  std::atomic<int64_t> uncounted_allocated_bytes, uncounted_live_bytes;
  std::atomic<int64_t> uncounted_plain_bytes;         // the same, for what small heaps have in plain memory
  std::atomic<int64_t> uncounted_others_plain_bytes;  // and for what code other than the program's has there

  // By level: the memory that is pinned for a system call (WiredRange); bytes 0: none.
  struct Wired {
    uint64_t begin;
    uint64_t bytes;
  } wired[kMaxLevels];
  // A stack address of the handler that runs on each level but the first.
  uint64_t handler_frames[kMaxLevels];
  Level levels[kMaxLevels];
};

// Records are aligned to their size, so that any slot's address leads to its thread.
inline constexpr uint64_t kRecordBytes = 64 << 10;
static_assert(sizeof(Thread) <= kRecordBytes);

// Gives the calling thread a record. REQUIRES: it has none.
Thread& register_thread();
// The calling thread's record, or null when it has none yet. Async-signal-safe. Cost: inline. The compiler must load the pointer
// again after each call, and after the fence behind each store to a slot, since either may register the thread.
inline Thread* this_thread_if_registered() {
  const auto slots = reinterpret_cast<uint64_t>(__spillway_slots);
  if (slots == kUnregisteredSlots) [[unlikely]]
    return nullptr;
  return reinterpret_cast<Thread*>(base::round_down(slots, kRecordBytes));
}
// The same, registering it if need be.
inline Thread& this_thread() {
  Thread* thread = this_thread_if_registered();
  return thread != nullptr ? *thread : register_thread();
}

// Number of tasks of all loops that run (loop.h); 0 in a child of fork, even while it runs an iteration.
extern std::atomic<uint32_t> loop_task_count;

// Between the two the calling thread has something with which a loop's task must not be suspended: a lock, a call under way. They nest;
// either may be called without the other. Cost: a load when no loop runs.
inline void begin_busy() {
  if (loop_task_count.load(std::memory_order_relaxed) == 0) [[likely]]
    return;
  if (Thread* thread = this_thread_if_registered(); thread != nullptr) ++thread->busy_count;
}
inline void end_busy() {
  if (loop_task_count.load(std::memory_order_relaxed) == 0) [[likely]]
    return;
  Thread* thread = this_thread_if_registered();
  if (thread != nullptr && thread->busy_count > 0) --thread->busy_count;
}
class Busy {
 public:
  Busy() { begin_busy(); }
  ~Busy() { end_busy(); }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
};

// First record of the list; walk with next. Records of dead threads have no live slots.
Thread* first_thread();

// Number of registered threads that are alive, an upper bound.
uint32_t thread_count();
// Removes threads that have ended from thread_count(). Returns whether others are about to end. Cost: a system call for each record.
bool reap_threads();
// The same for those whose start routine has returned. Cost: a load for each record, system calls for each of them.
void reap_finished_threads();

// The calling thread will run no more of the program than destructors of thread-local data; its record is free
// once the kernel reports it dead.
void this_thread_returned();

// For fork. Between the first and the last no thread registers. The second is called in the child: the records of all other threads become
// free, and no thread has a workspace.
void freeze_thread_records();
void keep_only_this_thread();
void thaw_thread_records();

// The runtime's work between two points of the program: signal handlers are deferred meanwhile.
// Reentrant. Cost: two increments; a system call each when a signal came.
class InRuntime {
 public:
  InRuntime() : thread_(this_thread()) { enter(thread_); }
  ~InRuntime() {
    leave(thread_);
    sys::note_life(&thread_);
  }
  InRuntime(const InRuntime&) = delete;
  InRuntime& operator=(const InRuntime&) = delete;
  Thread& thread() const { return thread_; }

  // The same where the scope of an object does not fit. REQUIRES: `thread` is the calling thread's.
  static void enter(Thread& thread) {
    ++thread.runtime_depth;
    // A handler may have run up to here: nothing that follows may be read earlier.
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  static void leave(Thread& thread) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (--thread.runtime_depth == 0 && thread.deferred_count != 0) deliver_deferred(thread);
  }

 private:
  static void deliver_deferred(Thread& thread);
  Thread& thread_;
};

}  // namespace spill
