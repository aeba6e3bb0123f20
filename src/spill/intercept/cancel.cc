// Asynchronous cancellation: a thread that asked for it may be cancelled between any two of its instructions,
// but not inside the runtime, where it holds locks. Our handler calls the C library's, and defers the signal like the program's (signals.h).
#include <pthread.h>
#include <unistd.h>

#include <new>

#include "spill/intercept/cancel.h"
#include "spill/intercept/intercept.h"
#include "spill/next.h"
#include "spill/signals.h"
#include "spill/thread.h"
#include "sys/kernel.h"
#include "sys/lock.h"
#include "sys/signals.h"

namespace spill {
namespace {

constexpr int kCancelSignal = 32;

constinit void (*cancel)(int, siginfo_t*, void*) = nullptr;
constinit sys::Mutex mutex;
constinit bool is_replaced = false;

void enter_cancel(int number, siginfo_t* info, void* context) {
  Thread* thread = this_thread_if_registered();
  if (thread != nullptr && thread->runtime_depth > 0) {
    defer_signal(info, context);
    return;
  }
  cancel(number, info, context);
}

void* wait_for_cancel(void*) {
  for (;;) pause();
}

// The C library sets its handler when the first thread is cancelled, so a thread of ours is.
void make_library_set_handler() {
  const uint64_t before = sys::block_signals(sys::kAllSignals);
  pthread_t thread;
  const bool started = LIBC(pthread_create)(&thread, nullptr, wait_for_cancel, nullptr) == 0;
  sys::set_signal_mask(before);
  if (!started) return;
  pthread_cancel(thread);
  pthread_join(thread, nullptr);
}

void replace_handler_once() {
  InRuntime inside;
  sys::LockGuard guard(mutex);
  if (is_replaced) return;
  make_library_set_handler();
  KernelAction action = {};
  sys::syscall(SYS_rt_sigaction, kCancelSignal, nullptr, &action, sizeof action.mask);
  if (reinterpret_cast<uint64_t>(action.handler) <= 1) return;
  // This may be a child that was forked halfway.
  if (action.handler != enter_cancel) cancel = action.handler;
  action.handler = enter_cancel;
  sys::syscall(SYS_rt_sigaction, kCancelSignal, &action, nullptr, sizeof action.mask);
  is_replaced = true;
}

void replace_handler() {
  // Joining is a cancellation point, and a cancellation here would leave the lock held.
  int state;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  replace_handler_once();
  pthread_setcancelstate(state, nullptr);
}

}  // namespace

void forget_cancel_lock() { new (&mutex) sys::Mutex; }

SPILL_EXPORT int __spill_pthread_setcanceltype(int type, int* old) {
  if (type == PTHREAD_CANCEL_ASYNCHRONOUS) replace_handler();
  return pthread_setcanceltype(type, PlainObject<int>(old));
}

}  // namespace spill
