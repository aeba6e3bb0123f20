#include "cache/policies.h"

#include "base/mix.h"

namespace cache {
namespace {

// How often a policy names each of its pages until it is taken for granted that none of them can leave now: once to cool them, once to take
// them, once for what others warmed.
constexpr uint32_t kRounds = 3;
// Of so many pages that are to be cool one is a sample's.
constexpr uint32_t kCooledForSample = 16;

}  // namespace

base::Expected<void> Policies::open(PolicyKind kind, PolicyChoice* choice, uint32_t frame_count,
                                    uint32_t frame_limit, Budget& budget) {
  choice_ = choice;
  budget_ = &budget;
  frame_count_ = frame_count;
  frame_limit_ = frame_limit;
  followed_ = choice != nullptr ? choice->chosen() : kind;
  auto follower = Policy::create(followed_, frame_count, frame_limit, budget);
  if (!follower) return std::unexpected(follower.error());
  follower_ = *follower;
  if (choice == nullptr || frame_count < choice->parameters().least_frames) return {};
  for (; sample_count_ < kMostSamples; ++sample_count_) {
    auto sample = Policy::create(PolicyChoice::kCandidates[sample_count_], frame_count, frame_limit, budget,
                                 choice->parameters().one_in);
    if (!sample) return std::unexpected(sample.error());
    samples_[sample_count_] = *sample;
  }
  return {};
}

void Policies::close() {
  for (uint32_t i = 0; i < member_count(); ++i) member(i).destroy();
}

void Policies::grow(uint32_t frame_count) {
  frame_count_ = frame_count;
  for (uint32_t i = 0; i < member_count(); ++i) member(i).grow(frame_count);
}

uint32_t Policies::sample_of(PageId page) const {
  if (sample_count_ == 0) return 0;
  // Not what PageHistory takes of a page's hash.
  const uint64_t drawn = base::mix(~index(page)) % choice_->parameters().one_in;
  return drawn < sample_count_ ? static_cast<uint32_t>(drawn) : sample_count_;
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

Policy::Named Policies::name_victim() {
  if (sample_count_ == 0) return follower_->name_victim();
  const uint32_t held = held_count();
  if (held == 0) return {};
  const auto may_give = [](const Policy& policy) {
    return policy.named_in_vain() < kRounds * policy.held_count();
  };
  for (uint32_t i = 0; i < sample_count_; ++i) {
    Policy& sample = *samples_[i];
    if (uint64_t{sample.held_count()} * choice_->parameters().one_in > held && may_give(sample))
      return sample.name_victim();
  }
  if (may_give(*follower_)) return follower_->name_victim();
  // Any that has a page, in turn.
  for (;;) {
    Policy& next = member(vain_turn_++ % member_count());
    if (next.held_count() > 0) return next.name_victim();
  }
}

FrameId Policies::name_to_cool() {
  if (sample_count_ == 0) return follower_->name_to_cool();
  ++cool_turn_;
  const uint32_t first =
      cool_turn_ % kCooledForSample == 0 ? cool_turn_ / kCooledForSample % sample_count_ : sample_count_;
  for (uint32_t i = 0; i < member_count(); ++i) {
    const FrameId frame = member((first + i) % member_count()).name_to_cool();
    if (frame != base::kNoFrame) return frame;
  }
  return base::kNoFrame;
}

void Policies::count_read(PageId page) {
  const uint32_t sample = sample_of(page);
  if (sample < sample_count_) ++sampled_reads_[sample];
  if (++reads_ < kReadsPerReport) return;
  choice_->report(sampled_reads_, reads_);
  for (uint32_t& reads : sampled_reads_) reads = 0;
  reads_ = 0;
  if (const PolicyKind chosen = choice_->chosen(); chosen != followed_) follow(chosen);
}

// The pages are as if they had come just now, in the order of their frames. Where there is no memory all stays as it was, until the next report.
void Policies::follow(PolicyKind kind) {
  auto created = Policy::create(kind, frame_count_, frame_limit_, *budget_);
  if (!created) return;
  for (uint32_t i = 0; i < frame_count_; ++i) {
    const FrameId frame{i};
    // Which page it is asks only what remembers pages, and this one remembers none yet.
    if (follower_->holds(frame)) (*created)->loaded(frame, PageId{}, true);
  }
  follower_->destroy();
  follower_ = *created;
  followed_ = kind;
}

}  // namespace cache
