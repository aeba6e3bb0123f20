#include "sys/events.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>

#include <algorithm>

#include "sys/files.h"
#include "sys/kernel.h"

namespace sys {
namespace {

using base::Quiet;

constexpr int kMaxEvents = 64;  // taken by one call

base::Expected<void> own(long made, int& to) {
  if (failed(made)) {
    const int number = static_cast<int>(-made);
    return base::failure(number, "no descriptor to sleep on: ", base::error_name(number),
                         number == EMFILE ? "; raise ulimit -n" : "");
  }
  auto owned = own_new_descriptor(made);
  if (!owned) return std::unexpected(owned.error());
  to = *owned;
  return {};
}

// How long it is until then; false: that time has passed.
bool time_until(uint64_t until_ns, timespec& timeout) {
  if (until_ns == 0) return false;
  const uint64_t now_ns = monotonic_ns();
  if (until_ns <= now_ns) return false;
  timeout = {.tv_sec = static_cast<time_t>((until_ns - now_ns) / 1'000'000'000),
             .tv_nsec = static_cast<long>((until_ns - now_ns) % 1'000'000'000)};
  return true;
}

void close_owned(int& descriptor) {
  if (descriptor >= 0) close_own_descriptor(descriptor);
  descriptor = -1;
}

}  // namespace

base::Expected<void> Event::open() {
  return own(syscall(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK), descriptor_);
}

void Event::close() { close_owned(descriptor_); }

void Event::set() {
  const uint64_t one = 1;
  syscall(SYS_write, descriptor_, &one, sizeof one);
}

void Event::clear() {
  uint64_t count;
  syscall(SYS_read, descriptor_, &count, sizeof count);
}

void Event::wait_until(uint64_t until_ns, int other) {
  timespec timeout = {};
  if (until_ns != Quiet::kForever && !time_until(until_ns, timeout)) return;
  pollfd watched[] = {{descriptor_, POLLIN, 0}, {other, POLLIN, 0}};
  syscall(SYS_ppoll, watched, 2, until_ns == Quiet::kForever ? nullptr : &timeout, nullptr, 0);
  if (watched[0].revents != 0) clear();
}

base::Expected<void> EventSet::open() { return own(syscall(SYS_epoll_create1, EPOLL_CLOEXEC), descriptor_); }

void EventSet::close() {
  close_owned(descriptor_);
  listener_count_ = 0;
  waits_in_ms_ = false;
}

base::Expected<void> EventSet::add(int descriptor, uint32_t events, Listener* listener) {
  epoll_event event = {};
  event.events = events;
  event.data.ptr = listener;
  const long result = syscall(SYS_epoll_ctl, descriptor_, EPOLL_CTL_ADD, descriptor, &event);
  if (!failed(result)) return {};
  const int number = static_cast<int>(-result);
  return base::failure(number, "cannot wait for descriptor ", static_cast<uint64_t>(descriptor), ": ",
                       base::error_name(number));
}

base::Expected<void> EventSet::add(int descriptor, Wakes wakes) {
  return add(descriptor, wakes == Wakes::kWhileReadable ? EPOLLIN : EPOLLIN | EPOLLET, nullptr);
}

base::Expected<void> EventSet::add(int descriptor, Listener& listener) {
  auto added = add(descriptor, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, &listener);
  if (added) ++listener_count_;
  return added;
}

void EventSet::remove(int descriptor) {
  epoll_event event = {};
  syscall(SYS_epoll_ctl, descriptor_, EPOLL_CTL_DEL, descriptor, &event);
}

void EventSet::remove(int descriptor, Listener&) {
  remove(descriptor);
  --listener_count_;
}

void EventSet::tell(const epoll_event* events, long count) {
  constexpr uint32_t kEnds = EPOLLERR | EPOLLHUP;
  for (long i = 0; i < count; ++i) {
    const uint32_t what = events[i].events;
    if (auto* const listener = static_cast<Listener*>(events[i].data.ptr); listener != nullptr)
      listener->changed({.readable = (what & (EPOLLIN | EPOLLRDHUP | kEnds)) != 0,
                         .writable = (what & (EPOLLOUT | kEnds)) != 0,
                         .ended = (what & (EPOLLRDHUP | kEnds)) != 0});
  }
}

void EventSet::look() {
  if (listener_count_ == 0) return;
  epoll_event events[kMaxEvents];
  tell(events, syscall(SYS_epoll_pwait, descriptor_, events, kMaxEvents, 0, nullptr, 0));
}

void EventSet::wait_until(uint64_t until_ns) {
  timespec timeout = {};
  if (until_ns != Quiet::kForever && !time_until(until_ns, timeout)) return look();
  epoll_event events[kMaxEvents];
  long count = -ENOSYS;
  if (!waits_in_ms_) {
    count = syscall(SYS_epoll_pwait2, descriptor_, events, kMaxEvents,
                    until_ns == Quiet::kForever ? nullptr : &timeout, nullptr, 0);
    // Before Linux 5.11, or in a sandbox that refuses system calls that it does not know.
    waits_in_ms_ = count == -ENOSYS || count == -EPERM;
  }
  if (waits_in_ms_) {
    constexpr long kMaxMs = 1'000'000;
    const long ms = until_ns == Quiet::kForever
                        ? -1
                        : std::min(timeout.tv_sec, kMaxMs / 1000) * 1000 + timeout.tv_nsec / 1'000'000 + 1;
    count = syscall(SYS_epoll_pwait, descriptor_, events, kMaxEvents, ms, nullptr, 0);
  }
  tell(events, count);
}

}  // namespace sys
