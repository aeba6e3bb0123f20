// Policy: chooses which pages of a partition leave when it needs frames.
//
// Hits leave no trace: compiled code only reads an entry of the table. They are known by sampling: the partition cools the
// entries of a page; the next thread to touch the page warms them (table.h), and whoever looks next finds it touched. A page
// that was just loaded is warm. Cooling costs the program a slow translation at the next touch, so only a few pages are
// cooled for each page that leaves.
//
//   name     victim                                                            memory a frame   source
//   clock    the first that was not touched since the hand passed it           2 bits           second chance: Corbato 1968
//   lru      the oldest of those that were not touched while they were in      12 bytes         an approximation, as in
//            the older half                                                                     operating system kernels
//   2q       pages leave in the order in which they came, except those that    12 + 4..11       2Q, VLDB 1994 (full version)
//            came back soon, which leave as by lru
//   random   any, with its neighbours                                          2 bits           for comparison
//   s3fifo   pages leave in the order in which they came, except those that    12 + 8..22       S3-FIFO, SOSP 2023
//            were touched or came back soon, which leave by second chance
//   nrlfu    the one that was found touched least often, including before it   12 + 8..22       NR-LFU, set-associative page
//            left and came back                                                                 cache, on samples
//
// A policy is a class that decides (private virtual functions); what all have in common is here:
//
//   on_load(frame, arrival)      a page has been loaded into the frame: warm, or cool if it was only read ahead
//   on_touched(frame)            a page that was named as a victim has been touched: it does not leave, and is cool now
//   on_cooled(frame, touched)    a page that next_to_cool named is cool now; `touched`: it was touched since it was last cooled
//   on_leave(frame, removal)     the frame's page has left. Returns a number to remember with it, if it is to be remembered
//   next_to_cool()               a page that should be cool by now, or kNoFrame; each call names another one
//   next_victim()                the page that should leave. It may stay: it may be pinned, held by a thread, or being written. So naming it moves it
//                                to where a touch would, and it is not named again at once
//   goes_with(victim, other)     may a neighbour of the victim's page leave with it, being no better, or hardly? Both are then written, freed and read
//                                back by fewer operations
//   next_to_clean(reach)         names, one by one, those of the next `reach` victims that it has not named before; then kNoFrame, after which it
//                                begins again. This is a guess: it may name other pages
//
// Invariants
//  1 only frames that hold a page are named: loaded, and not left
//  2 as long as nothing leaves, each of them is named sooner or later, whatever is touched (named_in_vain)
// Thread contract: the partition's lock. Cost: some ten nanoseconds a call, except for nrlfu, which occasionally looks at all pages.
//
// To add one: 1) policy_<name>.h with the class, over Policy, or over ListPolicy if it keeps pages in order 2) its line in base/policies.inc
// and its include in policy.cc 3) a line in the table above, and its name in base/options.inc 4) `make docs`. policy_test.cc tests all
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
  // For frames 0 .. frame_count - 1, later perhaps up to frame_limit; the policy will hold one in `one_in` frames at a time. Its memory is charged to
  // the budget. Errors: ENOMEM.
  static base::Expected<Policy*> create(base::PolicyKind kind, uint32_t frame_count, uint32_t frame_limit,
                                        Budget& budget, uint32_t one_in = 1);
  void destroy();
  // The policy will hold one in `one_in` frames from now on. It forgets what it remembered. REQUIRES: not less than the one_in of create.
  void set_share(uint32_t one_in);
  // Raises the number of frames. The policy remembers as many pages as before. REQUIRES: at most frame_limit.
  void grow(uint32_t frame_count);

  // `wanted`: a thread asked for the page; else it was read ahead.
  void loaded(FrameId frame, PageId page, bool wanted);
  void left(FrameId frame, PageId page, Removal removal);
  // The content of a page that is not in memory is gone: if it comes back, it counts as a new page.
  void forget(PageId page) { history_.take(page); }
  void touched(FrameId frame) { on_touched(frame); }
  void cooled(FrameId frame, bool was_touched) { on_cooled(frame, was_touched); }

  struct Named {
    FrameId frame = base::kNoFrame;  // kNoFrame: no frame holds a page
    bool even_touched = false;       // it leaves whether it was touched or not
  };
  Named name_victim();
  FrameId name_to_cool() { return next_to_cool(); }
  FrameId name_to_clean(uint32_t reach) { return next_to_clean(reach); }
  // A frame that will be named a few steps later, so that its data can be prefetched; kNoFrame: unknown.
  virtual FrameId ahead() const { return base::kNoFrame; }

  virtual bool goes_with(FrameId, FrameId) const { return false; }

  // taken: the frame's page is in a batch of victims, until it has left, or until stays says that it does not leave.
  void taken(FrameId frame);
  void stays(FrameId frame);
  // How many pages it holds that are in no batch of victims.
  uint32_t staying_count() const { return held_count_ - taken_count_; }

  bool holds(FrameId frame) const { return base::has_bit(held_, index(frame)); }
  uint32_t held_count() const { return held_count_; }
  // How often a victim was named since a page last left.
  uint32_t named_in_vain() const { return named_in_vain_; }

 protected:
  struct Arrival {
    bool wanted = true;
    std::optional<uint8_t> remembered;  // what on_leave returned when the page left, if that is still known
  };

  // How many pages that left are remembered, in sixteenths of the frames. A class that remembers pages defines its own.
  static constexpr uint32_t kRemembered16 = 0;
  // How much a class keeps for each frame, in zeroed memory that take_frame_memory gives it.
  static constexpr uint32_t kFrameBytes = 0;

  Policy() = default;
  ~Policy() = default;

  // Frames from this one on never held a page.
  uint32_t end() const { return end_; }
  // The first frame from `from` on that holds a page, wrapping around at the end. REQUIRES: held_count() > 0.
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
  uint64_t memory_bytes_ = 0;  // mapped; the part for frames beyond frame_count_ takes no memory
  uint64_t fixed_bytes_ = 0;   // the part of it that does not depend on the frames
  uint32_t frame_bytes_ = 0;
  char* history_memory_ = nullptr;
  uint64_t history_bytes_ = 0;
  uint32_t remembered_of_all_ = 0;  // how many pages a policy that holds all frames remembers
  bool remembers_ = false;
  Budget* budget_ = nullptr;
  PageHistory history_;
};

}  // namespace cache
