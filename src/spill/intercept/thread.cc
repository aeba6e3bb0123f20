// Threads: each gets its hazard slots before it runs the program's code, and none is started for which there are too few frames.
#include <errno.h>
#include <pthread.h>
#include <threads.h>

#include <atomic>
#include <new>

#include "spill/intercept/intercept.h"
#include "spill/intercept/stack.h"
#include "spill/last_thread.h"
#include "spill/next.h"
#include "spill/runtime.h"
#include "spill/signals.h"
#include "sys/c_library.h"
#include "sys/lock.h"
#include "sys/nap.h"

namespace spill {
namespace {

// Passed to a new thread. `may_begin` is 0 until the thread's id is stored where the program looks for it: natively, that
// happens before the thread runs.
template <class Routine>
struct Start {
  Routine* routine;
  void* argument;
  std::atomic<uint32_t> may_begin;
};

template <class Routine>
auto run(void* start_memory) {
  auto* start = static_cast<Start<Routine>*>(start_memory);
  adopt_signal_mask();
  enter_counted_thread();
  // Pairs with the release in create().
  while (start->may_begin.load(std::memory_order_acquire) == 0) sys::futex_wait(start->may_begin, 0);
  Routine* const routine = start->routine;
  void* const argument = start->argument;
  sys::c_free(start);
  const auto result = routine(argument);
  this_thread_returned();
  return result;
}

void* run_thread(void* start) { return run<void*(void*)>(start); }

void* run_standard_thread(void* start) {
  return reinterpret_cast<void*>(static_cast<intptr_t>(run<int(void*)>(start)));
}

// Every thread may hold its slots and a share of the mapped pages at the same time.
bool frames_suffice() {
  constexpr uint32_t kHeldPerThread = 4;  // slots that compiled code keeps live at once, as a rule
  const uint32_t frames = runtime.cache != nullptr ? runtime.cache->frame_count() : ~uint32_t{0};
  // The count includes the background thread, which needs no frames: its share is for the new thread.
  const auto suffice = [frames] {
    return thread_count() * kHeldPerThread + cache::Cache::kMinFrames <= frames;
  };
  // A thread that was joined may still be exiting in the kernel; on a busy machine this may take several time slices of other threads.
  constexpr int kPatience = 20'000;
  for (int i = 0; !suffice(); ++i) {
    const bool others_end = reap_threads();
    if (suffice()) break;
    if (!others_end || i == kPatience) return false;
    sys::nap(100'000);
  }
  return true;
}

template <class Routine>
int create(pthread_t* thread, const pthread_attr_t* attributes, void* (*begin)(void*), Routine* routine,
           void* argument) {
  auto* start = static_cast<Start<Routine>*>(sys::c_malloc(sizeof(Start<Routine>)));
  if (start == nullptr) return EAGAIN;
  const bool is_stored_here = !plain(thread);
  new (start) Start<Routine>{routine, argument, {is_stored_here ? 0u : 1u}};
  pthread_t id;
  PlainIn<pthread_attr_t> plain_attributes(attributes);
  count_thread();
  const int result = LIBC_VERSION(pthread_create, "GLIBC_2.34")(
      thread == nullptr || is_stored_here ? &id : thread, plain_attributes, begin, start);
  if (result != 0) {
    uncount_thread();
    sys::c_free(start);
    return result;
  }
  if (is_stored_here) {
    copy(thread, &id, sizeof id);
    // `start` is the thread's after this store; waking an address that nobody waits on does nothing.
    start->may_begin.store(1, std::memory_order_release);
    sys::futex_wake(start->may_begin, 1);
  }
  return 0;
}

}  // namespace

SPILL_EXPORT int __spill_pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                        void* (*routine)(void*), void* argument) {
  if (!frames_suffice()) return EAGAIN;
  if (attributes != nullptr && !keep_stack_of(*PlainIn<pthread_attr_t>(attributes))) return EAGAIN;
  return create(thread, attributes, run_thread, routine, argument);
}

SPILL_EXPORT int __spill_thrd_create(thrd_t* thread, int (*routine)(void*), void* argument) {
  if (!frames_suffice()) return thrd_nomem;
  const int result = create(thread, nullptr, run_standard_thread, routine, argument);
  return result == 0 ? thrd_success : result == EAGAIN ? thrd_nomem : thrd_error;
}

SPILL_EXPORT void __spill_pthread_exit(void* result) {
  if (this_thread().task != nullptr)
    end_process(base::Error::of(EINVAL,
                                "pthread_exit in the body of a parallel_for, which has no thread of its own: "
                                "return from the body"),
                kFatalStatus);
  pthread_exit(result);
}

}  // namespace spill
