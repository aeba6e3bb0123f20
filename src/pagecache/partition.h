// Partition: the sets of a node of a cache, their frames, and how many there are of both, which changes while they are in use: linear
// hashing. (Litwin: Linear hashing, a new tool for file and table addressing, VLDB 1980)
//
//   8 sets      0   1   2   3   4   5   6   7               the last three bits of a page's hash choose its home
//   split()     0'  1   2   3   4   5   6   7   8'          of these two, four bits: pages of 0 whose fourth is 1 are in 8 now
//   16 sets     0'  1'  2'  3'  4'  5'  6'  7'  8'  9'  ... 15'
//
// merge() undoes the last split(). Sets have at most 16 frames, and 8 at least but for a moment; a page moves with its frame.
//
// Invariants
//  1 a page is in its home or nowhere, and in one way only
//  2 what a set is the home of changes under its lock: who has the lock of a page's home, and has looked once more whether it is that,
//    knows all about the page (lock_home). Without a lock, who looks in a set that is the home no more misses
//  3 pages that are held, loading, or being cleaned do not move: who holds one, or waits for one, knows set and way
//  4 sets and frames stay where they are. Frames that are not in use have given their memory back. Sets have not: late ones may
//    still look into one, or wait for its lock
//
// A set s is split, and s + n merged into it again, in these steps
//  1 the locks of both are taken, s first
//  2 others are kept from all pages that have to move. If one is held: lets go of all, gives the locks back, and says which; the caller
//    waits, without a lock, and begins again
//  3 the pages move
//  4 the number of sets is published
//  5 the locks are given back, and who waits in s is woken: a page that it needs room for may have another home, or s has room. In the
//    other set nobody waits but for edges that have happened: who took one wakes those that wait for it
//
// All partitions of a cache have one layout, and their frames are in one array: what is done with a set or a way, but for splits and merges
// and for frames that come and go, any of them can do.
//
// Thread contract: any, but for those under "resizing", which are for one at a time (PageCache::begin_resize). Nothing here waits or does
// I/O.
#pragma once
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "base/mix.h"
#include "pagecache/page_set.h"
#include "sys/lock.h"

namespace pagecache {

// Zeroed memory of a cache, of large pages if there are any.
base::Expected<std::byte*> map_large_pages(uint64_t bytes);

class Partition {
 public:
  struct Size {
    uint32_t set_count = 0;  // a power of two
    uint32_t frame_count = 0;
    // That set i has in the end: all have the same number, or some one more.
    uint32_t frames_of(uint32_t i) const {
      return frame_count / set_count + (i < frame_count % set_count ? 1 : 0);
    }
  };
  enum class Claim : uint8_t {
    kClaimed,    // of a way that is LOADING now, the caller's
    kThere,      // another way holds the page, or loads it
    kCleanable,  // nothing can leave but this dirty page, once it is clean
    kHeld,       // all pages are in use
  };
  // Where a page is, if it is there.
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
  // The array of frames, zeroed, and which of them are this partition's.
  struct FrameSpace {
    std::byte* memory = nullptr;
    uint32_t before = 0;      // those of others
    uint32_t node = kNoNode;  // of the machine, whose memory sets and frames should be
  };
  // Address space of sets for `memory_bytes_max`, sets and frames for `memory_bytes`. Errors: those of size_for(); ENOMEM.
  // REQUIRES: the array has frame_space_bytes() for it, as long as it lives.
  base::Expected<void> open(uint64_t memory_bytes, uint64_t memory_bytes_max, const FrameSpace& space);
  // Whole large OS pages, of as many frames as it may come to have, and more. Errors: those of size_for().
  base::Expected<uint64_t> frame_space_bytes(uint64_t memory_bytes_max) const;
  // As few sets as can have all frames. Errors: EINVAL: less than one set takes, more than this was opened for, or than a cache can have.
  base::Expected<Size> size_for(uint64_t memory_bytes) const;

  // What one set takes, with as many frames as it may have.
  uint64_t least_bytes() const { return layout_.bytes + (uint64_t{kWaysMost} << page_shift_); }

  const PageSet::Layout& layout() const { return layout_; }
  uint32_t set_count() const { return sets().count; }
  uint32_t frame_count() const { return frame_count_.load(std::memory_order_relaxed); }
  PageSet& set_at(uint64_t index) { return *reinterpret_cast<PageSet*>(set_memory_ + index * layout_.bytes); }
  Way& way(PageSet& set, uint32_t index) { return set.way(layout_, index); }
  // REQUIRES: it has one.
  std::byte* frame(const Way& way) const { return frame_at(way.frame()); }

