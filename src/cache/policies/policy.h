// Policy: which pages of a partition leave when it needs frames.
//
// Hits leave no trace: compiled code reads an entry of the table and goes on. What is known of them is sampled. The partition cools the
// entries of a page; the first to touch it afterwards warms them (table.h), and whoever looks next finds it touched. A page
// that was just loaded is warm. Cooling costs the program a detour the next time, so pages are cooled for the sake of pages
// that leave, a few for each.
//
//   name     victim                                                            memory a frame   source
//   clock    the first that was not touched since the hand passed it           2 bits           second chance: Corbato 1968
//   lru      of those that were not touched while they were in the older       12 bytes         an approximation, as kernels
//            half, the oldest                                                                   have it
//   2q       pages that come leave in their order, but those that come back    12 + 4..11       2Q, VLDB 1994 (full version)
//            soon: these as by lru
//   random   any, and those beside it                                          2 bits           for comparison
//   s3fifo   pages that come leave in their order, but those that were         12 + 8..22       S3-FIFO, SOSP 2023
//            touched meanwhile or come back soon; these by second chance
//   nrlfu    the one that was found touched least often, also before it left   12 + 8..22       NR-LFU, set-associative page
//            and came back                                                                      cache, on samples
//
// A policy is a class that says what to do (private virtual functions); what is the same for all is here:
//
//   on_load(frame, arrival)      a page is in the frame from now on: warm, or cool if it was only read ahead
//   on_touched(frame)            a page that was named as a victim has been touched: it does not go, and is cool now
//   on_cooled(frame, touched)    a page that next_to_cool named is cool now; `touched`: it was touched since it was cooled before
//   on_leave(frame, removal)     the frame's page has left. Returns a number to remember of it, if it is to be remembered
//   next_to_cool()               a page that should be cool by now, or kNoFrame; each call names another one
//   next_victim()                the page that should go. It need not go: it may be pinned, held by a thread, or being written. So naming it puts it
//                                where a touch would, and it is not named again at once
//   goes_with(victim, other)     may a page beside the victim's go with it, since it is as bad, or nearly? Both are written, freed and read back by
//                                fewer operations then
//   next_to_clean(reach)         names, one after the other, those of the next `reach` victims that it has not named before; kNoFrame at their end, and
//                                then begins anew. This is a guess: it may name other pages
//
// Invariants
//  1 only frames that hold a page are named: loaded, and not left
//  2 as long as nothing leaves, each of them is named sooner or later, whatever is touched (named_in_vain)
// Thread contract: the partition's lock. Cost: some ten nanoseconds a call, except of nrlfu, which now and then looks at all pages.
//
// To add one: 1) policy_<name>.h with the class, over Policy, or over ListPolicy if it keeps pages in order 2) its line in base/policies.inc
// and its include in policy.cc 3) a line in the table above, and its name in base/options.inc 4) `make docs`. policy_test.cc tries all
// policies: add there what only the new one promises. e2e_policies runs programs with each.
#pragma once
#include <optional>

#include "base/bits.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/options.h"
#include "cache/pages/budget.h"
#include "cache/pages/removal.h"
#include "cache/policies/page_history.h"

namespace cache {

using base::FrameId;
using base::PageId;

class Policy {
 public:
  // For frames 0 .. frame_count - 1, of which there may be up to frame_limit later; the policy will hold one of `one_in` frames at a time. Its memory is
  // charged to the budget. Errors: ENOMEM.
  static base::Expected<Policy*> create(base::PolicyKind kind, uint32_t frame_count, uint32_t frame_limit,
                                        Budget& budget, uint32_t one_in = 1);
  void destroy();
  // The policy will hold one of `one_in` frames from now on. It forgets what it remembered. REQUIRES: not less than the one_in of create.
  void set_share(uint32_t one_in);
  // There are more frames. The policy remembers as many pages as before. REQUIRES: at most frame_limit.
  void grow(uint32_t frame_count);

