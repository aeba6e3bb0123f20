// Places: which page-sized places on storage are in use. A page's place is looked up (PageMap, Frame), never computed from the page, so that pages
// can move.
//
// Choice. Neighbouring pages get neighbouring places where possible, so that sequential reads become large: the place after that of the preceding
// page; else the page's position in a new run; else any free place. Changed pages that leave memory together may move to neighbouring places
// (take_run), so that one Io writes them. A process takes never-used places only while those it has used so far are at most about twice those in use
// plus kSlackPlaces, unless none of them is free.
//
// Garbage. A place that was given back still takes room on the device until the background thread discards it. While that Io is under way, its places
// count as used.
//
// Fork. A process and all its descendants share one device. It is divided into extents of places, and each process hands out places of its own
// extents, which it claims in memory that they all share. A child finds its pages where they were when it was forked: before_fork() notes the places
// in use, and until the child and all its descendants have ended or execed, these are frozen: neither overwritten (may_overwrite) nor handed out
// again, even if the parent gives them back. A child does not own the places at which it finds its pages; it only reads them.
//
// Invariants
//  1 a place is given back only after its last Io completed
//  2 a place is at most one of: free, used, given back but frozen; a free place is in an extent of this process
// Thread contract: takes its own lock. Memory: four bits for each place, and one more for each living child.
#pragma once
#include <atomic>

