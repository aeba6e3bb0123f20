#include "batch/stored/slots.h"

#include <algorithm>
#include <bit>

#include "base/bits.h"

namespace batch {

void Slots::open(uint64_t count) {
  count_ = count;
  used_.assign(count / 64 + 1, 0);
  used_[0] = 1;  // the superblocks
  used_count_ = 1;
}

bool Slots::mark_used(uint64_t slot) {
  if (base::has_bit(used_.data(), slot)) return false;
  base::set_bit(used_.data(), slot);
  ++used_count_;
  return true;
}

void Slots::set_limit() { limit_ = std::min(count_, used_count_ + used_count_ / kSpareShare + kMinSpare); }

uint64_t Slots::take() {
  const uint64_t words = (limit_ + 63) / 64;
  for (uint64_t i = 0; i <= words; ++i) {
    // The word with next_ is looked at twice: first for the slots from next_ on, at the end for those before it.
    const uint64_t word = (next_ / 64 + i) % words;
    uint64_t left = ~used_[word];
    if (i == 0) left &= ~uint64_t{0} << next_ % 64;
    if (left == 0) continue;
    const uint64_t found = word * 64 + static_cast<uint64_t>(std::countr_zero(left));
    if (found >= limit_) continue;
    base::set_bit(used_.data(), found);
    ++used_count_;
    next_ = found + 1 < limit_ ? found + 1 : 1;
    return found;
  }
  return 0;
}

uint64_t Slots::take_anywhere() {
  for (;;) {
    const uint64_t found = take();
    if (found != 0 || limit_ == count_) return found;
    limit_ = std::min(count_, limit_ + kMinSpare);
  }
}

bool Slots::raise_limit() {
  if (limit_ == count_) return false;
  if (given_up_.size() >= std::max(kMinSpare, used_count_ / (2 * kSpareShare))) return false;
  limit_ = std::min(count_, limit_ + std::max(kMinSpare, used_count_ / kSpareShare));
  return true;
}

void Slots::give_back(uint64_t slot) {
  if (slot == 0) return;
  base::clear_bit(used_.data(), slot);
  --used_count_;
}

void Slots::give_up(uint64_t slot) {
  if (slot != 0) given_up_.push_back(slot);
}

std::vector<uint64_t> Slots::take_given_up() {
  std::vector<uint64_t> taken;
  taken.swap(given_up_);
  return taken;
}

}  // namespace batch