  // `wanted`: a thread asked for the page; else it was read ahead.
  void loaded(FrameId frame, PageId page, bool wanted);
  void left(FrameId frame, PageId page, Removal removal);
  // The content of a page that is not in memory is gone: when it comes back it is a new one.
  void forget(PageId page) { history_.take(page); }
  void touched(FrameId frame) { on_touched(frame); }
  void cooled(FrameId frame, bool was_touched) { on_cooled(frame, was_touched); }

  struct Named {
    FrameId frame = base::kNoFrame;  // kNoFrame: no frame holds a page
    bool even_touched = false;       // it goes, touched or not
  };
  Named name_victim();
  FrameId name_to_cool() { return next_to_cool(); }
  FrameId name_to_clean(uint32_t reach) { return next_to_clean(reach); }
  // A frame that will be named in some steps, so that what is looked at then can be prefetched; kNoFrame: unknown.
  virtual FrameId ahead() const { return base::kNoFrame; }

  virtual bool goes_with(FrameId, FrameId) const { return false; }

  // The frame's page is in a batch of victims, until it has left or stays after all.
  void taken(FrameId frame);
  void stays(FrameId frame);
  // How many pages it holds that are in no batch of victims.
  uint32_t staying_count() const { return held_count_ - taken_count_; }

  bool holds(FrameId frame) const { return base::has_bit(held_, index(frame)); }
  uint32_t held_count() const { return held_count_; }
  // How often a victim was named since a page left last.
  uint32_t named_in_vain() const { return named_in_vain_; }

 protected:
  struct Arrival {
    bool wanted = true;
    std::optional<uint8_t> remembered;  // what on_leave said when the page left, if that is still known
  };

  // How many pages that left are remembered, in sixteenths of the frames. A class that remembers has its own.
  static constexpr uint32_t kRemembered16 = 0;
  // How much a class keeps for each frame, in memory of zeros that it is given by take_frame_memory.
  static constexpr uint32_t kFrameBytes = 0;

  Policy() = default;
  ~Policy() = default;

  // Frames from here on never held a page.
  uint32_t end() const { return end_; }
  // The first frame from `from` on that holds a page; behind the last one, the first of all. REQUIRES: held_count() > 0.
  FrameId next_held(uint32_t from) const;
  PageHistory& history() { return history_; }

 private:
  virtual void take_frame_memory(char*) {}
  virtual void on_load(FrameId, Arrival) {}
  virtual void on_touched(FrameId) {}
  virtual void on_cooled(FrameId, bool) {}
  virtual std::optional<uint8_t> on_leave(FrameId, Removal) { return std::nullopt; }
  virtual FrameId next_to_cool() { return base::kNoFrame; }
  virtual Named next_victim() = 0;
  virtual FrameId next_to_clean(uint32_t reach) = 0;

  static uint32_t remembered_by(bool remembers, uint32_t of_all, uint32_t one_in);
  template <class Class>
  static base::Expected<Policy*> create_one(uint32_t frame_count, uint32_t frame_limit, Budget& budget,
                                            uint32_t one_in);
  uint64_t charged_bytes() const {
    return base::round_up(fixed_bytes_ + uint64_t{frame_count_} * frame_bytes_ + frame_count_ / 4,
                          base::kOsPageBytes);
  }

  uint64_t* held_ = nullptr;   // a bit for each frame
  uint64_t* taken_ = nullptr;  // the same
  uint32_t frame_count_ = 0;
  uint32_t held_count_ = 0;
  uint32_t taken_count_ = 0;
  uint32_t end_ = 0;
  uint32_t named_in_vain_ = 0;
  uint64_t memory_bytes_ = 0;  // mapped; the part for frames that there are not yet takes no memory
  uint64_t fixed_bytes_ = 0;   // the part of it that does not depend on the frames
  uint32_t frame_bytes_ = 0;
  char* history_memory_ = nullptr;
  uint64_t history_bytes_ = 0;
  uint32_t remembered_of_all_ = 0;  // how many pages a policy of all frames remembers
  bool remembers_ = false;
  Budget* budget_ = nullptr;
  PageHistory history_;
};

}  // namespace cache
