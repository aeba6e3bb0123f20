// Worker: how its thread sleeps and is woken, by the kernel.
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>

#include <algorithm>

#include "base/check.h"
#include "sys/files.h"
#include "sys/kernel.h"
#include "task/scheduler.h"
#include "task/worker.h"

namespace task {

base::Expected<void> Worker::open_sleep() {
  for (int* place : {&sleep_descriptor_, &wake_descriptor_}) {
    const long made = place == &sleep_descriptor_ ? sys::syscall(SYS_epoll_create1, EPOLL_CLOEXEC)
                                                  : sys::syscall(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (sys::failed(made))
      return base::failure(static_cast<int>(-made),
                           "cannot make a worker: ", base::error_name(static_cast<int>(-made)),
                           "; raise ulimit -n");
    auto owned = sys::own_new_descriptor(made);
    if (!owned) return std::unexpected(owned.error());
    *place = *owned;
  }
  return watch(wake_descriptor_);
}

void Worker::close_sleep() {
  if (wake_descriptor_ >= 0) sys::close_own_descriptor(wake_descriptor_);
  if (sleep_descriptor_ >= 0) sys::close_own_descriptor(sleep_descriptor_);
  wake_descriptor_ = sleep_descriptor_ = -1;
}

base::Expected<void> Worker::watch(int descriptor) {
  // Level-triggered, but for the wake-ups, which nobody reads.
  epoll_event event = {};
  event.events = EPOLLIN;
  if (descriptor == wake_descriptor_) event.events |= EPOLLET;
  const long result = sys::syscall(SYS_epoll_ctl, sleep_descriptor_, EPOLL_CTL_ADD, descriptor, &event);
  if (sys::failed(result))
    return base::failure(static_cast<int>(-result), "cannot wait for descriptor ",
                         static_cast<uint64_t>(descriptor), ": ",
                         base::error_name(static_cast<int>(-result)));
  return {};
}

void Worker::end_watch(int descriptor) {
  epoll_event event = {};
  sys::syscall(SYS_epoll_ctl, sleep_descriptor_, EPOLL_CTL_DEL, descriptor, &event);
}

void Worker::sleep_until_woken(uint64_t until_ns) {
  timespec timeout = {};
  if (until_ns != kNever) {
    const uint64_t now = now_ns();
    if (until_ns <= now) return;
    timeout = {.tv_sec = static_cast<time_t>((until_ns - now) / 1'000'000'000),
               .tv_nsec = static_cast<long>((until_ns - now) % 1'000'000'000)};
  }
  epoll_event events[4];
  if (!sleeps_in_ms_) {
    const long result = sys::syscall(SYS_epoll_pwait2, sleep_descriptor_, events, 4,
                                     until_ns == kNever ? nullptr : &timeout, nullptr, 0);
    // Linux before 5.11, and what filters system calls that it does not know.
    sleeps_in_ms_ = result == -ENOSYS || result == -EPERM;
    if (!sleeps_in_ms_) return;
  }
  constexpr long kMostMs = 1'000'000;
  const long ms = until_ns == kNever
                      ? -1
                      : std::min(timeout.tv_sec, kMostMs / 1000) * 1000 + timeout.tv_nsec / 1'000'000 + 1;
  sys::syscall(SYS_epoll_pwait, sleep_descriptor_, events, 4, ms, nullptr, 0);
}

void Worker::end_sleep() {
  const uint64_t one = 1;
  sys::syscall(SYS_write, wake_descriptor_, &one, sizeof one);
}

}  // namespace task
