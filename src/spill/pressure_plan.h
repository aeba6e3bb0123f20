// PressurePlan: how far the budget goes down while memory is short, and up again afterwards.
//
//   pressure     down by an eighth of what was asked for, at most four times a second, not below a quarter of it or the floor
//   calm         after ten seconds without pressure up by a sixteenth, or to the floor if that is more, once a second, until all
//                that was asked for is there
//   refused      the budget stays as it was; the step is tried again when the next one is due
//
// Down fast and up slowly: what goes up too early comes down again, and each time costs reads.
// Thread contract: one thread. No I/O, no clock of its own.
#pragma once
#include <algorithm>
#include <cstdint>

namespace spill {

class PressurePlan {
 public:
  static constexpr uint64_t kDownNs = 250'000'000;
  static constexpr uint64_t kUpNs = 1'000'000'000;
  static constexpr uint64_t kCalmNs = 10'000'000'000;

  // `bytes` are what was asked for, and the budget from now on.
  void ask(uint64_t bytes) { asked_bytes_ = bytes_ = bytes; }
  uint64_t asked_bytes() const { return asked_bytes_; }
  bool is_lowered() const { return bytes_ < asked_bytes_; }

  // Returns the budget at `now_ns` of a monotonic clock. `floor_bytes`: the least that is possible now.
  uint64_t step(bool pressure, uint64_t now_ns, uint64_t floor_bytes) {
    if (pressure) {
      last_pressure_ns_ = now_ns;
      if (now_ns - changed_ns_ >= kDownNs) {
        const uint64_t floor = std::min(asked_bytes_, std::max(asked_bytes_ / 4, floor_bytes));
        const uint64_t lower = bytes_ > asked_bytes_ / 8 ? bytes_ - asked_bytes_ / 8 : 0;
        change(std::min(bytes_, std::max(lower, floor)), now_ns);
      }
    } else if (bytes_ < asked_bytes_ && now_ns - last_pressure_ns_ >= kCalmNs &&
               now_ns - changed_ns_ >= kUpNs) {
      change(std::min(asked_bytes_, std::max(bytes_ + asked_bytes_ / 16, floor_bytes)), now_ns);
    }
    return bytes_;
  }
  // What step() last returned could not be set: the budget is still `bytes`.
  void refused(uint64_t bytes) { bytes_ = bytes; }

 private:
  void change(uint64_t bytes, uint64_t now_ns) {
    bytes_ = bytes;
    changed_ns_ = now_ns;
  }

  uint64_t asked_bytes_ = 0;
  uint64_t bytes_ = 0;
  uint64_t changed_ns_ = 0;
  uint64_t last_pressure_ns_ = 0;
};

}  // namespace spill
