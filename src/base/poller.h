// The small interfaces through which layers meet.
#pragma once
#include <cstddef>
#include <cstdint>

namespace base {

// How long a poller that has just been polled need not be polled again, as far as it knows: until the monotonic clock
// reaches `until_ns`, or `descriptor` is readable, as it may be already.
struct Quiet {
  static constexpr uint64_t kForever = ~uint64_t{0};
  uint64_t until_ns = 0;
  int descriptor = -1;  // -1: there is none. A poller always has the same one

  void no_longer_than(uint64_t ns) {
    if (ns < until_ns) until_ns = ns;
  }
};

// Something that makes progress when polled: a storage queue, a set of timers. One thread at a time.
class Poller {
 public:
  // Does what can be done without blocking; returns how many events it handled, 0 for none.
  virtual size_t poll() = 0;
  // The default is for a poller that cannot be waited for: it has to be polled all the time.
  virtual Quiet quiet() { return {}; }
  // Is a device expected to complete something within microseconds, so that polling on is better than sleeping? Cost: no system call.
  virtual bool expects_soon() const { return false; }

 protected:
  ~Poller() = default;
};

}  // namespace base
