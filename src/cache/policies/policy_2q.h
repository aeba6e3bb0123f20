// TwoQueuesPolicy: 2Q (Johnson, Shasha: 2Q, a low overhead high performance buffer management replacement algorithm, VLDB 1994, "full
// version"). Pages that are used once, or several times within a short while, pass through a queue and leave; those that come back soon after that are
// kept by LRU.
//
//        came, unknown                    came, remembered
//             │ on_load                         │ on_load
//             ▼                                 ▼
//            in: the oldest leaves,            main: as LruPolicy
//            touched or not                     │ on_leave
//             │ on_leave                        ▼
//             ▼                               forgotten
//        remembered
//
//   in           a quarter of the pages (Kin)
//   remembered   half as many as there are frames (Kout)
#pragma once
#include "cache/policies/policy_lists.h"

namespace cache {

class TwoQueuesPolicy final : public ListPolicy<3> {
  friend class Policy;

 private:
  static constexpr uint32_t kRemembered16 = 8;
  static constexpr uint32_t kInShare = 4;
  static constexpr uint8_t kIn = 0, kWarm = 1, kCool = 2;

  void on_load(FrameId frame, Arrival arrival) override { append(frame, arrival.remembered ? kWarm : kIn); }
  void on_touched(FrameId frame) override { move(frame, kWarm); }
  std::optional<uint8_t> on_leave(FrameId frame, Removal) override {
    const bool was_in = node(frame).list == kIn;
    remove(frame);
    if (was_in) return 0;
    return std::nullopt;
  }
  FrameId next_to_cool() override { return cool_half(kWarm, kCool); }
  bool takes_from_in() const {
    if (count(kIn) == 0 || count(kIn) == held_count()) return count(kIn) > 0;
    // If none of one queue can leave, try the other one.
    if (named_in_vain() >= 2 * held_count()) return (named_in_vain() / held_count() & 1) != 0;
    return count(kIn) * kInShare >= held_count();
  }
  Named next_victim() override {
    if (takes_from_in()) return {.frame = take_oldest(kIn, kIn), .even_touched = true};
    return {.frame = take_oldest(kWarm, kCool)};
  }
  FrameId next_to_clean(uint32_t reach) override { return clean_along(takes_from_in() ? kIn : kCool, reach); }
};

}  // namespace cache
