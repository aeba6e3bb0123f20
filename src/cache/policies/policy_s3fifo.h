// S3fifoPolicy: S3-FIFO (Yang, Zhang, Qiu, Yue, Vigfusson: FIFO queues are all you need for cache eviction, SOSP 2023, section 4). Most new
// pages are not used again: they leave through a small queue. Since hits are only sampled, they are not counted: a touch in the older half of a queue
// is one hit; earlier touches belong to the use that brought the page in.
//
//        came, unknown                    came, remembered
//             │ on_load                         │ on_load
//             ▼           touched               ▼
//           small ──────on_touched───────────► main ◄─┐ touched: back to its end
//             │ on_leave                        │ └────┘ (on_touched)
//             ▼                                 ▼ on_leave
//        remembered                         forgotten
//
//   small        a tenth of the pages; the victim is taken from it if it has that many
//   remembered   as many as there are frames
#pragma once
#include "cache/policies/policy_lists.h"

namespace cache {

class S3fifoPolicy final : public ListPolicy<4> {
  friend class Policy;

 private:
  static constexpr uint32_t kRemembered16 = 16;
  static constexpr uint32_t kSmallShare = 10;
  static constexpr uint8_t kSmallWarm = 0, kSmallCool = 1, kWarm = 2, kCool = 3;

  uint32_t small_count() const { return count(kSmallWarm) + count(kSmallCool); }
  void on_load(FrameId frame, Arrival arrival) override {
    append(frame, arrival.remembered ? kWarm : arrival.wanted ? kSmallWarm : kSmallCool);
  }
  void on_touched(FrameId frame) override { move(frame, kWarm); }
  std::optional<uint8_t> on_leave(FrameId frame, Removal) override {
    const bool was_small = node(frame).list <= kSmallCool;
    remove(frame);
    if (was_small) return 0;
    return std::nullopt;
  }
  FrameId next_to_cool() override {
    const FrameId frame = cool_half(kSmallWarm, kSmallCool);
    return frame != base::kNoFrame ? frame : cool_half(kWarm, kCool);
  }
  bool takes_from_small() const {
    if (small_count() == 0 || small_count() == held_count()) return small_count() > 0;
    // If none of one queue can leave, try the other one.
    if (named_in_vain() >= 2 * held_count()) return (named_in_vain() / held_count() & 1) != 0;
    return small_count() * kSmallShare >= held_count();
  }
  Named next_victim() override {
    if (takes_from_small()) return {.frame = take_oldest(kSmallWarm, kSmallCool)};
    return {.frame = take_oldest(kWarm, kCool)};
  }
  FrameId next_to_clean(uint32_t reach) override {
    return clean_along(takes_from_small() ? kSmallCool : kCool, reach);
  }
};

}  // namespace cache
