// A short sleep of the runtime's own.
#pragma once
#include <atomic>
#include <cstdint>

#include "sys/lock.h"

namespace sys {

// Sleeps for about that long; less, if a signal handler runs. It uses the system call that locks use, which a sandbox that a program puts itself into has
// to allow anyway.
inline void nap(uint64_t ns) {
  std::atomic<uint32_t> never{0};
  if (ns > 0) futex_wait(never, 0, ns);
}

}  // namespace sys
