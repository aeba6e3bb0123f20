// Partition: the sets of one node of a cache, and their frames. The number of both changes while they are in use, by linear hashing.
// (Litwin: Linear hashing, a new tool for file and table addressing, VLDB 1980)
//
//   8 sets      0   1   2   3   4   5   6   7               the last three bits of a page's hash choose its home
//   split()     0'  1   2   3   4   5   6   7   8'          four bits for these two: pages of 0 whose fourth bit is 1 are in 8 now
//   16 sets     0'  1'  2'  3'  4'  5'  6'  7'  8'  9'  ... 15'
//
// merge() undoes the last split(). A set has at most 16 frames, and, except for a moment, at least 7. A page moves together with its frame.
//
// Invariants
//  1 the set that a page's hash chooses is its home. A page is in its home or nowhere, and in one way only
//  2 a set becomes or ceases to be a page's home only with its lock held. So a call that has the lock of a page's home, and has checked
//    again that it still is the home, knows the page's state for certain (lock_home). Without a lock, a call may look into a set that is not
//    the home any more, and misses
//  3 pages that are held, loading, or being cleaned do not move: whoever holds a page, or waits for one, knows its set and way
//  4 sets and frames do not move in memory. Unused frames give their memory back. Sets do not: a late call may still look into one, or wait
//    for its lock
//
// Splitting a set s, and merging set s + n into it again, takes these steps
//  1 take the locks of both, s first
//  2 exclude others from all pages that have to move. If one of them is held: undo that for all, release the locks, and return which page it
//    was; the caller waits, without a lock, and begins again
//  3 move the pages
//  4 publish the number of sets
//  5 release the locks, and wake the calls that wait in s: the page for which they need room may have another home now, or s has room.
//    Calls that wait in the other set wait for edges that have been taken already, and are woken by whoever took them
//
// All partitions of a cache have the same layout, and their frames are in one array. So a set or a way may be used through any of them,
// except for splits, merges, and changes of the number of frames.
//
// Thread contract: any thread, except for the functions under "resizing", which are for one thread at a time (PageCache::begin_resize).
// Nothing here waits or does I/O.
#pragma once
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "base/mix.h"
#include "pagecache/page_set.h"
#include "sys/lock.h"

namespace pagecache {

// Zeroed memory for a cache, in large OS pages if there are any.
base::Expected<std::byte*> map_large_pages(uint64_t bytes);

class Partition {
 public:
  struct Size {
    uint32_t set_count = 0;  // a power of two
    uint32_t frame_count = 0;
    // How many frames set i is to have: all have the same number, or some have one more.
    uint32_t frames_of(uint32_t i) const {
      return frame_count / set_count + (i < frame_count % set_count ? 1 : 0);
    }
  };
  enum class Claim : uint8_t {
    kClaimed,    // the way is LOADING now, for the caller
    kThere,      // this way holds the page already, or loads it
    kCleanable,  // no page can leave, but this way's page could once it has been cleaned
    kHeld,       // no page can leave: all are in use
  };
  // The set in which a page is, if it is in the cache.
  struct Home {
    PageKey key;
    PageSet& set;
    uint16_t tag;
  };

  Partition(cache::SetPolicy policy, unsigned page_shift) : layout_(policy), page_shift_(page_shift) {}
  ~Partition();
  Partition(const Partition&) = delete;
  Partition& operator=(const Partition&) = delete;
  static constexpr uint32_t kNoNode = ~uint32_t{0};
  // The array of frames, zeroed, and which part of it is this partition's.
  struct FrameSpace {
    std::byte* memory = nullptr;
    uint32_t before = 0;      // how many frames of other partitions come before its own
    uint32_t node = kNoNode;  // the machine's node whose memory sets and frames should have
  };
  // Makes sets and frames for `memory_bytes`, and reserves address space for the sets of `memory_bytes_max`. Errors: those of size_for();
  // ENOMEM. REQUIRES: the array has frame_space_bytes() for this partition, and outlives it.
  base::Expected<void> open(uint64_t memory_bytes, uint64_t memory_bytes_max, const FrameSpace& space);
  // Room for as many frames as the partition may ever have, in whole large OS pages. Errors: those of size_for().
  base::Expected<uint64_t> frame_space_bytes(uint64_t memory_bytes_max) const;
  // How many frames fit in `memory_bytes`, and the fewest sets that can have them all. Errors: EINVAL: less than one set takes, more than
  // this was opened for, or more than a cache can have.
  base::Expected<Size> size_for(uint64_t memory_bytes) const;

