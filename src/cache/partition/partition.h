// Partition: one share of a cache: its index, frames, replacement policy and places.
//
// Every edge of a frame's life (frame.h) is taken here, under mutex_. I/O, hashing and waiting happen without it. The protocols:
//
// Load     1 find the page. In memory: open its entries, done; being evicted or written: rescue it, done; loading: wait, from 1
//          2 take a free frame; if there is none, evict, from 1   3 claim the frame, map page -> frame, unlock
//          4 read the page from its place; if it has none, read it from its origin, or fill it with zeros
//          5 take its fingerprints   6 lock; the frame is RESIDENT, publish the entries
//          For a load that is begun, whoever polls its queue takes steps 5 and 6 (load_queue.h)
// Evict    1 choose victims, lock their entries and states   2 barrier   3 rescue the victims that threads hold
//          4 ask the kernel which OS pages of watched frames were not stored to; compare the fingerprints of all others
//          5 unchanged victims: FREE, and their frames are watched from now on if most of the batch is unchanged; changed ones: their
//            fingerprints become unknown, their state WRITING, and places are chosen (write_plan.h)
//          6 write what has changed   7 written victims: FREE, unless they were rescued meanwhile; failed ones: RESIDENT
// Clean    1 set io of pages that are cooling   2 barrier; skip pages that threads hold   3 copy what has changed   4 write the copies
//          5 the fingerprints are those of the copies; clear io. A page that nobody can have touched since is verified: an eviction
//            neither hashes nor writes it
// Watch    A frame is watched while its memory is protected (sys/write_watch.h): an OS page that the kernel reports as not stored to is
//          as it was loaded, and needs no fingerprint, neither at the load nor at eviction
//          1 an evictor that has found a page unchanged and not rescued protects its frame under mutex_; the frame is watched, and FREE,
//            before mutex_ is released   2 loads store through another mapping, which does not lift the protection   3 the first other
//            store lifts the protection; only step 1 sets it again
// Discard  1 lock entries and states   2 barrier   3 held or pinned pages are zeroed in place, and their places given back
//          4 all others: FREE, their places given back
// Forget   1 lock entries and states   2 barrier   3 held pages stay EVICTING, and gone, so that nobody rescues them; the caller
//            calls again later   4 all others: FREE, their places given back
//
// Invariants
//  1 a fingerprint is that of what a load of the OS page would return now, or unknown: it becomes known in step 5 of Load and of Clean, and
//    unknown before step 6 of Evict and step 4 of Clean
//  2 while a page is in a frame, the frame holds its place; otherwise the PageMap does
//  3 a place is given back only when no Io is under way for it: not while io is set
//  4 a place that is frozen for a child of fork, or was inherited from a parent, is not written to: its page moves
//  5 a page that moves on storage has both places while io is set: the frame holds the old one until the write to the new one has succeeded.
//    Then one of the two is given back
#pragma once
#include <algorithm>
#include <atomic>
#include <optional>

#include "cache/holders.h"
#include "cache/origins.h"
#include "cache/pages/budget.h"
#include "cache/pages/frame_pool.h"
#include "cache/pages/layout.h"
#include "cache/pages/page_map.h"
#include "cache/pages/places.h"
#include "cache/pages/regions.h"
#include "cache/pages/table.h"
#include "cache/partition/load_queue.h"
#include "cache/partition/workspace.h"
#include "cache/policies/ghosts.h"
#include "cache/policies/policies.h"

namespace cache {

class Partition;

// What all partitions of a cache share.
struct Shared {
  size_t page_bytes = base::kOsPageBytes;
  unsigned region_shift = 0;  // aligned runs of 1 << region_shift pages belong to one partition
  uint32_t read_ahead_pages = 0;
  uint64_t chaos_seed = 0;  // 0: off
  bool large_pages = false;
  base::PolicyKind policy = base::PolicyKind::kClock;
  PolicyChoice policy_choice;  // if it is on, it overrides `policy`
  Partition* partitions = nullptr;
  uint32_t partition_count = 0;
  storage::Device* device = nullptr;
  Table* table = nullptr;
  Holders* holders = nullptr;
  Origins* origins = nullptr;  // null: all pages begin as zeros
  Closed* closed = nullptr;    // null: nothing is
  PageDirectory directory;
  Places places;
  Regions regions;
  Budget budget;
  LoadQueues loads;
  sys::WriteWatch watch;          // if it is closed, pages are compared
  char* waste = nullptr;          // see Cache::waste
  char* clean_copies = nullptr;   // clean_copy_bytes(), of the background thread
  sys::EventCount low_on_frames;  // wakes whoever evicts in the background
  // Failed writes are not logged before this time of the monotonic clock.
  std::atomic<uint64_t> next_write_message_ns{0};

