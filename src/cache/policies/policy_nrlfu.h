// NrlfuPolicy: the page that was found touched least often leaves; of several, the one that reached that count first
// (set-associative page cache, "set-associative caching", SA-NRLFU: a page that comes back continues with the count that it had).
//
//   lists     one for each count, 0 to 15
//   sweep_    pages are looked at in the order of their frames, a few for each page that leaves: if one was touched since the last look, its count
//             rises by one
//
// A page that was only read ahead has count 0. All counts, those of remembered pages too, are halved when three times as many pages have come as are
// held, and when a page with count 15 is found touched, so that formerly popular pages leave in the end. As many evicted pages are remembered as
// there are frames, if their count was not 0. A neighbour leaves with the victim if its count is higher by at most one.
#pragma once
#include "cache/policies/policy_lists.h"

namespace cache {

class NrlfuPolicy final : public ListPolicy<PageHistory::kMaxNumber + 1> {
  friend class Policy;

 private:
  static constexpr uint32_t kRemembered16 = 16;
  static constexpr uint8_t kMax = PageHistory::kMaxNumber;
  static constexpr uint32_t kComeForEach = 3;  // pages that come for each held one before counts are halved

  void add_to(FrameId frame) {
    if (node(frame).list == kMax) halve();
    move(frame, node(frame).list + 1);
  }
  void halve() {
    came_ = 0;
    for (uint8_t hits = 1; hits <= kMax; ++hits) move_all(hits, hits / 2);
    history().halve();
  }
  void on_load(FrameId frame, Arrival arrival) override {
    if (++came_ > kComeForEach * held_count()) halve();
    node(frame).seen = 0;
    const uint8_t before = arrival.remembered.value_or(0);
    append(frame, arrival.wanted && before < kMax ? before + 1 : before);
  }
  void on_touched(FrameId frame) override { add_to(frame); }
  void on_cooled(FrameId frame, bool touched) override {
    if (touched && node(frame).seen != 0) add_to(frame);
    node(frame).seen = 1;
  }
  std::optional<uint8_t> on_leave(FrameId frame, Removal) override {
    const uint8_t hits = node(frame).list;
    remove(frame);
    if (hits > 0) return hits;
    return std::nullopt;
  }
  FrameId next_to_cool() override {
    if (held_count() == 0) return base::kNoFrame;
    const FrameId frame = next_held(sweep_);
    sweep_ = index(frame) + 1;
    return frame;
  }
  // The list of the lowest count that has pages; if none of them can leave, the next one, and so on.
  uint8_t list_to_take() const {
    uint32_t skipped = held_count() > 0 ? named_in_vain() % (2 * held_count()) : 0;
    uint8_t last = 0;
    for (uint8_t hits = 0; hits <= kMax; ++hits) {
      if (count(hits) == 0) continue;
      last = hits;
      if (skipped < 2 * count(hits)) break;
      skipped -= 2 * count(hits);
    }
    return last;
  }
  Named next_victim() override {
    const uint8_t hits = list_to_take();
    return {.frame = take_oldest(hits, hits)};
  }
  bool goes_with(FrameId victim, FrameId other) const override {
    return node(other).list <= node(victim).list + 1;
  }
  FrameId next_to_clean(uint32_t reach) override { return clean_along(list_to_take(), reach); }

  uint32_t sweep_ = 0;
  uint32_t came_ = 0;  // since counts were halved
};

}  // namespace cache
