// RandomPolicy: a random page leaves, touched or not, with its neighbours. It costs nothing and knows nothing: by how much other policies are better
// shows what their knowledge is worth.
//
// After as many failed attempts as there are pages, pages are named in the order of their frames.
#pragma once
#include "base/mix.h"
#include "cache/policies/policy.h"

namespace cache {

class RandomPolicy final : public Policy {
 private:
  // Instead of a frame without a page the next one with a page is named: frames after a gap are likelier, but gaps are few.
  FrameId random_frame() {
    state_ += base::kMixStep;
    return next_held(static_cast<uint32_t>(base::mix(state_) % end()));
  }
  Named next_victim() override {
    const FrameId frame = named_in_vain() < held_count() ? random_frame() : next_held(last_ + 1);
    last_ = index(frame);
    return {.frame = frame, .even_touched = true};
  }
  bool goes_with(FrameId, FrameId) const override { return true; }
  // The next victims are unknown.
  FrameId next_to_clean(uint32_t) override { return held_count() > 0 ? random_frame() : base::kNoFrame; }

  uint64_t state_ = 0;
  uint32_t last_ = 0;
};

}  // namespace cache
