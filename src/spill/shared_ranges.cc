#include "spill/shared_ranges.h"

#include "base/check.h"

namespace spill {

// The first range that ends above `address`.
size_t SharedRanges::index_above(uint64_t address) const {
  size_t low = 0, high = count_;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (ranges_[middle].end > address)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

bool SharedRanges::insert(size_t at, const SharedRange& range) {
  if (count_ == kMax) return false;
  for (size_t i = count_++; i > at; --i) ranges_[i] = ranges_[i - 1];
  ranges_[at] = range;
  return true;
}

bool SharedRanges::add(const SharedRange& range) {
  const size_t at = index_above(range.begin);
  CHECK(at == count_ || ranges_[at].begin >= range.end);
  return insert(at, range);
}

void SharedRanges::remove(uint64_t begin, uint64_t end) {
  size_t at = index_above(begin);
  if (at < count_ && ranges_[at].begin < begin) {
    SharedRange rest = ranges_[at];
    ranges_[at++].end = begin;
    if (rest.end > end) {
      rest.begin = end;
      insert(at, rest);
      return;
    }
  }
  size_t stop = at;
  while (stop < count_ && ranges_[stop].end <= end) ++stop;
  for (size_t from = stop, to = at; stop != at && from < count_; ++from, ++to) ranges_[to] = ranges_[from];
  count_ -= stop - at;
  if (at < count_ && ranges_[at].begin < end) ranges_[at].begin = end;
}

const SharedRange* SharedRanges::at_or_above(uint64_t address) const {
  const size_t at = index_above(address);
  return at == count_ ? nullptr : &ranges_[at];
}

uint64_t SharedRanges::bytes() const {
  uint64_t sum = 0;
  for (size_t i = 0; i < count_; ++i) sum += ranges_[i].end - ranges_[i].begin;
  return sum;
}

}  // namespace spill
