// Budget: bytes of frames, tables and metadata in use, and the limit, which the user sets and may change.
// Thread contract: any thread. The count is exact (relaxed atomics); exceeded_by() may miss what other threads are just adding.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/statistics.h"

namespace cache {

class Budget {
 public:
  void set_limit(uint64_t bytes) { limit_bytes_.store(bytes, std::memory_order_relaxed); }
  uint64_t limit_bytes() const { return limit_bytes_.load(std::memory_order_relaxed); }
  uint64_t used_bytes() const { return used_bytes_.load(std::memory_order_relaxed); }

  void add(uint64_t bytes) {
    base::statistics.memory_peak_bytes.raise(used_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes);
  }
  void subtract(uint64_t bytes) { used_bytes_.fetch_sub(bytes, std::memory_order_relaxed); }
  // Would `more` bytes exceed the limit?
  bool exceeded_by(uint64_t more) const { return used_bytes() + more > limit_bytes(); }

 private:
  std::atomic<uint64_t> limit_bytes_{~uint64_t{0}};
  std::atomic<uint64_t> used_bytes_{0};
};

}  // namespace cache
