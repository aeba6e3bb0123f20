// DilatedClock: a device's time that passes more slowly than the wall's, so that sleeping threads keep up with a device that does in nanoseconds
// what a sleep takes tens of microseconds for.
#pragma once
#include <cstdint>

#include "sys/kernel.h"

namespace persist {

// Thread contract: any thread; nothing changes after construction.
class DilatedClock {
 public:
  // A nanosecond of the device is `dilation` of the wall. REQUIRES: dilation > 0.
  explicit DilatedClock(double dilation) : start_ns_(sys::monotonic_ns()), dilation_(dilation) {}

  double dilation() const { return dilation_; }
  // The device's time since construction. Cost: a system call.
  double now_ns() const { return device_ns(sys::monotonic_ns()); }
  // Between times of the device and of the monotonic clock.
  double device_ns(uint64_t wall_ns) const { return static_cast<double>(wall_ns - start_ns_) / dilation_; }
  uint64_t wall_ns(double device_ns) const {
    return start_ns_ + static_cast<uint64_t>(device_ns * dilation_);
  }

 private:
  uint64_t start_ns_;
  double dilation_;
};

}  // namespace persist
