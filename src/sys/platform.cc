// The calls of base/platform.h, for Linux.
#include "base/platform.h"

#include "sys/files.h"
#include "sys/kernel.h"
#include "sys/signals.h"

namespace base {

void platform_write_error(const char* text, size_t length_bytes) {
  while (length_bytes > 0) {
    // A message must not end the program, even if its reader has left.
    const long written = sys::write_quietly(sys::error_output(), text, length_bytes);
    if (written <= 0) return;
    text += written;
    length_bytes -= static_cast<size_t>(written);
  }
}

uint64_t platform_time_ms() {
  timespec now = {};
  sys::syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000 + static_cast<uint64_t>(now.tv_nsec) / 1'000'000;
}

void platform_abort() {
  struct {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)();
    uint64_t mask;
  } action = {SIG_DFL, 0, nullptr, 0};
  sys::syscall(SYS_rt_sigaction, SIGABRT, &action, nullptr, sizeof action.mask);
  sys::unblock_signals(sys::signal_bit(SIGABRT));
  long process = sys::syscall(SYS_getpid);
  long thread = sys::syscall(SYS_gettid);
  sys::syscall(SYS_tgkill, process, thread, SIGABRT);
  for (;;) sys::syscall(SYS_exit_group, 134);
}

}  // namespace base
