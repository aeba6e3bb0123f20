// Seldom: says when to do something again that takes longer the larger the program is, so that it takes a small part of the time.
//
// Thread contract: one thread. No clock of its own.
#pragma once
#include <cstdint>

namespace spill {

class Seldom {
 public:
  // After something has taken a while it is not due for so many times as long.
  static constexpr uint64_t kRest = 64;

  bool is_due(uint64_t now_ns) const { return now_ns >= next_ns_; }
  void done(uint64_t begun_ns, uint64_t now_ns) { next_ns_ = now_ns + kRest * (now_ns - begun_ns); }

 private:
  uint64_t next_ns_ = 0;
};

}  // namespace spill
