// Functions of the C library that create threads which call the program (SIGEV_THREAD): once they are used, the program
// counts as multi-threaded (mutex.h).
//
// A timer's threads have all signals blocked, yet faults must be served: they call run_callback, to which a Callback says
// what to call. A thread may already have been started when its timer is deleted, so Callbacks are never freed; there is
// one for each function and value.
#include <mqueue.h>
#include <signal.h>
#include <time.h>

#include <atomic>

#include "base/mix.h"
#include "spill/intercept/intercept.h"
#include "spill/intercept/mutex.h"
#include "spill/last_thread.h"
#include "spill/next.h"
#include "spill/signals.h"
#include "sys/c_library.h"

namespace spill {
namespace {

struct Callback {
  Callback* next;
  void (*function)(sigval);
  sigval value;
};
constinit std::atomic<Callback*> callbacks[256] = {};  // by hash

// Two threads that ask at the same time may get one each, which does no harm.
Callback* callback_of(void (*function)(sigval), sigval value) {
  const uint64_t hash =
      base::spread(reinterpret_cast<uint64_t>(function) ^ reinterpret_cast<uint64_t>(value.sival_ptr));
  std::atomic<Callback*>& list = callbacks[hash >> 56];
  Callback* first = list.load(std::memory_order_acquire);
  for (Callback* callback = first; callback != nullptr; callback = callback->next)
    if (callback->function == function && callback->value.sival_ptr == value.sival_ptr) return callback;
  auto* added = static_cast<Callback*>(sys::c_malloc(sizeof(Callback)));
  if (added == nullptr) return nullptr;
  *added = {first, function, value};
  while (!list.compare_exchange_weak(added->next, added, std::memory_order_release)) {
  }
  return added;
}

void run_callback(sigval value) {
  adopt_signal_mask();
  const Callback callback = *static_cast<Callback*>(value.sival_ptr);
  callback.function(callback.value);
}

}  // namespace

SPILL_EXPORT int __spill_timer_create(clockid_t clock, sigevent* event, timer_t* timer) {
  note_threads();
  PlainObject<timer_t> plain_timer(timer);
  if (event == nullptr) return LIBC(timer_create)(clock, nullptr, plain_timer);
  sigevent ours = load(event);
  if (ours.sigev_notify != SIGEV_THREAD) return LIBC(timer_create)(clock, &ours, plain_timer);
  ours.sigev_value.sival_ptr = callback_of(ours.sigev_notify_function, ours.sigev_value);
  if (ours.sigev_value.sival_ptr == nullptr) return fail(EAGAIN);
  ours.sigev_notify_function = run_callback;
  const PlainIn<pthread_attr_t> attributes(ours.sigev_notify_attributes);
  ours.sigev_notify_attributes = const_cast<pthread_attr_t*>(static_cast<const pthread_attr_t*>(attributes));
  const int result = LIBC(timer_create)(clock, &ours, plain_timer);
  if (result == 0) count_endless_thread();
  return result;
}

SPILL_EXPORT int __spill_mq_notify(mqd_t queue, const sigevent* event) {
  note_threads();
  const PlainIn<sigevent> plain_event(event);
  const int result = LIBC(mq_notify)(queue, plain_event);
  if (result == 0 && event != nullptr && plain_event->sigev_notify == SIGEV_THREAD) count_endless_thread();
  return result;
}

}  // namespace spill
