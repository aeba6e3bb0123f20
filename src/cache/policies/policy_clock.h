// ClockPolicy: a hand goes round the frames. A page that was touched since the hand last passed stays, and is cool; the first untouched one leaves.
// Neighbours leave together, so that frames are freed, watched and filled in runs.
//
//   hand_         the frame that is looked at next
//   clean_hand_   runs ahead of it: pages are cleaned once between two visits of the hand
#pragma once
#include "cache/policies/policy.h"

namespace cache {

class ClockPolicy final : public Policy {
 public:
  FrameId ahead() const override {
    constexpr uint32_t kSteps = 8;
    const FrameId frame{hand_ + kSteps < end() ? hand_ + kSteps : 0};
    return holds(frame) ? frame : base::kNoFrame;
  }

 private:
  Named next_victim() override {
    const FrameId frame = next_held(hand_);
    hand_ = index(frame) + 1;
    return {.frame = frame};
  }

  FrameId next_to_clean(uint32_t reach) override {
    const uint32_t all = end();
    if (reach > all) reach = all;
    // Begins at the hand again when that has passed the last page looked at.
    uint32_t ahead = hand_ < all ? (clean_hand_ + all - hand_) % all : clean_hand_;
    if (ahead > reach) {
      clean_hand_ = hand_;
      ahead = 0;
    }
    for (; ahead < reach; ++ahead) {
      const FrameId frame{clean_hand_ < all ? clean_hand_ : 0};
      clean_hand_ = index(frame) + 1 < all ? index(frame) + 1 : 0;
      if (holds(frame)) return frame;
    }
    return base::kNoFrame;
  }

  uint32_t hand_ = 0;
  uint32_t clean_hand_ = 0;
};

}  // namespace cache
