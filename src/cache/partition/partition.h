// Partition: one owner's share of a cache: its index, frames, replacement policy and places.
//
// Every edge of a frame's life (frame.h) is taken here, under mutex_. I/O, hashing and waiting happen without it. These are the protocols:
//
// Load     1 find the page. In memory: open its entries, done; being evicted or written: rescue it, done; loading: wait, from 1
//          2 take a free frame; if there is none, evict, from 1   3 claim the frame, map page -> frame, unlock
//          4 read the page from its place; one that has none is read from its origin, or filled with zeros
//          5 take its fingerprints   6 lock; the frame is RESIDENT, publish the entries
//          Steps 5 and 6 of a load that is begun are taken by whoever polls its queue (load_queue.h)
// Evict    1 choose victims, lock their entries and states   2 barrier   3 rescue the victims that threads hold
//          4 ask the kernel which OS pages of watched frames were not stored to; compare the fingerprints of all others
//          5 unchanged victims: FREE, and their frames are watched from now on if most of the batch is unchanged; changed ones: their
//            fingerprints become unknown, the state WRITING, and places are chosen (write_plan.h)
//          6 write what has changed   7 written victims: FREE, unless they were rescued meanwhile; failed ones: RESIDENT
// Clean    1 set io of pages that are cooling   2 barrier; leave alone what threads hold   3 copy what has changed   4 write the copies
//          5 the fingerprints are those of the copies; clear io. A page that nobody could have touched since is verified: an eviction
//            neither hashes nor writes it
// Watch    A frame is watched while its memory is protected (sys/write_watch.h): an OS page of which the kernel says that nobody stored to it
//          is as it was loaded, and needs no fingerprint, neither when it is loaded nor when it leaves
//          1 an evictor that has found a page unchanged and not rescued protects its frame under mutex_; the frame is watched, and FREE,
//            before mutex_ is let go   2 loads store by another mapping, which leaves the protection   3 the first store takes the
//            protection away; nothing but 1 gives it back
// Discard  1 lock entries and states   2 barrier   3 pages that are held or pinned are zeroed in place, and their places given back
//          4 all others: FREE, their places given back
// Forget   1 lock entries and states   2 barrier   3 pages that are held stay EVICTING, and gone, so that nobody rescues them; the caller
//            asks again later   4 all others: FREE, their places given back
//
// Invariants
//  1 a fingerprint is that of what a load of the OS page would return now, or unknown: it becomes known in step 5 of Load and of Clean, and
//    unknown before step 6 of Evict and step 4 of Clean
//  2 the frame holds the page's place while the page is in a frame, the PageMap while it is not
//  3 a place is given back only when no Io is under way for it: not while io is set
//  4 a place that is frozen for a child of fork, or that was inherited from a parent, is not written to: its page moves
//  5 a page that moves on storage has both places while io is set: the frame holds the old one until the write to the new one has succeeded.
//    One of the two is given back then
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
#include "cache/partition/lane.h"
#include "cache/partition/load_queue.h"
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
  PolicyChoice policy_choice;  // where it is on, instead
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
  sys::WriteWatch watch;          // closed: pages are compared
  char* waste = nullptr;          // as Cache::waste
  char* clean_copies = nullptr;   // clean_copy_bytes(), of the background thread
  sys::EventCount low_on_frames;  // wakes whoever evicts in the background
  // Failed writes are not logged before; of the monotonic clock.
  std::atomic<uint64_t> next_write_message_ns{0};

  Partition& of(PageId page) const;
  // Are the pages of one region, and so of one partition?
  bool same_region(PageId one, PageId other) const {
    return index(one) >> region_shift == index(other) >> region_shift;
  }
  // How much memory the copies of a cleaning take: as many pages as fit kCleanCopyBytes, and at least one.
  size_t clean_copy_bytes() const { return std::max(page_bytes, kCleanCopyBytes); }

  static constexpr size_t kCleanCopyBytes = 256 * 1024;
};

class Partition {
 public:
  // With frame_count frames, and address space for frame_limit. Errors: ENOMEM, and those of FramePool::open.
  base::Expected<void> open(Shared& shared, uint32_t frame_count, uint32_t frame_limit);
  void close();
  // The partition may have so many frames from now on. If they are fewer than before, the budget says when memory goes. False: a fork has lent the
  // memory file, and there is none for more frames now. REQUIRES: frame_count <= frames().frame_limit().
  bool resize(uint32_t frame_count);
  // How many frames it keeps however much of the budget is used otherwise: half, and as many as a loop over many arrays holds at once.
  uint32_t least() const {
    constexpr uint32_t kHeldAtOnce = 16;
    const uint32_t all = frame_count();
    return std::max((all + 1) / 2, std::min(all, kHeldAtOnce));
  }
  // If the budget is exceeded, gives back the memory of a few free frames. Returns whether any had some.
  bool give_memory_back();

