// Frames: what a partition does with its policies, without a cache: which page is in which frame, and which pages were touched. Also traces of
// accesses as programs make them.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/check.h"
#include "cache/policies/policies.h"

namespace cache {

// nullopt: the policy is chosen while the program runs.
using Asked = std::optional<PolicyKind>;
inline std::string name_of(Asked asked) { return asked ? base::name_of(*asked) : "auto"; }
// With these, even small caches have samples.
inline constexpr PolicyChoice::Parameters kSmall = {
    .least_sample = 1, .least_frames = 8, .least_reads = 4096, .warm_up = 0};

// Frames are taken in ascending order, going round, so that a
// frame that was just freed is not the next to be taken.
class Frames {
 public:
  Frames(Asked asked, uint32_t count, const PolicyChoice::Parameters& parameters = kSmall)
      : pages_(count, kNone), warm_(count), pinned_(count) {
    if (!asked) choice.begin(parameters, count, 1);
    const Policies::Holder holder = {[](void* frames, FrameId frame) {
                                       return PageId{static_cast<Frames*>(frames)->pages_[index(frame)]};
                                     },
                                     this};
    auto opened = policy->open(asked.value_or(PolicyKind::kClock), asked ? nullptr : &choice, holder, count,
                               count, budget);
    CHECK(opened.has_value());
  }
  ~Frames() {
    policy->close();
    EXPECT_EQ(budget.used_bytes(), 0u);
  }

  bool has(uint64_t page) const { return frames_.contains(page); }
  bool was_there(uint64_t page) const { return known_.contains(page); }
  uint32_t frame_of(uint64_t page) const { return frames_.at(page); }
  void pin(uint64_t page, bool pinned) { pinned_[frames_.at(page)] = pinned; }

  // Returns whether it was a hit.
  bool access(uint64_t page) {
    if (const auto found = frames_.find(page); found != frames_.end()) {
      warm_[found->second] = true;
      return true;
    }
    load(page, true);
    return false;
  }
  // `is_alone`: the page is read by an operation of its own.
  void load(uint64_t page, bool wanted, bool is_alone = true) {
    while (frames_.size() == pages_.size()) evict();
    while (pages_[next_free_] != kNone) next_free_ = (next_free_ + 1) % static_cast<uint32_t>(pages_.size());
    pages_[next_free_] = page;
    warm_[next_free_] = wanted;
    frames_[page] = next_free_;
    policy->loaded(FrameId{next_free_}, PageId{page}, wanted);
    if (known_.insert(page).second) return;
    policy->note_read(PageId{page});
    if (is_alone) policy->note_io(base::kOsPageBytes);
  }
  // Evicts `batch` pages together. REQUIRES: so many are not pinned.
  void evict() {
    std::vector<uint32_t> victims;
    for (uint32_t i = 0; i < batch; ++i) {
      const uint32_t frame = take_victim();
      victims.push_back(frame);
      pinned_[frame] = true;  // not twice
      policy->taken(FrameId{frame});
    }
    for (const uint32_t frame : victims) leave(frame, Removal::kEvicted);
  }
  uint32_t take_victim() {
    cool(4);
    for (uint32_t tries = 0; tries < 100 * pages_.size() + 100; ++tries) {
      const uint32_t frame = name();
      if (frame != kNoVictim) return frame;
    }
    ADD_FAILURE() << "no page can leave";
    abort();
  }
  void cool(uint32_t most) {
    uint32_t turns = most;
    for (;;) {
      const FrameId frame = policy->name_to_cool(turns);
      if (frame == base::kNoFrame) return;
      CHECK_NE(pages_[index(frame)], kNone);
      const bool was_warm = warm_[index(frame)];
      warm_[index(frame)] = false;
      policy->cooled(frame, was_warm);
    }
  }
  // The frame that is named, if its page can leave.
  uint32_t name() {
    const Policy::Named named = policy->name_victim();
    const uint32_t frame = index(named.frame);
    CHECK_LT(frame, pages_.size());
    CHECK_NE(pages_[frame], kNone);
    last_named = frame;
    if (pinned_[frame]) return kNoVictim;
    if (named.even_touched || !warm_[frame]) return frame;
    warm_[frame] = false;
    policy->touched(named.frame);
    return kNoVictim;
  }
  void leave(uint32_t frame, Removal removal) {
    policy->left(FrameId{frame}, PageId{pages_[frame]}, removal);
    frames_.erase(pages_[frame]);
    pages_[frame] = kNone;
    pinned_[frame] = false;
  }
  void touch_all() { warm_.assign(warm_.size(), true); }
  const std::map<uint64_t, uint32_t>& resident() const { return frames_; }

  static constexpr uint32_t kNoVictim = ~uint32_t{0};
  Budget budget;
  PolicyChoice choice;
  Policies policies;
  Policies* const policy = &policies;
  uint32_t last_named = 0;
  uint32_t batch = 1;

 private:
  static constexpr uint64_t kNone = ~uint64_t{0};
  std::vector<uint64_t> pages_;
  std::vector<bool> warm_, pinned_;
  std::map<uint64_t, uint32_t> frames_;
  std::set<uint64_t> known_;  // pages that were resident before
  uint32_t next_free_ = 0;
};

inline std::string title(const testing::TestParamInfo<Asked>& info) {
  return "policy_" + name_of(info.param);
}
inline std::vector<Asked> all_that_may_be_asked() {
  std::vector<Asked> all(std::begin(base::kPolicyKinds), std::end(base::kPolicyKinds));
  all.push_back(std::nullopt);
  return all;
}

using Trace = std::vector<uint64_t>;

// Returns the number of misses.
inline uint64_t run(Frames& frames, const Trace& trace) {
  uint64_t misses = 0;
  for (const uint64_t page : trace) misses += !frames.access(page);
  return misses;
}

inline Trace skewed(uint64_t pages, size_t length) {
  Trace trace;
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> uniform(0, 1);
  // Roughly Zipf with exponent 1: the inverse of its cumulative distribution is an exponential.
  for (size_t i = 0; i < length; ++i)
    trace.push_back(static_cast<uint64_t>(std::exp(uniform(random) * std::log(static_cast<double>(pages)))) *
                    0x9e3779b1 % (1 << 20));
  return trace;
}

inline Trace looped(uint64_t pages, size_t length) {
  Trace trace;
  for (size_t i = 0; i < length; ++i) trace.push_back(i % pages);
  return trace;
}

inline Trace scanned(uint64_t hot, size_t length) {
  Trace trace;
  std::mt19937_64 random(4);
  uint64_t once = 1 << 24;
  while (trace.size() < length) trace.push_back(random() % 2 == 0 ? random() % hot : once++);
  return trace;
}

}  // namespace cache
