// Policies: chooses which page of a partition leaves next, by one policy, or, if the policy is chosen while the program runs, by several side by side:
//
//   samples_    one for each candidate (policy_choice.h), with the pages that a hash assigns to it
//   follower_   all other pages, under the policy that is chosen
//
// Each of them has frames of its own. A sample that has more than its share of the frames gives up the next page; if there is none, the follower does.
// So each sees a smaller cache of the same program.
//
// Invariants
//  1 a frame that holds a page is held by the policy to which the page's number assigns it, and by no other
//  2 those of policy.h, for all of them together
//
// Thread contract: the partition's lock. Memory: that of the policies. Cost: that of the policy; with samples, also a hash of each loaded page and a
// look at a few bits; when another policy is chosen, a mapping and some ten nanoseconds for each frame.
#pragma once
#include "cache/policies/policy.h"
#include "cache/policies/policy_choice.h"

namespace cache {

class Policies {
 public:
  // Tells which page a frame holds.
  struct Holder {
    PageId (*page_of)(void* context, FrameId frame);
    void* context;
  };
  // As Policy::create. `choice` outlives this object, and says which policy is followed; null: always `kind`. Errors: ENOMEM.
  base::Expected<void> open(base::PolicyKind kind, PolicyChoice* choice, const Holder& holder,
                            uint32_t frame_count, uint32_t frame_limit, Budget& budget);
  void close();

  // See Policy.
  void grow(uint32_t frame_count);
  void loaded(FrameId frame, PageId page, bool wanted) { of_page(page).loaded(frame, page, wanted); }
  void left(FrameId frame, PageId page, Removal removal) { of_page(page).left(frame, page, removal); }
  void forget(PageId page) { of_page(page).forget(page); }
  void touched(FrameId frame) { of_frame(frame).touched(frame); }
  void cooled(FrameId frame, bool was_touched) { of_frame(frame).cooled(frame, was_touched); }
  // A batch of victims is under way for a while: taken() says that a page is in one, stays() that it does not leave after all. Each sample gives up
  // only what it has beyond its share, however many batches are under way.
  Policy::Named name_victim();
  bool goes_with(FrameId victim, FrameId other);
  void taken(FrameId frame) { of_frame(frame).taken(frame); }
  void stays(FrameId frame) { of_frame(frame).stays(frame); }
  // A page to cool; reduces `turns` by the number it took to find one. Each sample has its share of the turns, whether it has a page to cool or not,
  // since a policy that counts touches must be asked in proportion to its pages. kNoFrame: no turn is left, or no policy has a page to cool.
  FrameId name_to_cool(uint32_t& turns);
  FrameId name_to_clean(uint32_t reach) { return follower_->name_to_clean(reach); }
  FrameId ahead() const { return follower_->ahead(); }
  bool holds(FrameId frame) const;
  uint32_t held_count() const;

  // The page was read from storage or its origin, on demand or ahead of use.
  void note_read(PageId page) {
    if (sample_count_ > 0) count_read(page);
  }
  // An operation has read or written `bytes`.
  void note_io(uint64_t bytes) {
    ++report_.io.operations;
    report_.io.os_pages += static_cast<uint32_t>(bytes / base::kOsPageBytes);
  }
  PolicyKind follows() const { return followed_; }

 private:
  static constexpr uint32_t kMaxSamples = PolicyChoice::kCandidateCount;
  static constexpr uint32_t kReadsPerReport = 1024;
  // So many adjacent pages belong to the same policy, so that pages which are read in runs still are.
  static constexpr uint64_t kPagesOfGroup = 8;

  // The sample's number; sample_count_: the page belongs to the follower.
  uint32_t sample_of(PageId page) const;
  Policy& of_page(PageId page);
  Policy& of_frame(FrameId frame);
  Policy& member(uint32_t i) { return i < sample_count_ ? *samples_[i] : *follower_; }
  uint32_t member_count() const { return sample_count_ + 1; }
  bool has_beyond_its_share(const Policy& sample);
  void count_read(PageId page);
  void follow(PolicyKind kind);
  void share_anew(uint32_t share);

  Policy* follower_ = nullptr;
  Policy* samples_[kMaxSamples] = {};
  uint32_t sample_count_ = 0;  // 0 or kMaxSamples
  PolicyKind followed_ = PolicyKind::kClock;
  PolicyChoice* choice_ = nullptr;
  Holder holder_ = {};
  uint32_t share_ = 0;  // how many of PolicyChoice::kParts each sample has
  Budget* budget_ = nullptr;
  uint32_t frame_count_ = 0;
  uint32_t frame_limit_ = 0;
  uint32_t cool_turn_ = 0;       // whose turn it is to name a page to cool
  uint32_t vain_turn_ = 0;       // whose turn it is when all name victims in vain
  PolicyChoice::Report report_;  // the next one, so far
};

}  // namespace cache
