// UsedRecords: which records of a cache have been read since they were written. A bit for each grain of its segments: a record's is that of its
// first grain. Kept in memory only, so gone when the process ends.
//
// Thread contract: any thread. Cost of mark(): a load; the first time for a record an atomic operation as well.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/error.h"

namespace kv {

class UsedRecords {
 public:
  // For this many grains, none of which is marked. Errors: ENOMEM. While it is not open, mark() does nothing.
  base::Expected<void> open(uint64_t grains);
  void close();

  void mark(uint64_t address) {
    if (words_ == nullptr) return;
    std::atomic<uint64_t>& word = words_[address / 64];
    const uint64_t bit = uint64_t{1} << (address % 64);
    // Relaxed: a mark orders no other memory.
    if ((word.load(std::memory_order_relaxed) & bit) == 0) word.fetch_or(bit, std::memory_order_relaxed);
  }
  bool is_marked(uint64_t address) const {
    return (words_[address / 64].load(std::memory_order_relaxed) >> (address % 64) & 1) != 0;
  }
  // Unmarks the grains of a segment that is given back. REQUIRES: multiples of 64.
  void clear(uint64_t first, uint64_t count) {
    for (uint64_t word = first / 64; word < (first + count) / 64; ++word)
      words_[word].store(0, std::memory_order_relaxed);
  }

 private:
  std::atomic<uint64_t>* words_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace kv
