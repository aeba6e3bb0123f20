// LruPolicy: the least recently used page leaves, as far as that is known: pages are in the order in which they came or were last
// found touched; those of the older half are cool, and one that is found touched there becomes the newest.
#pragma once
#include "cache/policies/policy_lists.h"

namespace cache {

class LruPolicy final : public ListPolicy<2> {
  friend class Policy;

 private:
  static constexpr uint8_t kWarm = 0, kCool = 1;

  void on_load(FrameId frame, Arrival arrival) override { append(frame, arrival.wanted ? kWarm : kCool); }
  void on_touched(FrameId frame) override { move(frame, kWarm); }
  std::optional<uint8_t> on_leave(FrameId frame, Removal) override {
    remove(frame);
    return std::nullopt;
  }
  FrameId next_to_cool() override { return cool_half(kWarm, kCool); }
  Named next_victim() override { return {.frame = take_oldest(kWarm, kCool)}; }
  FrameId next_to_clean(uint32_t reach) override { return clean_along(kCool, reach); }
};

}  // namespace cache
