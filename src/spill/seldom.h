// Seldom: says when something whose duration grows with the program is to be done again, so that it takes a small part of the time.
//
// Thread contract: one thread. No clock of its own.
#pragma once
#include <cstdint>

namespace spill {

class Seldom {
 public:
  // It is not due again for this many times as long as it took.
  static constexpr uint64_t kRest = 64;

  bool is_due(uint64_t now_ns) const { return now_ns >= next_ns_; }
  void done(uint64_t begun_ns, uint64_t now_ns) { next_ns_ = now_ns + kRest * (now_ns - begun_ns); }

 private:
  uint64_t next_ns_ = 0;
};

}  // namespace spill
