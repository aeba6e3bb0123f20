// Ghosts: pages that left memory recently. When one comes back, they tell how much more memory would have kept it.
//
// Think of a stack of pages with the most recently used page on top. The frames hold its upper part, in unknown order, since hits leave no trace. Below
// lie the pages that left, the latest on top. With `frames` frames, a page that comes back from under `d` other ghosts would have stayed with
// `frames + d` of them: that is exact for LRU, and nearly so for CLOCK.
//
// Only a sample is kept: pages the hash of whose number ends with `shift_` zeros. That is one in 2^shift_ pages, and each stands for 2^shift_
// (Waldspurger, Park, Garthwaite, Ahmad: Efficient MRC construction with SHARDS, FAST 2015). When the sample has more pages than the capacity, shift_
// grows by one, and half of them are dropped.
//
//   pages_   in the order in which they left, with gaps where one came back; packed when it is full
//   tree_    a Fenwick tree of counts of pages, for the rank of a page
//   slots_   index of each page in pages_: a hash table with open addressing
//
// Thread contract: its partition's lock. Cost: a hash for a page outside the sample; about 100 ns for one in it.
#pragma once
#include "base/error.h"
#include "base/ids.h"
#include "base/miss_curve.h"
#include "cache/pages/budget.h"

namespace cache {

using base::PageId;

class Ghosts {
 public:
  static constexpr uint32_t kMaxCapacity = 1024;

  // Charges its memory, 28 bytes for each page of the capacity, to the budget. REQUIRES: capacity > 0. Errors: ENOMEM.
  base::Expected<void> open(uint32_t capacity, Budget& budget);
  void close();

  // The page left its frame.
  void left(PageId page);
  // The page is being loaded into one of `frame_count` frames, all others of which hold pages. Counts it in `curve`, which is null if the load is ahead
  // of use.
  void came(PageId page, uint64_t frame_count, base::MissCurve* curve);
  // The page's content is gone: if it comes back, it counts as a new page.
  void forget(PageId page);

  uint32_t count() const { return count_; }
  uint32_t shift() const { return shift_; }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};

  bool is_sampled(uint64_t hash) const { return (hash & ((uint64_t{1} << shift_) - 1)) == 0; }
  uint32_t cell_of(PageId page) const;
  void remove(uint32_t cell);
  void append(PageId page);
  void pack();
  void change(uint32_t slot, int by);
  uint32_t count_up_to(uint32_t slot) const;

  uint64_t* pages_ = nullptr;  // room_ of them: page + 1; 0: a gap
  uint16_t* tree_ = nullptr;   // room_ + 1
  uint16_t* slots_ = nullptr;  // 2 * room_ cells: slot + 1; 0: empty
  char* memory_ = nullptr;
  uint64_t memory_bytes_ = 0;
  uint32_t capacity_ = 0;
  uint32_t room_ = 0;  // twice the capacity, a power of two
  uint32_t next_ = 0;  // slot to be used next
  uint32_t count_ = 0;
  uint32_t shift_ = 0;
};

}  // namespace cache
