// The small interfaces through which layers meet.
#pragma once
#include <cstddef>
#include <cstdint>

namespace base {

// Until when a poller that has just been polled need not be polled again, as far as it knows: until the monotonic clock
// shows `until_ns`, or `descriptor` becomes readable, also if it was before.
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
  // A poller that cannot be waited for has to be polled all the time.
  virtual Quiet quiet() { return {}; }
  // Will a device give it something to do within microseconds, so that it is worth looking on before one sleeps? Cost: no system call.
  virtual bool expects_soon() const { return false; }

 protected:
  ~Poller() = default;
};

}  // namespace base
