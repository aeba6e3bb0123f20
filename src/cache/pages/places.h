// Places: which page-sized places on storage are in use. A place is looked up (PageMap, Frame), never
// computed from the page, so that a page may move and two pages may one day share one.
//
// Neighbouring pages get neighbouring places where possible (sequential reads become large): next to
// the place of the page before; else at the page's position in a new run; else any free one. Changed pages
// that leave memory together may move to neighbouring places (take_run), so that one Io writes them.
//
// Places that were ever used are at most twice as many as those in use, and kSlackPlaces, unless storage that
// is smaller than that is nearly full.
//
// A place that was given back still takes room on the device: garbage, until whoever works in the
// background discards it. While that Io is under way the places count as taken.
//
// A process and its children of fork, and theirs, share one device. It is divided into extents of places; each process
// hands out those of its own extents, which it claims one after the other in memory that all of them share.
//
// What a process's pages were when it made a child stays where the child finds it. freeze() notes the places in use:
// until the child has ended or execed, and all its own children, they are neither overwritten (may_overwrite) nor
// handed out again, also when the parent has given them back. A child owns none of the places that it finds its pages
// at: it may read them.
//
// Invariants
//  1 a place is given back only after its last Io completed
//  2 a place is at most one of: free, used, given back but frozen; a free one is in an extent of this process
// Thread contract: takes its own lock. Memory: four bits per place, one more for each living child.
#pragma once
#include <atomic>

#include "base/error.h"
#include "base/ids.h"
#include "sys/lifeline.h"
#include "sys/lock.h"

namespace cache {

using base::PageId;
using base::PlaceId;

class Places {
 public:
  static constexpr uint32_t kRunPlaces = 16;
  static constexpr uint32_t kSlackPlaces = 128 * kRunPlaces;

  // place_limit: how many fit the device, at most 2^31 - 2. `copied_by_fork`: a child has a device of its own, whose
  // content is that of its parent's; then nothing is ever frozen or shared. Errors: ENOMEM.
  base::Expected<void> open(uint64_t place_limit, bool copied_by_fork = false);
  void close();

  // A free place for `page`, `wish` if it is free (kNoPlace: no wish). kNoPlace: storage is full.
  PlaceId take(PageId page, PlaceId wish);
  // REQUIRES: taken, or of a page that this process was forked with; no Io under way for it. Giving back twice is a
  // CHECK.
  void give_back(PlaceId place);
  // May its content be replaced? Not if it is frozen, or another process's. Cost: a load as long as this process
  // neither is a child nor has one.
  bool may_overwrite(PlaceId place);

  struct Run {
    PlaceId first{};
    uint32_t count = 0;
  };
  // Up to `most` neighbouring free places, taken, to move pages to. Free stretches are used in turn, so that
  // those that were passed over as too short have time to grow; the longer, the more places are free. Count
  // 0: none was found nearby, or moves are paused; never when more than two thirds of the places are in use.
  // Cost: a look at up to 64 words. REQUIRES: most > 0.
  Run take_run(uint32_t most);
  // Writing to a place that take_run gave failed, which need not mean that pages cannot be written where
  // they are: the next take_run calls find nothing.
  void pause_moves();

  // Fork, between Partition::freeze and thaw. In the parent before it: takes the lock, and freezes what is in use for
  // the child to come. Without a descriptor to watch it it is taken to live as long as the newest one that is watched;
  // without such a one, or memory, for good. Returns whether it is watched itself.
  bool before_fork();
  void after_fork_in_parent();
  // Owns nothing yet. REQUIRES: before_fork in its parent.
  void after_fork_in_child();
  // The children made so far that still live, as far as this process looked.
  uint32_t child_count() const { return child_count_.load(std::memory_order_relaxed); }
  // Looks which of them have ended, and lets go of what was kept for them. Returns how many that were. Cost: a system
  // call for each that lives.
  uint32_t collect_children();
  // Is the child that is being made, or the last one, over? For whoever waits for it. REQUIRES: after_fork_in_parent.
  bool last_child_is_over();

  // Up to `most` neighbouring garbage places, taken; count 0 when no whole run of kRunPlaces is garbage. One at a time.
  Run take_garbage(uint32_t most);
  // The device has discarded the run. REQUIRES: from take_garbage().
  void give_back_discarded(Run run);
  // An extent that a child used which has ended; count 0: none. Its content is to be discarded before
  // give_back_extent().
  Run take_ended_extent();
  void give_back_extent(Run run);

  uint32_t used_count() const { return used_count_; }
  // How often take_run found places.
  uint32_t move_count() const { return move_count_.load(std::memory_order_relaxed); }
  // Is there more garbage than moving pages need to find room?
  bool too_much_garbage();
  uint32_t garbage_count() const { return garbage_count_.load(std::memory_order_relaxed); }

