// A short sleep of the runtime's own.
#pragma once
#include <atomic>
#include <cstdint>

#include "sys/lock.h"

namespace sys {

// Sleeps for about so long; less, if a signal's handler runs. No libc: no call that a program may have replaced.
inline void pause_ns(uint64_t ns) {
  std::atomic<uint32_t> never{0};
  futex_wait(never, 0, ns);
}

}  // namespace sys