  Partition& of(PageId page) const;
  // Are the two pages in one region, and so in one partition?
  bool same_region(PageId one, PageId other) const {
    return index(one) >> region_shift == index(other) >> region_shift;
  }
  // How much memory the copies of one cleaning take: as many pages as fit in kCleanCopyBytes, and at least one.
  size_t clean_copy_bytes() const { return std::max(page_bytes, kCleanCopyBytes); }

  static constexpr size_t kCleanCopyBytes = 256 * 1024;
};

class Partition {
 public:
  // With frame_count frames, and address space for frame_limit. Errors: ENOMEM, and those of FramePool::open.
  base::Expected<void> open(Shared& shared, uint32_t frame_count, uint32_t frame_limit);
  void close();
  // Sets how many frames the partition may have. If that is fewer than before, memory is given back as the budget demands. False: a fork has lent
  // the memory file, and no other one can be had for more frames now. REQUIRES: frame_count <= frames().frame_limit().
  bool resize(uint32_t frame_count);
  // How many frames it keeps however much of the budget is used for other things: half, but at least as many as a loop over many arrays holds at once.
  uint32_t least() const {
    constexpr uint32_t kHeldAtOnce = 16;
    const uint32_t all = frame_count();
    return std::max((all + 1) / 2, std::min(all, kHeldAtOnce));
  }
  // If the budget is exceeded, gives back the memory of a few free frames. Returns whether it gave any back.
  bool give_memory_back();

  // Makes the page resident with open entries, and returns its memory, which is valid while the caller holds the page; with `pin` the page is also
  // pinned, and its memory valid until unpin(). Errors: EIO and others of a read (the message names device and page); ENOSPC and others when
  // nothing can be evicted because writes fail; ENOMEM when all frames are pinned or held; ESTALE, the page is gone (Origins).
  base::Expected<char*> load(PageId page, Workspace& workspace, Stream& stream, bool pin);
  // The same without `pin`, and without waiting for the read.
  //   kDone      the page was resident with open entries a moment ago
  //   kUnderWay  its load has begun. ended(context) is called, when the page is resident or the load has failed, by the thread that finishes
  //              the load (load_queue.h), perhaps before this returns
  //   kWait      another load of the page is under way
  //   kNoRoom    the queue is full, or all frames are pinned or held: try again when something has ended
  // May evict, and wait for writes. REQUIRES: only the caller begins loads through this queue. Errors: those of load, except those of reads: if a
  // load that was begun fails, the next load() of the page says why.
  enum class Begun { kDone, kUnderWay, kWait, kNoRoom };
  base::Expected<Begun> begin_load(PageId page, Workspace& workspace, Stream& stream, LoadQueue& queue,
                                   void (*ended)(void* context), void* context);
  // Begins to load the page ahead of use, if it is not in memory but on storage or with another origin. Nobody is notified when it is there. The
  // caller flushes the queue. Waits only for the lock, and evicts nothing.
  //   kThere    the page is in memory, or its load is under way
  //   kNothing  there is nothing to load, or this queue cannot load it
  //   kNoRoom   the queue is full, or free frames are few
  enum class Prefetched { kBegun, kThere, kNothing, kNoRoom };
  // `count`: in: how many pages are wanted, from `page` on; out: to how many of them the result applies, at least 1. One read brings at most
  // BegunLoad::most_pages.
  Prefetched prefetch(PageId page, uint32_t& count, LoadQueue& queue, uint64_t now_ns);
  // If the page is in memory, does as load() and returns kThere; else does nothing. kBusy: the page is being loaded, or gone.
  enum class Look { kThere, kNotThere, kBusy };
  Look look(PageId page, bool pin, char*& bytes);
  // Called by LoadQueue: the load's read has ended.
  void end_load(const BegunLoad& load);
  // REQUIRES: pinned.
  void unpin(PageId page);
  // Turns a pin of the caller's into the page's staying pin, which keeps it in memory until end_stay. Nobody stores to the frame on account of this
  // pin, so the frame may be given other memory after a fork. A page has at most one: if it has one already, the caller's pin is given back.
  void stay(PageId page);
  // REQUIRES: the page has a staying pin.
  void end_stay(PageId page);

