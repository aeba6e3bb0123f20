#include "cache/policies/policies.h"

#include <algorithm>

#include "base/mix.h"

namespace cache {
namespace {

// How often a policy may name each of its pages before it is assumed that none of them can leave now: once to cool them, once to take them, once
// more for pages touched meanwhile.
constexpr uint32_t kRounds = 3;
}  // namespace

base::Expected<void> Policies::open(PolicyKind kind, PolicyChoice* choice, const Holder& holder,
                                    uint32_t frame_count, uint32_t frame_limit, Budget& budget) {
  choice_ = choice;
  holder_ = holder;
  budget_ = &budget;
  frame_count_ = frame_count;
  frame_limit_ = frame_limit;
  followed_ = choice != nullptr ? choice->chosen() : kind;
  auto follower = Policy::create(followed_, frame_count, frame_limit, budget);
  if (!follower) return std::unexpected(follower.error());
  follower_ = *follower;
  if (choice == nullptr || frame_count < choice->parameters().least_frames) return {};
  share_ = choice->share();
  for (; sample_count_ < kMaxSamples; ++sample_count_) {
    auto sample = Policy::create(PolicyChoice::kCandidates[sample_count_], frame_count, frame_limit, budget,
                                 PolicyChoice::kParts / choice->large_share());
    if (!sample) return std::unexpected(sample.error());
    samples_[sample_count_] = *sample;
  }
  return {};
}

void Policies::close() {
  if (follower_ == nullptr) return;
  for (uint32_t i = 0; i < member_count(); ++i) member(i).destroy();
}

void Policies::grow(uint32_t frame_count) {
  frame_count_ = frame_count;
  for (uint32_t i = 0; i < member_count(); ++i) member(i).grow(frame_count);
}

uint32_t Policies::sample_of(PageId page) const {
  if (sample_count_ == 0) return 0;
  // Of any kParts aligned groups each sample has exactly its share, scattered among them as if drawn at random.
  constexpr uint64_t kSpread = 157;  // odd
  const uint64_t group = index(page) / kPagesOfGroup;
  const auto drawn = static_cast<uint32_t>((group * kSpread + base::mix(~(group / PolicyChoice::kParts))) %
                                           PolicyChoice::kParts);
  return std::min(drawn / share_, sample_count_);
}

Policy& Policies::of_page(PageId page) { return member(sample_of(page)); }

Policy& Policies::of_frame(FrameId frame) {
  for (uint32_t i = 0; i < sample_count_; ++i)
    if (samples_[i]->holds(frame)) return *samples_[i];
  return *follower_;
}

bool Policies::holds(FrameId frame) const {
  bool held = follower_->holds(frame);
  for (uint32_t i = 0; i < sample_count_; ++i) held |= samples_[i]->holds(frame);
  return held;
}

uint32_t Policies::held_count() const {
  uint32_t count = follower_->held_count();
  for (uint32_t i = 0; i < sample_count_; ++i) count += samples_[i]->held_count();
  return count;
}

bool Policies::has_beyond_its_share(const Policy& sample) {
  uint64_t staying = 0;
  for (uint32_t i = 0; i < member_count(); ++i) staying += member(i).staying_count();
  return uint64_t{sample.staying_count()} * PolicyChoice::kParts > staying * share_;
}

bool Policies::goes_with(FrameId victim, FrameId other) {
  const Policy& policy = of_frame(victim);
  if (!policy.holds(other) || !policy.goes_with(victim, other)) return false;
  return &policy == follower_ || has_beyond_its_share(policy);
}

Policy::Named Policies::name_victim() {
  if (sample_count_ == 0) return follower_->name_victim();
  if (held_count() == 0) return {};
  const auto may_give = [](const Policy& policy) {
    return policy.named_in_vain() < kRounds * policy.held_count();
  };
  for (uint32_t i = 0; i < sample_count_; ++i) {
    Policy& sample = *samples_[i];
    if (has_beyond_its_share(sample) && may_give(sample)) return sample.name_victim();
  }
  if (may_give(*follower_)) return follower_->name_victim();
  // All in turn, if they have pages.
  for (;;) {
    Policy& next = member(vain_turn_++ % member_count());
    if (next.held_count() > 0) return next.name_victim();
  }
}

FrameId Policies::name_to_cool(uint32_t& turns) {
  FrameId frame = base::kNoFrame;
  for (; turns > 0 && frame == base::kNoFrame; --turns) {
    const uint32_t turn = sample_count_ > 0 ? ++cool_turn_ % (PolicyChoice::kParts / share_) : 0;
    frame = member(std::min(turn, sample_count_)).name_to_cool();
    if (frame == base::kNoFrame && sample_count_ == 0) break;
  }
  return frame;
}

void Policies::count_read(PageId page) {
  const uint32_t sample = sample_of(page);
  if (sample < sample_count_) ++report_.sampled[sample];
  if (++report_.reads < kReadsPerReport) return;
  choice_->report(report_);
  report_ = {};
  if (const uint32_t share = choice_->share(); share != share_) share_anew(share);
  if (const PolicyKind chosen = choice_->chosen(); chosen != followed_) follow(chosen);
}

// Pages that now belong to another policy count as newly loaded there.
void Policies::share_anew(uint32_t share) {
  const uint32_t before = share_;
  for (uint32_t i = 0; i < sample_count_; ++i) samples_[i]->set_share(PolicyChoice::kParts / share);
  for (uint32_t i = 0; i < frame_count_; ++i) {
    const FrameId frame{i};
    if (!holds(frame)) continue;
    const PageId page = holder_.page_of(holder_.context, frame);
    share_ = before;
    Policy& from = of_page(page);
    share_ = share;
    Policy& to = of_page(page);
    if (&from == &to) continue;
    from.left(frame, page, Removal::kForgotten);
    to.loaded(frame, page, true);
  }
  share_ = share;
}

// The follower's pages count as newly loaded, in the order of their frames. If there is no memory, nothing changes until the next report.
void Policies::follow(PolicyKind kind) {
  auto created = Policy::create(kind, frame_count_, frame_limit_, *budget_);
  if (!created) return;
  for (uint32_t i = 0; i < frame_count_; ++i) {
    const FrameId frame{i};
    // The page's number matters only to a policy that remembers it, and this one remembers nothing yet.
    if (follower_->holds(frame)) (*created)->loaded(frame, PageId{}, true);
  }
  follower_->destroy();
  follower_ = *created;
  followed_ = kind;
}

}  // namespace cache
