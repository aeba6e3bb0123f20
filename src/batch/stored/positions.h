// Positions: the order of a stored table's keys, as 64-bit numbers that are about evenly spread: the hashes of the keys; or the keys scaled up, if keys
// are numbers below a bound.
#pragma once
#include <bit>

#include "batch/key.h"

namespace batch {

class Positions {
 public:
  Positions() = default;
  // key_space 0: by hash.
  explicit Positions(uint64_t key_space)
      : key_space_(key_space), factor_(key_space == 0 ? 0 : ~uint64_t{0} / key_space) {}

  uint64_t key_space() const { return key_space_; }
  bool has(const Key& key) const { return key_space_ == 0 || key.low < key_space_; }
  // With a key space, different keys have different positions; hashes may be equal, but hardly ever are. REQUIRES: has(key).
  [[gnu::always_inline]] uint64_t of(const Key& key) const {
    return key_space_ == 0 ? hash_of(key) : key.low * factor_;
  }

 private:
  uint64_t key_space_ = 0;
  uint64_t factor_ = 0;
};

}  // namespace batch
