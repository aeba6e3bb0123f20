// PageHistory: pages that left memory recently, and a small number for each; what policies call ghosts.
//
//   buckets   of 8 entries, a CPU line each, chosen by the page's hash. A full one loses its oldest entry
//   entry     print (32 bits of the hash) | stamp (28 bits: how many pages had left before it) | number (4 bits); 0: none
//
// An entry counts as long as no more pages than the capacity have left since, so there is no queue to keep in order. One page is mistaken for
// another in 8 of 2^32 cases.
//
// Thread contract: its partition's lock. Memory: 8 bytes an entry, of which there are 1.3 to 2.7 times the capacity. Cost: a CPU line.
#pragma once
#include <cstdint>
#include <optional>

#include "base/ids.h"

namespace cache {

using base::PageId;

class PageHistory {
 public:
  static constexpr uint8_t kMaxNumber = 15;

  static uint64_t memory_bytes(uint32_t capacity);
  // `memory`: memory_bytes(capacity) of zeros, aligned to a CPU line, which outlive this object.
  void open(char* memory, uint32_t capacity);

  // The page left. REQUIRES: number <= kMaxNumber.
  void add(PageId page, uint8_t number);
  // Removes the page; returns its number if it was remembered.
  std::optional<uint8_t> take(PageId page);
  // Halves all numbers.
  void halve();

 private:
  static constexpr uint32_t kEntries = 8;
  static constexpr uint32_t kNumberBits = 4;
  static constexpr uint32_t kMaxStamp = (uint32_t{1} << (32 - kNumberBits)) - 1;
  struct alignas(base::kLineBytes) Bucket {
    uint64_t entries[kEntries];
  };
  static_assert(sizeof(Bucket) == base::kLineBytes);

  static uint32_t bucket_count(uint32_t capacity);
  static uint64_t print_of(uint64_t hash) { return hash >> 32 << 32; }
  uint32_t age_of(uint64_t entry) const {
    return (clock_ - static_cast<uint32_t>(entry) / (kMaxNumber + 1)) & kMaxStamp;
  }
  Bucket& bucket_of(uint64_t hash) { return buckets_[hash & (bucket_count_ - 1)]; }

  Bucket* buckets_ = nullptr;
  uint32_t bucket_count_ = 0;
  uint32_t capacity_ = 0;
  uint32_t clock_ = 1;  // the stamp of the page that leaves next
};

}  // namespace cache