  // The memory of one set with all its frames.
  uint64_t least_bytes() const { return layout_.bytes + (uint64_t{kMaxWays} << page_shift_); }

  const PageSet::Layout& layout() const { return layout_; }
  uint32_t set_count() const { return sets().count; }
  uint32_t frame_count() const { return frame_count_.load(std::memory_order_relaxed); }
  PageSet& set_at(uint64_t index) { return *reinterpret_cast<PageSet*>(set_memory_ + index * layout_.bytes); }
  Way& way(PageSet& set, uint32_t index) { return set.way(layout_, index); }
  // REQUIRES: the way has a frame.
  std::byte* frame(const Way& way) const { return frame_at(way.frame()); }

  // The page's home at this moment; without its lock it may change at any time.
  Home home_of(PageKey key) {
    const uint64_t hash = base::mix(static_cast<uint64_t>(key));
    return {key, set_at(sets().index_of(hash)), PageSet::tag_of(hash)};
  }
  // Takes the lock of the page's home, which stays its home while the caller has that lock.
  Home lock_home(PageKey key);
  // Calls each(set), with the set's lock, for all sets, and between(), without a lock, after each. A page that stays in the cache all the
  // time is seen at least once, even if it moves meanwhile; it may be seen twice.
  template <class Each, class Between>
  void for_all_sets(const Each& each, const Between& between);
  template <class Each>
  void for_all_sets(const Each& each) {
    for_all_sets(each, [] {});
  }

  // REQUIRES, for all of these: the set's lock.

  // The way that has the page, or loads it; kNoWay: there is none.
  uint32_t find(const Home& home);
  // Finds a way for the page. Sets `way` to the one that the result is about; with kHeld there is none. Adds the number of pages that have
  // left to `evictions`.
  Claim claim(const Home& home, uint32_t& way, uint64_t& evictions);
  // Could a page be brought in, perhaps after another one has been cleaned?
  bool has_room(PageSet& set);
  // The dirty pages that nobody holds, among those that would leave with the next misses: half as many as the set has frames.
  cache::WayMask dirty_victims(PageSet& set);
  // The first `count` dirty pages that nobody holds, in the order in which they would leave, however late that is.
  cache::WayMask dirty_victims(PageSet& set, uint32_t count);
  // Would a dirty page leave within a quarter as many misses as the set has frames? Then it is time to flush the set: so several pages are
  // written at a time, rather than one for each miss.
  bool is_to_flush(PageSet& set);
  // Removes a way whose page is gone from tags and policy.
  void forget(PageSet& set, uint32_t way);

  // --- resizing ---

  // A page that cannot move, because somebody holds, loads or cleans it.
  struct Obstacle {
    PageSet* set = nullptr;  // nullptr: no obstacle
    Way* way = nullptr;
  };
  // Returns the memory of frames that no set has to the OS.
  void end_resize();
  // Adds a set; the two halves get frames until each has kMinWays. If there is an obstacle, nothing has changed. REQUIRES: the partition was
  // opened for so many sets.
  Obstacle split();
  // Removes a set. If there is an obstacle, nothing has changed. REQUIRES: the two sets have at most kMaxWays frames together; there are at
  // least two sets.
  Obstacle merge();
  // The set that merge() removes, and the one to which its pages go.
  uint32_t last() const { return sets().count - 1; }
  uint32_t parent_of(uint32_t index) const { return index - std::bit_floor(index); }
  // How many frames a set has, and how many of their pages somebody holds, loads or cleans. REQUIRES: the set's lock, if the result must
  // stay true.
  uint32_t frames_of(PageSet& set);
  uint32_t held_of(PageSet& set);
  // Gives the set frames until it has `count`.
  void give_frames(PageSet& set, uint32_t count);
  // Takes a frame from the set; a page in it leaves. Results as of claim(): after kClaimed the set has one frame less.
  Claim take_frame(PageSet& set, uint32_t& way, uint64_t& evictions);
  // Copies pages that are not held from the last frames to free earlier ones, so that memory can be given back in large pieces.
  void compact();

