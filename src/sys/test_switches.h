// For tests: has this thread slept? A thread that spins never gives up the CPU by itself, however busy the machine is.
#pragma once
#include <sys/resource.h>

#include <cstdint>

namespace sys {

// How often this thread has given up the CPU to wait for something.
inline uint64_t voluntary_switches() {
  rusage usage = {};
  ::getrusage(RUSAGE_THREAD, &usage);
  return static_cast<uint64_t>(usage.ru_nvcsw);
}

}  // namespace sys
