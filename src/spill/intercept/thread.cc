// Threads: each gets its hazard slots before it runs the program's code, and none is started that the
// frames could not serve.
#include <errno.h>
#include <pthread.h>
#include <threads.h>

#include "spill/intercept/intercept.h"
#include "spill/last_thread.h"
#include "spill/next.h"
#include "spill/runtime.h"
#include "sys/c_library.h"
#include "sys/kernel.h"

namespace spill {
namespace {

struct Start {
  void* (*routine)(void*);
  void* argument;
};

void* run_thread(void* start_memory) {
  const Start start = *static_cast<Start*>(start_memory);
  sys::c_free(start_memory);
  this_thread();
  enter_counted_thread();
  void* result = start.routine(start.argument);
  this_thread_returned();
  return result;
}

struct StandardStart {
  int (*routine)(void*);
  void* argument;
};

void* run_standard_thread(void* start_memory) {
  const StandardStart start = *static_cast<StandardStart*>(start_memory);
  sys::c_free(start_memory);
  this_thread();
  enter_counted_thread();
  const int result = start.routine(start.argument);
  this_thread_returned();
  return reinterpret_cast<void*>(static_cast<intptr_t>(result));
}

// Every thread may hold its slots and a share of the mapped pages at the same time.
bool frames_suffice() {
  constexpr uint32_t kHeldPerThread = 4;  // slots that compiled code keeps live at once, as a rule
  const uint32_t frames = runtime.cache != nullptr ? runtime.cache->frame_count() : ~uint32_t{0};
  // The background thread, which is counted, holds none: its share is the new thread's.
  const auto suffice = [frames] {
    return thread_count() * kHeldPerThread + cache::Cache::kMinFrames <= frames;
  };
  // A thread that was joined may still be on its way out of the kernel.
  constexpr int kPatience = 200;
  for (int i = 0; !suffice(); ++i) {
    const bool others_end = reap_threads();
    if (suffice()) break;
    if (!others_end || i == kPatience) return false;
    sys::nap(100'000);
  }
  return true;
}

int create(pthread_t* thread, const pthread_attr_t* attributes, void* (*routine)(void*), void* start) {
  if (start == nullptr) return EAGAIN;
  pthread_t plain_thread;
  PlainIn<pthread_attr_t> plain_attributes(attributes);
  count_thread();
  const int result =
      LIBC_VERSION(pthread_create, "GLIBC_2.34")(&plain_thread, plain_attributes, routine, start);
  if (result != 0) {
    uncount_thread();
    sys::c_free(start);
    return result;
  }
  if (thread != nullptr) copy(thread, &plain_thread, sizeof plain_thread);
  return 0;
}

}  // namespace

SPILL_EXPORT int __spill_pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                        void* (*routine)(void*), void* argument) {
  if (!frames_suffice()) return EAGAIN;
  auto* start = static_cast<Start*>(sys::c_malloc(sizeof(Start)));
  if (start != nullptr) *start = {routine, argument};
  return create(thread, attributes, run_thread, start);
}

SPILL_EXPORT int __spill_thrd_create(thrd_t* thread, int (*routine)(void*), void* argument) {
  if (!frames_suffice()) return thrd_nomem;
  auto* start = static_cast<StandardStart*>(sys::c_malloc(sizeof(StandardStart)));
  if (start != nullptr) *start = {routine, argument};
  const int result = create(thread, nullptr, run_standard_thread, start);
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