  // Of this moment: for who looks without the lock.
  Home home_of(PageKey key) {
    const uint64_t hash = base::mix(static_cast<uint64_t>(key));
    return {key, set_at(sets().index_of(hash)), PageSet::tag_of(hash)};
  }
  // Its home as long as the caller has the lock of that, which this takes.
  Home lock_home(PageKey key);
  // Calls each(set), with the set's lock, until all have been seen, and between() without one, after each. A page that is there all the
  // time is in one of the sets that are seen, wherever it moves meanwhile; it may be in two.
  template <class Each, class Between>
  void for_all_sets(const Each& each, const Between& between);
  template <class Each>
  void for_all_sets(const Each& each) {
    for_all_sets(each, [] {});
  }

  // REQUIRES, of all of these: the set's lock.
  // kNoWay: no way has the page.
  uint32_t find(const Home& home);
  // `way`: of kHeld none. Adds to `evictions` what has left.
  Claim claim(const Home& home, uint32_t& way, uint64_t& evictions);
  bool has_room(PageSet& set);
  // Dirty pages that nobody holds
  //   of those that would leave with the next misses, half as many as the set has frames
  cache::WayMask dirty_victims(PageSet& set);
  //   so many, that would leave first of all of them, however late
  cache::WayMask dirty_victims(PageSet& set, uint32_t count);
  // Would one of them leave with half as many misses? Then it is time: there is more to do at a time than when each miss makes one clean.
  bool is_to_flush(PageSet& set);
  void forget(PageSet& set, uint32_t way);

  // --- resizing ---

  // A page that cannot move.
  struct Obstacle {
    PageSet* set = nullptr;  // nullptr: there is none
    Way* way = nullptr;
  };
  // Gives back the memory of frames that no set has.
  void end_resize();
  // Makes one more set; both get frames, if they have less than kWaysLeast. REQUIRES: it was opened for so many.
  Obstacle split();
  // Makes one less. REQUIRES: those two have at most kWaysMost frames; there are two sets.
  Obstacle merge();
  // Of the set that merge() takes away, and of the one that its pages go to.
  uint32_t last() const { return sets().count - 1; }
  uint32_t parent_of(uint32_t index) const { return index - std::bit_floor(index); }
  uint32_t frames_of(PageSet& set);
  uint32_t held_of(PageSet& set);  // whose pages somebody holds, loads or cleans
  void give_frames(PageSet& set, uint32_t count);
  // As claim(); kClaimed: the set has one less.
  Claim take_frame(PageSet& set, uint32_t& way, uint64_t& evictions);
  // Copies pages from frames at the end to those that have become free further up, unless they are held, so that memory can be given back
  // in large pieces.
  void compact();

 private:
  // One word, that all see change at once.
  struct alignas(uint64_t) Sets {
    uint32_t count;
    uint32_t
        mask;  // of the bits that choose, where a set is split already: count rounded up to a power of two, less one

    static Sets of(uint32_t count) { return {count, std::bit_ceil(count) - 1}; }
    uint32_t index_of(uint64_t hash) const {
      const uint32_t index = static_cast<uint32_t>(hash) & mask;
      return index < count ? index : index & (mask >> 1);
    }
    // Of the bits that choose this set.
    uint32_t mask_of(uint32_t index) const {
      const uint32_t half = mask >> 1;
      return index <= half && index + half + 1 >= count ? half : mask;
    }
  };
  static_assert(std::atomic<Sets>::is_always_lock_free);

  // Relaxed: it changes under the locks of all sets that it matters to; what others take from it they look at again.
  Sets sets() const { return sets_.load(std::memory_order_relaxed); }
  std::byte* frame_at(uint32_t frame) const { return frame_memory_ + (uint64_t{frame} << page_shift_); }
  base::Expected<Size> size_within(uint64_t memory_bytes, uint64_t memory_bytes_max) const;

  // kClaimed: of a FREE way.
  Claim make_room(PageSet& set, uint32_t& chosen, uint64_t& evictions);
  // What there is to choose from when pages are to leave.
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

  // Not in the line that hits look at.
  alignas(base::kLineBytes) std::atomic<uint32_t> frame_count_{0};  // that sets have
  // Of who resizes.
  std::vector<uint32_t> spare_frames_;  // that sets have had
  uint32_t next_frame_ = 1;             // in the array; none has had from here on
};

// By hashes whose bits count from the last one on: those of a set follow each other, however many sets there are, and what was seen is
// what comes before.
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
