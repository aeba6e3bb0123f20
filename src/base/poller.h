// The small interfaces through which layers meet.
#pragma once
#include <cstddef>

namespace base {

// Something that makes progress when polled: a storage queue, a set of timers. One thread at a time.
class Poller {
 public:
  // Does what can be done without blocking; returns how many events it handled, 0 for none.
  virtual size_t poll() = 0;

 protected:
  ~Poller() = default;
};

}  // namespace base
