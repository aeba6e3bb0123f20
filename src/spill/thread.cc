#include "spill/thread.h"

#include <new>

#include "base/check.h"
#include "base/statistics.h"
#include "spill/ahead/prefetch.h"
#include "spill/pins.h"
#include "spill/runtime.h"
#include "spill/satc.h"
#include "spill/signals.h"
#include "sys/kernel.h"
#include "sys/memory.h"
#include "sys/signals.h"
#include "sys/threads.h"

namespace spill {

constinit std::atomic<uint32_t> loop_task_count{0};

namespace {

constexpr uint64_t kRecordsPerBlock = 8;

constinit std::atomic<Thread*> first{nullptr};
constinit sys::Mutex records_mutex;
constinit std::atomic<uint32_t> alive_count{0};

bool is_dead(const Thread& thread) {
  return sys::has_ended(static_cast<int>(thread.thread_id.load(std::memory_order_relaxed)));
}

// Clears what is left of the thread that had the record, which is gone.
void empty_record(Thread& thread) {
  thread.workspace = nullptr;
  leave_prefetcher(thread);
  satc_reuse(thread);
  thread.finished.store(0, std::memory_order_relaxed);
  for (uint32_t level = 0; level <= thread.top_level.load(std::memory_order_relaxed); ++level) {
    for (Slot& slot : thread.levels[level].slots) slot.store(0, std::memory_order_relaxed);
    thread.wired[level] = {};
  }
  thread.top_level.store(0, std::memory_order_relaxed);
  thread.runtime_depth = 0;
  thread.deferred_count = 0;
  thread.closing_depth = 0;
  thread.task = nullptr;
  thread.busy_count = 0;
  thread.is_in_plain_loop = false;
  thread.blocked_faults = 0;
  spillway_plain_memset(thread.kept_fault, 0, sizeof thread.kept_fault);
  thread.scratch_used_bytes = 0;
  thread.has_heap_arena.store(false, std::memory_order_relaxed);
  thread.has_left_heap = false;
}

// A record whose thread is gone, emptied; null if there is none. REQUIRES: records_mutex.
Thread* reuse_record(bool ask_about_all) {
  for (Thread* thread = first.load(std::memory_order_acquire); thread != nullptr; thread = thread->next) {
    const bool candidate = thread->finished.load(std::memory_order_acquire) != 0 || ask_about_all;
    if (!candidate || !is_dead(*thread)) continue;
    sys::note_death(thread);
    if (thread->workspace != nullptr) thread->workspace->destroy();
    empty_record(*thread);
    alive_count.fetch_sub(1, std::memory_order_relaxed);
    return thread;
  }
  return nullptr;
}

Thread* add_block() {
  auto memory = sys::map_anonymous((kRecordsPerBlock + 1) * kRecordBytes, "thread records");
  if (!memory) end_process(memory.error(), kFatalStatus);
  uint64_t begin = base::round_up(reinterpret_cast<uint64_t>(*memory), kRecordBytes);
  for (uint64_t i = 0; i < kRecordsPerBlock; ++i) {
    auto* thread = reinterpret_cast<Thread*>(begin + i * kRecordBytes);
    thread->finished.store(1, std::memory_order_relaxed);  // free: no thread has it
    thread->next = first.load(std::memory_order_relaxed);
    // Release: a scan that finds the record finds it zeroed.
    first.store(thread, std::memory_order_release);
  }
  return first.load(std::memory_order_relaxed);
}

}  // namespace

Thread& register_thread() {
  // Signals stay blocked: a handler that came now would register the thread a second time.
  const sys::BlockedSignals blocked(sys::kAllSignals);
  Thread* thread = nullptr;
  {
    sys::LockGuard guard(records_mutex);
    for (Thread* free = first.load(std::memory_order_acquire); free != nullptr && thread == nullptr;
         free = free->next)
      if (free->thread_id.load(std::memory_order_relaxed) == 0) thread = free;
    if (thread == nullptr) thread = reuse_record(false);
    if (thread == nullptr) thread = reuse_record(true);
    if (thread == nullptr) thread = add_block();
    thread->finished.store(0, std::memory_order_relaxed);
    thread->thread_id.store(static_cast<uint32_t>(sys::syscall(SYS_gettid)), std::memory_order_release);
  }
  alive_count.fetch_add(1, std::memory_order_relaxed);
  base::statistics.spill_threads.add();
  __spillway_slots = thread->levels[0].slots;
  return *thread;
}

Thread* first_thread() { return first.load(std::memory_order_acquire); }

uint32_t thread_count() { return alive_count.load(std::memory_order_relaxed); }

bool reap_threads() {
  // A handler that came in the middle might fork, which takes the lock.
  const InRuntime inside;
  sys::LockGuard guard(records_mutex);
  while (Thread* thread = reuse_record(true)) thread->thread_id.store(0, std::memory_order_relaxed);
  for (Thread* thread = first_thread(); thread != nullptr; thread = thread->next)
    if (thread->thread_id.load(std::memory_order_relaxed) != 0 &&
        thread->finished.load(std::memory_order_relaxed) != 0)
      return true;
  return false;
}

void reap_finished_threads() {
  const InRuntime inside;
  sys::LockGuard guard(records_mutex);
  while (Thread* thread = reuse_record(false)) thread->thread_id.store(0, std::memory_order_relaxed);
}

void this_thread_returned() {
  Thread* thread = this_thread_if_registered();
  if (thread == nullptr) return;
  {
    InRuntime inside;
    satc_leave(*thread);
  }
  // It may have left by pthread_exit or cancellation, from the middle of a function or of a handler.
  end_left_pins(0);
  for (uint32_t level = 0; level <= thread->top_level.load(std::memory_order_relaxed); ++level)
    for (Slot& slot : thread->levels[level].slots) slot.store(0, std::memory_order_release);
  thread->finished.store(1, std::memory_order_release);
}

void freeze_thread_records() {
  this_thread();
  records_mutex.lock();
}

void thaw_thread_records() { records_mutex.unlock(); }

void keep_only_this_thread() {
  Thread& self = this_thread();
  self.thread_id.store(static_cast<uint32_t>(sys::syscall(SYS_gettid)), std::memory_order_relaxed);
  // It was sent to the parent.
  spillway_plain_memset(self.kept_fault, 0, sizeof self.kept_fault);
  for (Thread* thread = first_thread(); thread != nullptr; thread = thread->next) {
    // Queues are not inherited. One with something in flight can only be forgotten.
    if (thread->workspace != nullptr && thread->workspace->queue().in_flight_count() == 0)
      thread->workspace->destroy();
    thread->workspace = nullptr;
    forget_prefetcher(*thread);
    if (thread == &self) continue;
    thread->thread_id.store(0, std::memory_order_relaxed);
    empty_record(*thread);
  }
  alive_count.store(1, std::memory_order_relaxed);
}

void InRuntime::deliver_deferred(Thread& thread) {
  // The signals are queued for this thread: the kernel delivers them now as if they had just come.
  const uint64_t mask = thread.deferred_mask;
  thread.deferred_count = 0;
  sys::set_signal_mask(mask);
  set_blocked_faults(thread, thread.blocked_faults);
}

}  // namespace spill
