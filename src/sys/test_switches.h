// For tests: has this thread slept? Who spins gives the CPU up only when it is taken away, however busy the machine is.
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
