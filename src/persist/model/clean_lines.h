// CleanLines: which lines have been flushed and not stored to since, as far as is remembered. For a model, which need not know it exactly: a
// line that is forgotten counts as dirty, and one that is stored to while it is flushed may count as clean.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/mix.h"

namespace persist {

// Zeroed memory is a CleanLines that knows no lines. Thread contract: any thread. Cost: a load and at most a store of a shared cache line.
class CleanLines {
 public:
  // As many as there are lines in 2 MiB. Of two lines with the same place only the last one is known.
  static constexpr uint32_t kPlaces = 1u << 15;

  // By a line's number: its address / 64.
  void stored(uint64_t line) {
    std::atomic<uint64_t>& place = place_of(line);
    // Relaxed, here and below: only the number itself matters.
    if (place.load(std::memory_order_relaxed) == line + 1) place.store(0, std::memory_order_relaxed);
  }
  // Returns whether it was dirty; it is clean now.
  bool flush(uint64_t line) {
    std::atomic<uint64_t>& place = place_of(line);
    if (place.load(std::memory_order_relaxed) == line + 1) return false;
    place.store(line + 1, std::memory_order_relaxed);
    return true;
  }

 private:
  std::atomic<uint64_t>& place_of(uint64_t line) { return places_[base::mix(line) % kPlaces]; }
  std::atomic<uint64_t> places_[kPlaces] = {};
};

}  // namespace persist
