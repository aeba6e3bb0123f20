#include "spill/intercept/asynchronous.h"

#include <errno.h>
#include <unistd.h>

#include <atomic>

#include "spill/intercept/intercept.h"
#include "spill/intercept/mutex.h"
#include "spill/signals.h"
#include "sys/c_library.h"
#include "sys/kernel.h"

extern "C" int __spill_pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                      void* (*routine)(void*), void* argument);

namespace spill {
namespace {

struct Notice {
  void (*function)(sigval);
  sigval value;
};

void* call_program(void* memory) {
  const Notice notice = *static_cast<Notice*>(memory);
  sys::c_free(memory);
  notice.function(notice.value);
  return nullptr;
}

}  // namespace

int end_word(const int* word) {
  const int value =
      reinterpret_cast<const std::atomic<int>*>(raw(word, kHoldA))->load(std::memory_order_acquire);
  release(kHoldA);
  return value;
}
void set_end_word(int* word, int value) {
  reinterpret_cast<std::atomic<int>*>(raw(word, kHoldA))->store(value, std::memory_order_release);
  release(kHoldA);
}

BlockedProgramSignals::BlockedProgramSignals() {
  sigset_t all;
  sigfillset(&all);
  change_program_mask(SIG_BLOCK, &all, &before_);
}
BlockedProgramSignals::~BlockedProgramSignals() { change_program_mask(SIG_SETMASK, &before_, nullptr); }

bool run_in_thread(const pthread_attr_t* attributes, void* (*routine)(void*), void* argument) {
  note_threads();
  const BlockedProgramSignals blocked;  // the thread inherits the mask
  pthread_t thread;
  const int error = __spill_pthread_create(&thread, attributes, routine, argument);
  if (error == 0) pthread_detach(thread);  // fails if the attributes make it detached already
  return error == 0;
}

void tell(const sigevent& event, int code) {
  if (event.sigev_notify == SIGEV_SIGNAL) {
    siginfo_t info = {};
    info.si_signo = event.sigev_signo;
    info.si_code = code;
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value = event.sigev_value;
    sys::syscall(SYS_rt_sigqueueinfo, info.si_pid, event.sigev_signo, &info);
  } else if (event.sigev_notify == SIGEV_THREAD) {
    auto* notice = static_cast<Notice*>(sys::c_malloc(sizeof(Notice)));
    if (notice == nullptr) return;
    *notice = {event.sigev_notify_function, event.sigev_value};
    if (!run_in_thread(event.sigev_notify_attributes, call_program, notice)) call_program(notice);
  }
}

Patience::Patience(const timespec* timeout) : is_limited_(timeout != nullptr) {
  if (is_limited_) deadline_ = monotonic_after(load(timeout));
}

bool Patience::pause() const {
  constexpr long kPauseNs = 500'000;
  if (is_limited_ && has_come(deadline_)) {
    errno = EAGAIN;
    return false;
  }
  clear_slots();
  const timespec pause = {0, kPauseNs};
  return nanosleep(&pause, nullptr) == 0;
}

}  // namespace spill
