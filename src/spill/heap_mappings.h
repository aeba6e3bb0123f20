// HeapMappings: what jemalloc has mapped for its metadata, and how much of that is in memory.
//
// jemalloc maps metadata long before it uses it: 2 MiB for each GiB of addresses with blocks, of which it touches 8 bytes for each OS page of
// blocks. What was not touched takes no memory, and must not be charged to the budget.
//
// Thread contract: any thread, one at a time for each mapping; there is no lock, since jemalloc holds its own. count_bytes: one thread. A
// child of fork goes on with the record, since it has the same mappings.
#pragma once
#include <atomic>
#include <cstdint>

#include "sys/resident.h"

namespace spill {

class HeapMappings {
 public:
  // Each mapping is larger than the last, so these amount to some TiB. Further ones count as if they were in memory as a whole.
  static constexpr uint32_t kMax = 256;

  void add(uint64_t begin, uint64_t bytes) {
    for (Mapping& mapping : mappings_) {
      uint64_t none = 0;
      // A mapping counts once its end is set: without one it is not looked at. Pairs with the acquire in count_bytes().
      if (!mapping.begin.compare_exchange_strong(none, begin, std::memory_order_relaxed)) continue;
      mapping.is_full.store(false, std::memory_order_relaxed);
      mapping.end.store(begin + bytes, std::memory_order_release);
      return;
    }
    more_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }

  // [begin, begin + bytes) is unmapped: all of a mapping, or its front or back.
  void remove(uint64_t begin, uint64_t bytes) {
    for (Mapping& mapping : mappings_) {
      const uint64_t old_begin = mapping.begin.load(std::memory_order_relaxed);
      const uint64_t old_end = mapping.end.load(std::memory_order_relaxed);
      if (old_begin > begin || begin + bytes > old_end) continue;
      if (old_begin < begin) {
        mapping.end.store(begin, std::memory_order_relaxed);
      } else if (begin + bytes < old_end) {
        mapping.begin.store(begin + bytes, std::memory_order_relaxed);
      } else {
        mapping.end.store(0, std::memory_order_relaxed);
        // Pairs with the compare-and-swap in add(): free from here on.
        mapping.begin.store(0, std::memory_order_release);
      }
      return;
    }
    more_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  }

  // Bytes of all mappings that are in memory, about, since mappings may come and go meanwhile. Cost: 10 ns for each OS page; nothing for
  // mappings that were in memory as a whole before: jemalloc does not give them back.
  uint64_t count_bytes() {
    uint64_t bytes = more_bytes_.load(std::memory_order_relaxed);
    for (Mapping& mapping : mappings_) {
      const uint64_t end = mapping.end.load(std::memory_order_acquire);
      const uint64_t begin = mapping.begin.load(std::memory_order_relaxed);
      if (begin == 0 || begin >= end) continue;
      if (!mapping.is_full.load(std::memory_order_relaxed)) {
        const uint64_t resident = sys::resident_bytes_of(reinterpret_cast<const void*>(begin), end - begin);
        bytes += resident;
        if (resident == end - begin) mapping.is_full.store(true, std::memory_order_relaxed);
      } else {
        bytes += end - begin;
      }
    }
    return bytes;
  }

 private:
  struct Mapping {
    std::atomic<uint64_t> begin{0};  // 0: none
    std::atomic<uint64_t> end{0};
    std::atomic<bool> is_full{false};
  };
  Mapping mappings_[kMax];
  std::atomic<uint64_t> more_bytes_{0};
};

}  // namespace spill