  // See Cache.
  void stop_watching(PageId page);

  // Drops the content of pages first .. first + count - 1, which read as zeros from now on. Their places are given back, and so are their
  // frames, except those of pages that are held or pinned, or stay in use in a mapped region. May block; does no I/O of its own.
  enum class After { kInUse, kFree };
  void discard(PageId first, uint64_t count, After after, Workspace& workspace);

  // Regions (regions.h). map_own: makes the page accessible at its own address if its region is mapped or can be, else returns false; may load the
  // page. For the others see Cache; the addresses are in one region.
  bool map_own(PageId page, Workspace& workspace);
  void unmap_if_mapped(uint64_t address);
  void cut(uint64_t begin, uint64_t end);
  // Waits for whoever is mapping a region.
  void wait_for_mapping() { sys::LockGuard guard(mutex_); }

  // To be called after a change of which OS pages of these pages are closed (closed.h): when it returns, the entries say so, and guards of the pages
  // have ended. Threads that translated before may still hold them.
  struct Seen {
    bool resident = false;  // some of the pages are in memory
    bool guarded = false;   // some of them were guarded
  };
  Seen close_again(PageId first, uint64_t count);
  // Guards the page's i-th OS page (FramePool::guard) if it is closed and in memory. Waits while an evictor looks at the frame, or an Io is under
  // way for it.
  void guard(PageId page, uint64_t i, sys::Access access);
  // The page that the frame holds, if it is guarded.
  std::optional<PageId> guarded_page(FrameId frame);
  // Zeroes a part of the page, or copies to or from it, regardless of guards. REQUIRES: pinned; `from` and `to` are plain memory.
  void zero(PageId page, uint64_t offset, uint64_t bytes);
  void copy_in(PageId page, uint64_t offset, const char* from, uint64_t bytes);
  void copy_out(PageId page, uint64_t offset, char* to, uint64_t bytes);

  // Removes pages that the cache's user has given up: nothing is written, their places are given back. Returns how many pages are left: busy ones,
  // which are pinned, or being loaded, written or evicted; and held ones, which threads held when they were looked at, and which nobody else can
  // reach any more. The caller calls again until nothing is left. REQUIRES: Origins says kGone for the pages; for each page, one caller at a time,
  // and no discard meanwhile.
  struct Left {
    uint64_t busy = 0;
    uint64_t held = 0;
    bool nothing() const { return busy == 0 && held == 0; }
  };
  Left forget(PageId first, uint64_t count, Workspace& workspace);

  // Evicts up to `wanted` pages; returns how many frames became free. May do I/O.
  uint32_t evict(uint32_t wanted, Workspace& workspace);

  // Cleans a batch of pages that will be evicted soon; returns how many it wrote. For the background thread only: it uses Shared::clean_copies. May
  // do I/O.
  uint32_t clean(Workspace& workspace);
  // Writes those of the pages first .. first + count - 1 that are in memory and have changed; they stay in memory. Pages that are pinned, held,
  // guarded or being evicted are left as they are. `copies`: Shared::clean_copy_bytes() of the caller's memory. May do I/O.
  struct Cleaned {
    uint32_t written = 0;
    uint32_t failed = 0;  // also those for which storage has no place
  };
  Cleaned write_back(PageId first, uint64_t count, Workspace& workspace, char* copies);
  // Are so many frames in use that pages will be evicted soon?
  bool wants_cleaning() const {
    return shared_->clean_copies != nullptr &&
           (shared_->chaos_seed != 0 ||
            frames_.frame_count() - frames_.free_count() > frame_count() - frame_count() / 4);
  }

  // Are free frames so few that background eviction should begin (wants_frames), or continue (takes_frames)?
  bool wants_frames() const { return lacks(low_watermark_) || over_budget_by(0); }
  bool takes_frames() const { return lacks(high_watermark_) || over_budget_by(0); }
  uint32_t batch_size() const { return batch_size_; }

  // Between these calls no page comes or goes, and no frame changes owner.
  void freeze() { mutex_.lock(); }
  void thaw() { mutex_.unlock(); }
  // In a child of fork, before thaw: whatever the parent's other threads had under way is undone, and all pins are
  // removed.
  void become_child();
  // Pins a page that is resident. REQUIRES: frozen.
  FrameId pin_resident(PageId page);

