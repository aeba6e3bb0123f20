// MissCurve: about how many of the misses would still have occurred with more memory, for several sizes of memory.
//
// Thread contract: any thread adds; any thread, and another process, reads meanwhile. Relaxed: the counts order nothing.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace base {

class MissCurve {
 public:
  // The sizes, in sixteenths of the memory that there really was.
  static constexpr uint32_t kSteps[] = {16, 17, 18, 20,  22,  24,  26,  28,  32,  36,  40,  44,  48,  56,  64,
                                        72, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 512, 768, 1024};
  static constexpr size_t kStepCount = sizeof kSteps / sizeof kSteps[0];

  struct Point {
    uint64_t memory_bytes;
    uint64_t misses;
  };

  // Counts `weight` misses of pages that would have been in memory if there had been `sixteenths` sixteenths of it.
  void add(uint64_t sixteenths, uint64_t weight) {
    size_t step = 0;
    while (step < kStepCount && kSteps[step] < sixteenths) ++step;
    counts_[step].fetch_add(weight, std::memory_order_relaxed);
  }
  // Counts `weight` misses of pages that had never been in memory before: no amount of memory avoids these.
  void add_first(uint64_t weight) { counts_[kStepCount].fetch_add(weight, std::memory_order_relaxed); }

  // Has it seen too little to say anything?
  bool is_empty() const { return sum_from(0) < kFewest; }

  // The point of kSteps[i], given that there were `misses` with a budget of `memory_bytes`, of which frames took `frames_bytes`. Point 0 is that itself.
  // REQUIRES: i < kStepCount.
  Point point(size_t i, uint64_t memory_bytes, uint64_t frames_bytes, uint64_t misses) const {
    const uint64_t all = sum_from(0);
    const uint64_t left = i == 0 ? all : sum_from(i + 1);
    const auto share = all == 0 ? 0.0 : static_cast<double>(left) / static_cast<double>(all);
    return {memory_bytes + frames_bytes / 16 * (kSteps[i] - 16),
            i == 0 ? misses : static_cast<uint64_t>(share * static_cast<double>(misses) + 0.5)};
  }

 private:
  static constexpr uint64_t kFewest = 100;

  // All misses that step from - 1 does not avoid.
  uint64_t sum_from(size_t from) const {
    uint64_t sum = 0;
    for (size_t i = from; i <= kStepCount; ++i) sum += counts_[i].load(std::memory_order_relaxed);
    return sum;
  }

  // For each step, the misses that it avoids and the step before does not. The last count: the misses that no step avoids.
  std::atomic<uint64_t> counts_[kStepCount + 1] = {};
};

}  // namespace base