 private:
  // The number of sets, and what follows from it, in one word, which changes atomically.
  struct alignas(uint64_t) Sets {
    uint32_t count;
    // The bits of a hash that choose among sets which have been split already: `count` rounded up to a power of two, less one.
    uint32_t mask;

    static Sets of(uint32_t count) { return {count, std::bit_ceil(count) - 1}; }
    uint32_t index_of(uint64_t hash) const {
      const uint32_t index = static_cast<uint32_t>(hash) & mask;
      return index < count ? index : index & (mask >> 1);
    }
    // The mask of the bits that choose this set.
    uint32_t mask_of(uint32_t index) const {
      const uint32_t half = mask >> 1;
      return index <= half && index + half + 1 >= count ? half : mask;
    }
  };
  static_assert(std::atomic<Sets>::is_always_lock_free);

  // Relaxed: it changes with the locks of all sets that are affected; whoever reads it without one of these looks again with the lock.
  Sets sets() const { return sets_.load(std::memory_order_relaxed); }
  std::byte* frame_at(uint32_t frame) const { return frame_memory_ + (uint64_t{frame} << page_shift_); }
  base::Expected<Size> size_within(uint64_t memory_bytes, uint64_t memory_bytes_max) const;

  // kClaimed: the way is FREE now.
  Claim make_room(PageSet& set, uint32_t& chosen, uint64_t& evictions);
  // The ways to choose from when pages are to leave the set.
  struct Choice {
    cache::WayMask spared = 0, dirty = 0;
    uint32_t frame_count = 0, free_count = 0;
  };
  Choice choice_of(PageSet& set);
  cache::WayMask dirty_victims(PageSet& set, const Choice& choice, uint32_t misses);
  void give(PageSet& set, uint32_t count);
  static bool hold(Way& way);
  Obstacle move_pages(PageSet& from, PageSet& to, Sets then);
  void move_page(PageSet& from, uint32_t way, PageSet& to);
  uint32_t way_without_frame(PageSet& set);
  bool replace_frame(Way& way, uint32_t other);

  const PageSet::Layout layout_;
  const unsigned page_shift_;
  std::atomic<Sets> sets_{Sets{0, 0}};
  std::byte* set_memory_ = nullptr;
  std::byte* frame_memory_ = nullptr;
  uint64_t memory_bytes_max_ = 0;
  uint64_t set_memory_bytes_ = 0;
  uint32_t frames_before_ = 0;

  // Not in the CPU line that hits read.
  alignas(base::kLineBytes) std::atomic<uint32_t> frame_count_{0};  // of all sets
  // For whoever resizes.
  std::vector<uint32_t> spare_frames_;  // frames that sets had, and have given back
  uint32_t next_frame_ = 1;             // the first frame in the array that no set has had yet
};

// Goes through hashes in the order of their reversed bits. In that order all hashes of a set are consecutive, however many sets there are, and the
// pages that have been seen are those of all earlier hashes.
template <class Each, class Between>
void Partition::for_all_sets(const Each& each, const Between& between) {
  for (uint32_t hash = 0;;) {
    const uint32_t index = sets().index_of(hash);
    PageSet& set = set_at(index);
    uint32_t mask = 0;
    {
      sys::LockGuard scope(set.lock());
      if (sets().index_of(hash) != index) continue;
      mask = sets().mask_of(index);
      each(set);
    }
    between();
    uint32_t bit = mask ^ (mask >> 1);
    for (hash &= mask; (hash & bit) != 0; bit >>= 1) hash ^= bit;
    if (bit == 0) return;
    hash |= bit;
  }
}

}  // namespace pagecache