  // Like load with `pin`, in a frame that can be mapped elsewhere. Errors: also EAGAIN, if no memory file can be had for it, or others keep the page
  // pinned for ten seconds.
  base::Expected<char*> load_shared(PageId page, Workspace& workspace);
  // Can the page's frame be mapped elsewhere? REQUIRES: pinned.
  bool is_shared(PageId page);
  // Gives some frames that a fork has lent memory of the pool's own again: their old memory if no child lives, else new memory. (Whether a child
  // lives is asked under the lock, since a fork may just have happened.) Returns whether there were any. Cost: that of FramePool::share.
  bool share_some();
  // Waits for a thread that is giving frames other memory.
  void wait_for_share() { sys::LockGuard guard(mutex_); }

  // CHECKs every invariant that can be checked under the lock. For tests and chaos mode.
  void verify();

  Layout::Part layout() const {
    return {reinterpret_cast<uint64_t>(map_.leaves()), reinterpret_cast<uint64_t>(frames_.frames()),
            reinterpret_cast<uint64_t>(frames_.bytes(FrameId{0})), frames_.frame_limit()};
  }
  FramePool& frames() { return frames_; }
  const FramePool& frames() const { return frames_; }
  // How many of the pool's frames the partition may use.
  uint32_t frame_count() const { return allowed_count_.load(std::memory_order_relaxed); }
  // Pages in state RESIDENT now. Cost: a look at every frame, under the lock.
  uint32_t resident_count();

 private:
  // Used by several protocols (partition.cc).

  // REQUIRES: the lock, and that the page is in a frame.
  Frame& frame_of(PageId page);
  // REQUIRES: the lock, and that the page is pinned.
  FrameId pinned_frame(PageId page);
  void reopen(FrameId frame);
  void note_used(Frame& frame);
  bool spares(Frame& frame);
  void unpin_locked(Frame& frame);
  void wait_for_change(uint32_t key, uint64_t timeout_ns = 0);
  uint64_t next_random();
  // If nothing is known of any page in `page`'s group, sets `page` to the first of the next group and returns true. REQUIRES: the lock.
  bool skip_unknown_group(PageId& page) const {
    if (shared_->directory.leaf_of(page) != 0) return false;
    page = PageId{base::round_down(index(page), kGroupPages) + kGroupPages};
    return true;
  }
  Origins::Kind origin_of(PageId page) const {
    return shared_->origins != nullptr ? shared_->origins->kind_of(page) : Origins::Kind::kZeros;
  }
  PageMap::Where find_before(PageId page);

  // Frames: how many there are, and where those of a load come from (partition_frames.cc).
  void set_sizes(uint32_t frame_count);
  uint32_t release_free(uint32_t count);
  bool may_shrink() const { return frames_.touched_count() > least(); }
  bool over_budget_by(uint64_t bytes) const { return may_shrink() && shared_->budget.exceeded_by(bytes); }
  // Can fewer than `wanted` frames be had without evicting? Frames without memory count if the budget allows them some.
  bool lacks(uint32_t wanted) const {
    const uint32_t touched = frames_.free_touched_count();
    return touched < wanted &&
           (frames_.free_count() < wanted ||
            shared_->budget.exceeded_by(uint64_t{wanted - touched} * shared_->page_bytes));
  }
  FrameId neighbour_frame(PageId page);
  Partition* largest_that_may_shrink();
  bool may_take_fresh(bool desperate);
  FrameId take_frame(PageId page, PlaceId place, bool desperate, bool& fresh);
  void free_frame(FrameId frame, Removal removal, bool is_protected = false);
  bool leave_memory(Workspace& workspace);
  bool evict_for_load(Workspace& workspace);
  // The state of a load that finds no frame: how often it has tried to make room, and how many writes had failed when it began.
  struct InVain {
    uint64_t attempts = 0;
    uint32_t failed_writes = 0;
  };
  bool has_io_under_way();
  base::Expected<void> make_room(Workspace& workspace, InVain& in_vain);