  // Makes the page resident with open entries, and returns its memory. That is good while the caller holds the page; with `pin` the page is
  // pinned too, and its memory good until unpin(). Errors: EIO and others of a read (the message names device and page); ENOSPC and others when
  // nothing can be evicted because writes fail; ENOMEM when all frames are pinned or held; ESTALE, the page is gone (Origins).
  base::Expected<char*> load(PageId page, Lane& lane, Stream& stream, bool pin);
  // The same without `pin`, and without waiting for the read.
  //   kDone      the page was resident with open entries a moment ago
  //   kUnderWay  its load has begun. ended(context) is called when the page is resident, or when the load has failed, by the thread that
  //              ends the load (load_queue.h), perhaps before this returns
  //   kWait      another load of the page is under way
  //   kNoRoom    the queue is full, or all frames are pinned or held: try again when something has ended
  // May evict, and wait for writes. REQUIRES: only the caller begins loads by this queue. Errors: those of load, without those of reads: if a
  // load that was begun brings nothing, the next load of the page says why.
  enum class Begun { kDone, kUnderWay, kWait, kNoRoom };
  base::Expected<Begun> begin_load(PageId page, Lane& lane, Stream& stream, LoadQueue& queue,
                                   void (*ended)(void* context), void* context);
  // Begins to load the page ahead of use, if it is not in memory, and is on storage or comes from elsewhere. Nobody is told when it is there. The
  // caller flushes the queue. Waits for nothing but the lock, and evicts nothing.
  //   kThere    the page is in memory, or under way
  //   kNothing  there is nothing to load, or this queue cannot load it
  //   kNoRoom   the queue is full, or free frames are few
  enum class Prefetched { kBegun, kThere, kNothing, kNoRoom };
  // `count`: how many pages are asked for, from `page` on; afterwards, for how many of them the result holds, at least 1. One read brings
  // BegunLoad::most_pages at most.
  Prefetched prefetch(PageId page, uint32_t& count, LoadQueue& queue, uint64_t now_ns);
  // If the page is in memory: as load, and kThere. Else nothing is done; kBusy: the page is being loaded, or gone.
  enum class Look { kThere, kNotThere, kBusy };
  Look look(PageId page, bool pin, char*& bytes);
  // Called by LoadQueue: the load's read has ended.
  void end_load(const BegunLoad& load);
  // REQUIRES: pinned.
  void unpin(PageId page);
  // A pin of the caller's becomes the one that keeps the page in memory until end_stay. Nobody stores to the frame because of it, so that the frame
  // may be given other memory after a fork. A page has one of them: where there is one already, the caller's is given back.
  void stay(PageId page);
  // REQUIRES: it stays.
  void end_stay(PageId page);

  // As Cache's.
  void stop_watching(PageId page);

  // Drops the content of pages first .. first + count - 1, which read as zeros from now on. Their places are given back, and so are their
  // frames, but for pages that are held or pinned, and those of a mapped region that stay in use. May block; does no I/O of its own.
  enum class After { kInUse, kFree };
  void discard(PageId first, uint64_t count, After after, Lane& lane);

  // Of regions (regions.h). map_own: makes the page accessible at its own address, if its region is mapped or can be; else false. May load the
  // page. The rest as Cache's, for addresses in one region.
  bool map_own(PageId page, Lane& lane);
  void unmap_if_mapped(uint64_t address);
  void cut(uint64_t begin, uint64_t end);
  // Waits for whoever is mapping a region.
  void wait_for_mapping() { sys::LockGuard guard(mutex_); }

  // Other OS pages of the pages are closed than before (closed.h): when this returns, the entries say so, and guards of the pages have ended.
  // Threads that translated before may still hold them.
  struct Seen {
    bool resident = false;  // some are in memory
    bool guarded = false;   // and were guarded
  };
  Seen close_again(PageId first, uint64_t count);
  // Guards the page's i-th OS page (FramePool::guard) if it is closed and in memory. Waits while an evictor looks at the frame, or an Io is under
  // way.
  void guard(PageId page, uint64_t i, sys::Access access);
  // The page that the frame holds, if it is guarded.
  std::optional<PageId> guarded_page(FrameId frame);
  // Zeroes a part of the page, or copies to or from it, whatever is guarded there. REQUIRES: pinned; `from` and `to` are plain memory.
  void zero(PageId page, uint64_t offset, uint64_t bytes);
  void copy_in(PageId page, uint64_t offset, const char* from, uint64_t bytes);
  void copy_out(PageId page, uint64_t offset, char* to, uint64_t bytes);

  // Takes pages out that the cache's user has given up: nothing is written, their places are given back. Returns how many pages are left: busy
  // ones, which are pinned, being loaded, written or evicted; and held ones, which threads held when they were looked at, and which nobody
  // else reaches any more. The caller calls again until nothing is left. REQUIRES: Origins says kGone of the pages; for one page, one caller
  // at a time, and no discard meanwhile.
  struct Left {
    uint64_t busy = 0;
    uint64_t held = 0;
    bool nothing() const { return busy == 0 && held == 0; }
  };
  Left forget(PageId first, uint64_t count, Lane& lane);