#include "base/bits.h"
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

  // place_limit: how many places the device has; those beyond 2^31 - 32 are not used. `copied_by_fork`: a child gets a device of its own with the
  // content of its parent's, so nothing is ever frozen or shared. Errors: ENOMEM.
  base::Expected<void> open(uint64_t place_limit, bool copied_by_fork = false);
  void close();

  // Takes a free place for `page`: `wish` if that is free (kNoPlace: no wish). Returns kNoPlace if storage is full.
  PlaceId take(PageId page, PlaceId wish);
  // REQUIRES: this process took the place, or was forked with a page there; no Io is under way for it. Giving back twice is a CHECK.
  void give_back(PlaceId place);
  // May the place be overwritten? Not if it is frozen, or another process's. Cost: a load, as long as this process neither is a child nor has one.
  bool may_overwrite(PlaceId place);

  struct Run {
    PlaceId first{};
    uint32_t count = 0;
  };
  // Takes up to `most` neighbouring free places, to move pages to. Free stretches are used in turn, so that those skipped as too short have time to
  // grow; the more places are free, the longer a stretch has to be. Count 0: none was found nearby, moves are paused, or more than two thirds of the
  // places are in use and the process may not grow. Cost: a look at up to 64 words. REQUIRES: most > 0.
  Run take_run(uint32_t most);
  // To be called when a write to a place from take_run has failed: the next take_run calls find nothing, since pages can still be written where they
  // are.
  void pause_moves();

  // Fork. The three are called between Partition::freeze and thaw, the first one in the parent before the fork: it takes the lock, which the others
  // release, and freezes the places in use for the coming child. A child for which there is no descriptor to watch it with is assumed to live as long
  // as the newest watched child; if there is none, or no memory for its record, for ever. Returns whether the child itself is watched.
  bool before_fork();
  void after_fork_in_parent();
  // The child owns no extent yet. REQUIRES: its parent called before_fork.
  void after_fork_in_child();
  // How many children live, as of the last collect_children().
  uint32_t child_count() const { return child_count_.load(std::memory_order_relaxed); }
  // Finds out which children have ended, and releases what was kept for them. Returns how many these were, and counts them (cache.snapshots_ended).
  // Cost: a system call for each living child.
  uint32_t collect_children();
  // Has the child that was forked last ended or execed? For whoever waits for it. REQUIRES: after_fork_in_parent.
  bool last_child_is_over();

  // Takes up to `most` neighbouring garbage places, whole runs of kRunPlaces; count 0 if there is no such run. REQUIRES: the previous run was given
  // back (give_back_discarded).
  Run take_garbage(uint32_t most);
  // The device has discarded the run. REQUIRES: the run is from take_garbage().
  void give_back_discarded(Run run);
  // Takes an extent of a process that has ended; count 0 if there is none. The caller discards its content, and then calls give_back_extent().
  Run take_ended_extent();
  void give_back_extent(Run run);

  uint32_t used_count() const { return used_count_; }
  // How often take_run has found places.
  uint32_t move_count() const { return move_count_.load(std::memory_order_relaxed); }
  // Is there more garbage than moving pages needs for room?
  bool too_much_garbage();
  uint32_t garbage_count() const { return garbage_count_.load(std::memory_order_relaxed); }

 private:
  // Shared by all processes that descend from one by fork; all zeros at first.
  static constexpr uint32_t kMaxMembers = 4096;
  struct Family {
    std::atomic<uint32_t> member_end;  // all member numbers that were ever used are below it
    std::atomic<uint32_t> extent_end;  // all extents that were ever claimed are below it
    std::atomic<uint32_t>
        parents[kMaxMembers];  // by member: 0: the number is unused; kIsRoot; or the parent's number + 1
    std::atomic<uint32_t> owners[];  // by extent: 0: nobody; kEnded; or the owner's number + 1
  };
  static constexpr uint32_t kIsRoot = ~uint32_t{0};
  static constexpr uint32_t kEnded = ~uint32_t{0};
  static constexpr uint32_t kNoMember = kMaxMembers;

  struct Child {
    Child* next;
    uint64_t bytes;  // of this record and `bits`
    sys::Lifeline lifeline;
    Child* joined;   // the child whose lifeline it shares, if it has none of its own
    uint32_t joins;  // how many children share this one's lifeline
    uint32_t member;
    uint32_t word_count;
    uint64_t bits[];  // places in use when it was forked
  };

  bool is_used(uint32_t place) const { return base::has_bit(used_, place); }
  bool is_garbage(uint32_t place) const {
    return base::has_bit(free_, place) && base::has_bit(written_, place);
  }
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
  // The first place in [from, end) that is free (or, with `free` false, that is not); end if there is none.
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
  uint32_t begin_ = 0;  // all places of this process are in [begin_, end_)
  uint32_t end_ = 0;
  uint32_t grow_next_ = 0;  // [grow_next_, grow_end_): places of the extent claimed last that were never used
  uint32_t grow_end_ = 0;
  uint32_t known_count_ = 0;  // places of this process in runs that were ever used
  uint32_t used_count_ = 0;
  uint32_t free_count_ = 0;
  uint32_t kept_count_ = 0;      // given back but frozen
  uint32_t cursor_ = 0;          // word where the search for a free place resumes
  uint32_t run_cursor_ = 0;      // place where the search for a free stretch resumes
  uint32_t paused_moves_ = 0;    // take_run calls that will find nothing
  uint32_t garbage_cursor_ = 0;  // run where the search for garbage resumes
  std::atomic<uint32_t> garbage_count_{0};
  std::atomic<uint32_t> move_count_{0};
  std::atomic<uint32_t> child_count_{0};
  std::atomic<uint32_t> ended_extents_{0};  // upper bound of the kEnded extents that this process knows of
  // Nothing is frozen, and all places of this process's pages are its own.
  std::atomic<bool> overwrites_all_{true};
  bool copied_by_fork_ = false;
  uint32_t self_ = 0;                 // this process's number among the members
  uint32_t next_member_ = kNoMember;  // the number of the child that is being forked
  Child* children_ = nullptr;
  Child* last_child_ = nullptr;   // null: not watched, or collected
  Run discarding_;                // from take_garbage() to give_back_discarded()
  bool frozen_for_good_ = false;  // there is a child of which nothing tells when it ends
  Family* family_ = nullptr;
  uint64_t family_bytes_ = 0;
  // Bit maps with a bit for each place, adjacent in memory.
  uint64_t* used_ = nullptr;
  uint64_t* written_ = nullptr;  // taken since it was last discarded
  uint64_t* free_ = nullptr;
  uint64_t* frozen_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace cache