  // Load (partition_load.cc; fill_from_origin() is in partition_origin.cc).
  enum class Attempt { kDone, kWait, kNeedFrame, kLoad, kGone };
  Attempt try_load(PageId page, Claim& claim, Stream& stream, bool pin, bool desperate, char*& bytes);
  Attempt take_resident(FrameId id, bool pin, char*& bytes);
  base::Expected<void> fill(const Claim& claim, Workspace& workspace);
  base::Expected<void> fill_from_origin(const Claim& claim);
  void prepare_read(const Claim& claim, storage::Io& io);
  uint32_t count_nowhere(PageId first, uint32_t most);
  uint32_t count_from_origin(PageId page, Origins::Kind origin, uint32_t most, const LoadQueue& queue);
  bool finish_read(const Claim& claim, const storage::Io& io);
  void finish_load(const Claim& claim, uint32_t good_count);
  void end_load_without_page(FrameId id);
  void add_read_ahead(Claim& claim, PlaceId place, Stream& stream);
  void claim_following(Claim& claim, PlaceId place, uint32_t most, uint32_t reserve);
  void note_coming(PageId page, base::MissCurve* curve);

  // Evict (partition_evict.cc).
  void lock_victims(uint32_t wanted, Batch& batch);
  void lock_neighbours(Policy::Named victim, uint32_t wanted, Batch& batch);
  void lock_random_victims(uint32_t wanted, Batch& batch);
  void cool_pages(uint32_t wanted);
  bool try_lock_victim(FrameId frame, Batch& batch, bool even_hot);
  void end_guards(const Batch& batch);
  uint32_t settle_unwritten(Workspace& workspace);
  void check_unchanged(const Batch::Victim& victim, Workspace& workspace);
  void prepare_write(Batch& batch, uint32_t v, uint32_t victims_left);
  uint32_t settle_written(Batch& batch);
  void note_writes(const Batch& batch);
  void note_failed_write(Batch& batch, int error);
  void tell_of_failed_write(Batch& batch);

  // Places of pages that are being written (partition_move.cc).
  PlaceId neighbour_place(PageId page);
  void take_place(Batch::Victim& victim);
  bool settle_place(Batch& batch, const Batch::Victim& victim, const storage::Io* failed);

  // Clean (partition_clean.cc).
  uint32_t most_to_clean() const;
  bool may_clean(const Frame& frame) const;
  void take_for_cleaning(FrameId id, Batch& batch);
  void choose_for_cleaning(Batch& batch);
  uint64_t choose_for_writing(PageId first, uint64_t count, Batch& batch);
  Cleaned clean_chosen(Workspace& workspace, char* copies);
  uint32_t prepare_clean_writes(Batch& batch, char* copies);
  Cleaned settle_cleaned(Batch& batch, const char* copies);

  // Discard (partition_discard.cc).
  std::optional<uint32_t> lock_batch_for_discard(PageId& page, PageId end, After after, Batch& batch);
  bool lock_for_discard(PageId page, Batch& batch);
  PageId finish_discard(PageId page, const Batch& batch);
  bool zero_rescued(const Batch::Victim& victim);
  void drop_locked(FrameId id);
  void zero_in_place(FrameId id);
  void note_zeros(FrameId id);

  // Forget (partition_forget.cc).
  bool lock_for_forget(PageId page, Batch& batch);

  // Regions (partition_region.cc).
  uint64_t address_of(PageId page) const;
  PageId page_at(uint64_t address) const;
  bool is_in_region(PageId page) const;
  bool is_own_region(uint64_t begin) const;
  bool knows_any(PageId first, uint64_t count);
  bool map_at_own_address(uint64_t begin, uint64_t end, uint64_t file_offset);
  bool map_region(PageId page);
  void load_part_of_region(uint64_t begin, uint64_t end, uint64_t region, FrameId first_frame);
  bool load_zeros(PageId first, uint32_t count, FrameId first_frame);
  bool map_page_of_region(PageId page, FrameId id);
  void unmap_region(uint64_t address);
  void cut_locked(uint64_t begin, uint64_t end);
  uint64_t empty_in_region(PageId first, PageId end);

  Shared* shared_ = nullptr;
  // These four change with the budget, under the lock, and are read without it.
  std::atomic<uint32_t> allowed_count_{0};
  std::atomic<uint32_t> batch_size_{1};
  std::atomic<uint32_t> low_watermark_{0};
  std::atomic<uint32_t> high_watermark_{0};

  sys::Mutex mutex_;
  sys::EventCount changed_;  // a load or write ended, a frame became free
  FramePool frames_;
  PageMap map_;
  Ghosts ghosts_;
  Policies policies_;
  uint64_t random_ = 0;         // chaos
  uint32_t failed_writes_ = 0;  // by evictions since a write last succeeded or a frame became free
  int write_error_ = 0;         // of the last failed write
};

inline Partition& Shared::of(PageId page) const {
  return partitions[partition_of(page, region_shift, partition_count)];
}

}  // namespace cache
