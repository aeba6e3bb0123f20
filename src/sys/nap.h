// A short sleep of the runtime's own.
#pragma once
#include <atomic>
#include <cstdint>

#include "sys/lock.h"

namespace sys {

// Sleeps for about so long; less, if a signal's handler runs. By the system call that locks take: a sandbox that a program puts on itself has to allow
// that one anyway.
inline void nap(uint64_t ns) {
  std::atomic<uint32_t> never{0};
  if (ns > 0) futex_wait(never, 0, ns);
}

}  // namespace sys