  // Evicts up to `wanted` pages; returns how many frames became free. May do I/O.
  uint32_t evict(uint32_t wanted, Lane& lane);

  // Cleans a batch of pages that will be evicted soon; returns how many it wrote. For the background thread, whose copies (Shared) it uses. May
  // do I/O.
  uint32_t clean(Lane& lane);
  // Writes those of the pages first .. first + count - 1 that are in memory and have changed; they stay in memory. Pages that are pinned, held,
  // guarded or being evicted are left as they are. `copies`: memory of the caller's, Shared::clean_copy_bytes(). May do I/O.
  struct Cleaned {
    uint32_t written = 0;
    uint32_t failed = 0;  // writes; storage that is full is no failure
  };
  Cleaned write_back(PageId first, uint64_t count, Lane& lane, char* copies);
  // Are so many frames in use that pages will be evicted soon?
  bool wants_cleaning() const {
    return shared_->clean_copies != nullptr &&
           (shared_->chaos_seed != 0 ||
            frames_.frame_count() - frames_.free_count() > frame_count() - frame_count() / 4);
  }

  // Are free frames so few that eviction in the background should begin; are they so few that it should go on?
  bool wants_frames() const { return lacks(low_watermark_) || over_budget_by(0); }
  bool takes_frames() const { return lacks(high_watermark_) || over_budget_by(0); }
  uint32_t batch_size() const { return batch_size_; }

  // Between the two no page comes or goes, and no frame changes hands.
  void freeze() { mutex_.lock(); }
  void thaw() { mutex_.unlock(); }
  // In a child of fork, before thaw: what its parent's other threads had under way ends as if it had not begun, and
  // nothing is pinned.
  void become_child();
  // Pins a page that is resident. REQUIRES: frozen.
  FrameId pin_resident(PageId page);

  // As load with `pin`, and the page's frame can be mapped elsewhere. Errors: also EAGAIN, if the system has no memory file for it, or others
  // have the page pinned for ten seconds.
  base::Expected<char*> load_shared(PageId page, Lane& lane);
  // Can the page's frame be mapped elsewhere? REQUIRES: pinned.
  bool is_shared(PageId page);
  // Gives some frames that a fork has lent memory of the pool's own: that which they had before, if no child lives, or new memory. (Whether a child
  // lives is asked under the lock, since one may just have been made.) Returns whether there were any. Cost: as FramePool::share.
  bool share_some();
  // Waits for whoever is giving frames other memory.
  void wait_for_share() { sys::LockGuard guard(mutex_); }

  // Checks every invariant that can be checked under the lock; CHECK fails otherwise. For tests and chaos.
  void verify();

  Layout::Part layout() const {
    return {reinterpret_cast<uint64_t>(map_.leaves()), reinterpret_cast<uint64_t>(frames_.frames()),
            reinterpret_cast<uint64_t>(frames_.bytes(FrameId{0})), frames_.frame_limit()};
  }
  FramePool& frames() { return frames_; }
  const FramePool& frames() const { return frames_; }
  // How many of the pool's frames it may have.
  uint32_t frame_count() const { return allowed_count_.load(std::memory_order_relaxed); }
  // Pages in state RESIDENT now. Cost: a look at every frame, under the lock.
  uint32_t resident_count();

 private:
  // What several protocols use (partition.cc).

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
  // Is nothing known of any page of this one's group? Then `page` becomes the first of the next group. REQUIRES: the lock.
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
  // Are there fewer frames to be had without evicting? Those that hold no memory yet count if the budget allows it.
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
  bool evict_for_load(Lane& lane);
  // What a load that finds no frame knows: how often it has tried to make room, and how many writes had failed when it began to.
  struct InVain {
    uint64_t attempts = 0;
    uint32_t failed_writes = 0;
  };
  bool has_io_under_way();
  base::Expected<void> make_room(Lane& lane, InVain& in_vain);

  // Load (partition_load.cc; of fill_from_origin() partition_origin.cc).
  enum class Attempt { kDone, kWait, kNeedFrame, kLoad, kGone };
  Attempt try_load(PageId page, Claim& claim, Stream& stream, bool pin, bool desperate, char*& bytes);
  Attempt take_resident(FrameId id, bool pin, char*& bytes);
  base::Expected<void> fill(const Claim& claim, Lane& lane);
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
  uint32_t settle_unwritten(Lane& lane);
  void check_unchanged(const Batch::Victim& victim, Lane& lane);
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
  Cleaned clean_chosen(Lane& lane, char* copies);
  void prepare_clean_writes(Batch& batch, char* copies);
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
  // These four change with the budget, under the lock, and are asked without it.
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
  uint32_t failed_writes_ = 0;  // of evictions, since a write succeeded or a frame became free
  int write_error_ = 0;         // of the last failed write
};

inline Partition& Shared::of(PageId page) const {
  return partitions[partition_of(page, region_shift, partition_count)];
}

}  // namespace cache
