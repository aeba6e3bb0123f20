#include "kv/collection/large_values.h"

#include <algorithm>

#include "base/check.h"

namespace kv {

std::vector<LargeValues::Use>::iterator LargeValues::find(const Pieces& pieces) {
  return std::ranges::find_if(uses_,
                              [&](const Use& use) { return use.pieces.of.sequence == pieces.of.sequence; });
}

void LargeValues::begin_read(const Pieces& pieces) {
  sys::LockGuard scope(lock_);
  const auto use = find(pieces);
  if (use != uses_.end())
    ++use->readers;
  else
    uses_.push_back({.pieces = pieces, .readers = 1});
}

bool LargeValues::end_read(const Pieces& pieces) {
  sys::LockGuard scope(lock_);
  const auto use = find(pieces);
  CHECK(use != uses_.end());
  if (--use->readers != 0) return false;
  const bool is_removed = use->is_removed;
  if (is_removed) removed_.push_back(pieces);
  *use = uses_.back();
  uses_.pop_back();
  return is_removed;
}

bool LargeValues::remove(const Pieces& pieces) {
  sys::LockGuard scope(lock_);
  const auto use = find(pieces);
  if (use != uses_.end()) {
    use->is_removed = true;
    return false;
  }
  removed_.push_back(pieces);
  return true;
}

bool LargeValues::is_removed(const Pieces& pieces) {
  sys::LockGuard scope(lock_);
  const auto use = find(pieces);
  return use != uses_.end() && use->is_removed;
}

bool LargeValues::take_removed(Pieces& pieces) {
  sys::LockGuard scope(lock_);
  if (removed_.empty()) return false;
  pieces = removed_.back();
  removed_.pop_back();
  return true;
}

void LargeValues::leave(const Pieces& pieces) {
  sys::LockGuard scope(lock_);
  left_.push_back(pieces);
  left_count_.store(left_.size(), std::memory_order_relaxed);
}

void LargeValues::retry_left() {
  sys::LockGuard scope(lock_);
  removed_.insert(removed_.end(), left_.begin(), left_.end());
  left_.clear();
  left_count_.store(0, std::memory_order_relaxed);
}

void LargeValues::begin_write(const Pieces& pieces) {
  sys::LockGuard scope(lock_);
  written_.push_back(pieces);
}

void LargeValues::end_write(const Pieces& pieces) {
  sys::LockGuard scope(lock_);
  forget_write(pieces);
}

void LargeValues::abandon_write(const Pieces& pieces) {
  sys::LockGuard scope(lock_);
  forget_write(pieces);
  removed_.push_back(pieces);
}

// REQUIRES: the lock.
void LargeValues::forget_write(const Pieces& pieces) {
  const auto at = std::ranges::find_if(
      written_, [&](const Pieces& other) { return other.of.sequence == pieces.of.sequence; });
  CHECK(at != written_.end());
  *at = written_.back();
  written_.pop_back();
}

size_t LargeValues::headless_count() {
  sys::LockGuard scope(lock_);
  const auto kept_by_readers = std::ranges::count_if(uses_, &Use::is_removed);
  return written_.size() + removed_.size() + left_.size() + lost_count_.load(std::memory_order_relaxed) +
         static_cast<size_t>(kept_by_readers);
}

}  // namespace kv
