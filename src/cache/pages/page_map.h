// PageMap: for each page the frame that holds it, or its place on storage, or nothing. It is the record of truth; the translation table is a cache of
// it.
//
//   directory  4 bytes per group of 16 pages, flat, touched lazily: leaf number + 1, 0 for none
//   leaf       16 words of 4 bytes (one CPU line): 0 nothing, 1 << 31 | frame, or place + 1
//
// The place of a resident page is in its Frame. Memory: 4.25 bytes per page in dense ranges, 68
// for a page alone in its group.
//
// Thread contract: guarded by the partition's lock; the directory is shared by partitions, whose
// pages are disjoint by whole groups.
#pragma once
#include "base/error.h"
#include "base/ids.h"
#include "cache/pages/budget.h"

namespace cache {

using base::FrameId;
using base::PageId;
using base::PlaceId;

inline constexpr uint64_t kGroupPages = 16;

// The directory, shared by the partitions of a cache.
class PageDirectory {
 public:
  // For pages 0 .. page_count - 1. Errors: ENOMEM.
  base::Expected<void> open(uint64_t page_count);
  void close();
  uint32_t& leaf_of(PageId page) { return leaves_[index(page) / kGroupPages]; }
  const uint32_t* leaves() const { return leaves_; }

 private:
  uint32_t* leaves_ = nullptr;
  uint64_t bytes_ = 0;
};

class PageMap {
 public:
  struct Where {
    FrameId frame = base::kNoFrame;  // at most one of the two is set
    PlaceId place = base::kNoPlace;
  };

  // group_limit: how many groups of pages the map may hold. Errors: ENOMEM.
  base::Expected<void> open(PageDirectory& directory, uint64_t group_limit, Budget& budget);
  void close();

  Where find(PageId page) const;
  // For readers in other processes (page_reader.h): what a leaf's word means, and its offset from leaves().
  static Where where_of(uint32_t word) {
    if (word == 0) return {};
    if ((word & kIsFrame) != 0) return {.frame = FrameId{word & ~kIsFrame}};
    return {.place = PlaceId{word - 1}};
  }
  static uint64_t word_offset(uint32_t leaf, PageId page) {
    return uint64_t{leaf - 1} * sizeof(Leaf) + index(page) % kGroupPages * sizeof(uint32_t);
  }
  const void* leaves() const { return leaves_; }
  void prefetch(PageId page) const {
    if (const uint32_t leaf = directory_->leaf_of(page); leaf != 0) __builtin_prefetch(&leaves_[leaf - 1], 1);
  }
  void set_frame(PageId page, FrameId frame);
  void set_place(PageId page, PlaceId place);
  void erase(PageId page);

 private:
  struct alignas(base::kLineBytes) Leaf {
    uint32_t words[kGroupPages];
  };
  static_assert(sizeof(Leaf) == base::kLineBytes);

  static constexpr uint32_t kIsFrame = uint32_t{1} << 31;

  uint32_t& word_for_update(PageId page);

  PageDirectory* directory_ = nullptr;
  Budget* budget_ = nullptr;
  Leaf* leaves_ = nullptr;
  uint64_t bytes_ = 0;
  uint32_t leaf_end_ = 0;              // leaves below it were handed out
  uint32_t free_leaf_ = ~uint32_t{0};  // list through words[0]
};

}  // namespace cache
