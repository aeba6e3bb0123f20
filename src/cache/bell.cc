#include "cache/bell.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>

#include <algorithm>

#include "sys/files.h"
#include "sys/kernel.h"

namespace cache {

base::Expected<void> Bell::open() {
  const long made = sys::syscall(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (sys::failed(made))
    return base::failure(static_cast<int>(-made),
                         "cannot make a server: ", base::error_name(static_cast<int>(-made)),
                         "; raise ulimit -n");
  auto owned = sys::own_new_descriptor(made);
  if (!owned) return std::unexpected(owned.error());
  descriptor_ = *owned;
  return {};
}

void Bell::close() {
  if (descriptor_ >= 0) sys::close_own_descriptor(descriptor_);
  descriptor_ = -1;
}

void Bell::sleep(base::Quiet quiet) {
  constexpr uint64_t kLookNs = 20'000, kTimerNs = 60'000;
  timespec timeout = {};
  const bool for_ever = quiet.until_ns == base::Quiet::kForever;
  if (!for_ever) {
    uint64_t ns = kLookNs;
    if (quiet.until_ns != 0) {
      const uint64_t now_ns = sys::monotonic_ns();
      if (quiet.until_ns < now_ns + kTimerNs) return get_up();
      ns = quiet.until_ns - now_ns;
    }
    timeout = {.tv_sec = static_cast<time_t>(ns / 1'000'000'000),
               .tv_nsec = static_cast<long>(ns % 1'000'000'000)};
  }
  pollfd watched[] = {{descriptor_, POLLIN, 0}, {quiet.descriptor, POLLIN, 0}};  // -1 is passed over
  sys::syscall(SYS_ppoll, watched, 2, for_ever ? nullptr : &timeout, nullptr, 0);
  get_up();
  if (watched[0].revents == 0) return;
  uint64_t count;
  sys::syscall(SYS_read, descriptor_, &count, sizeof count);
}

void Bell::wake() {
  const uint64_t one = 1;
  sys::syscall(SYS_write, descriptor_, &one, sizeof one);
}

}  // namespace cache