 private:
  // What processes share that descend from one by fork; all zeros at first.
  static constexpr uint32_t kMaxMembers = 4096;
  struct Family {
    std::atomic<uint32_t> member_end;  // bounds of those that ever were
    std::atomic<uint32_t> extent_end;
    std::atomic<uint32_t> parents[kMaxMembers];  // of each member; 0: no such member, kIsRoot, or number + 1
    std::atomic<uint32_t> owners[];              // of each extent; 0: nobody, kEnded, or number + 1
  };
  static constexpr uint32_t kIsRoot = ~uint32_t{0};
  static constexpr uint32_t kEnded = ~uint32_t{0};
  static constexpr uint32_t kNoMember = kMaxMembers;

  struct Child {
    Child* next;
    uint64_t bytes;  // of this record and `bits`
    sys::Lifeline lifeline;
    Child* joined;   // whose lifeline it has, if it has none of its own
    uint32_t joins;  // how many have this one's
    uint32_t member;
    uint32_t word_count;
    uint64_t bits[];  // places in use when it was made
  };

  static bool has(const uint64_t* bits, uint32_t place) {
    return (bits[place / 64] >> (place % 64) & 1) != 0;
  }
  static void set(uint64_t* bits, uint32_t place) { bits[place / 64] |= uint64_t{1} << (place % 64); }
  static void clear(uint64_t* bits, uint32_t place) { bits[place / 64] &= ~(uint64_t{1} << (place % 64)); }
  bool is_used(uint32_t place) const { return has(used_, place); }
  bool is_garbage(uint32_t place) const { return has(free_, place) && has(written_, place); }
  bool is_own(uint32_t place) const {
    return family_->owners[place / extent_places_].load(std::memory_order_relaxed) == self_ + 1;
  }
  uint32_t extent_count() const { return (limit_ + extent_places_ - 1) / extent_places_; }
  PlaceId taken(uint32_t place);
  Run taken_run(uint32_t first, uint32_t count);
  void freed(uint32_t place);
  bool roomy() const;
  void add_free(uint32_t first, uint32_t count);
  bool claim_extent();
  bool grow(uint32_t count, uint32_t& first);
  PlaceId find_free();
  // The first place in [from, end) that is free, or not; end if there is none.
  uint32_t next(bool free, uint32_t from, uint32_t end) const;
  uint32_t add_member();
  bool descends_from(uint32_t member, uint32_t ancestor) const;
  void end_member(uint32_t member);
  bool is_over(const Child& child) const {
    return (child.joined != nullptr ? child.joined : &child)->lifeline.is_over();
  }
  bool watch(Child& child);
  void thaw_unneeded();

  sys::Mutex mutex_;
  uint32_t limit_ = 0;
  uint32_t extent_places_ = 64;
  uint32_t end_ = 0;        // this process has no place at or past it
  uint32_t begin_ = 0;      // nor below this one
  uint32_t grow_next_ = 0;  // [grow_next_, grow_end_): of the extent claimed last, never used
  uint32_t grow_end_ = 0;
  uint32_t known_count_ =
      0;  // places of this process that were ever used, or are neighbours of such in a run
  uint32_t used_count_ = 0;
  uint32_t free_count_ = 0;
  uint32_t kept_count_ = 0;      // given back but frozen
  uint32_t cursor_ = 0;          // word where the search for a free place goes on
  uint32_t run_cursor_ = 0;      // place where the search for a free stretch goes on
  uint32_t paused_moves_ = 0;    // take_run calls that will find nothing
  uint32_t garbage_cursor_ = 0;  // run where the search for garbage goes on
  std::atomic<uint32_t> garbage_count_{0};
  std::atomic<uint32_t> move_count_{0};
  std::atomic<uint32_t> child_count_{0};
  std::atomic<uint32_t> ended_extents_{0};  // upper bound of those in state kEnded that this process knows of
  std::atomic<bool> overwrites_all_{
      true};  // nothing is frozen, and all places of this process's pages are its own
  bool copied_by_fork_ = false;
  uint32_t self_ = 0;                 // member
  uint32_t next_member_ = kNoMember;  // of the child that is being made
  Child* children_ = nullptr;
  Child* last_child_ = nullptr;   // null: not watched, or collected
  Run discarding_;                // from take_garbage() to give_back_discarded()
  bool frozen_for_good_ = false;  // for a child that is not watched
  Family* family_ = nullptr;
  uint64_t family_bytes_ = 0;
  // Bit maps by place, one after the other.
  uint64_t* used_ = nullptr;
  uint64_t* written_ = nullptr;  // taken since it was last discarded
  uint64_t* free_ = nullptr;
  uint64_t* frozen_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace cache
