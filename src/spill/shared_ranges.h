// SharedRanges: a set of addresses, as ranges.
//
// Invariants: ranges are sorted and do not overlap; none is empty; addresses are of whole OS pages.
//
// Thread contract: none of its own.
#pragma once
#include <cstddef>
#include <cstdint>

namespace spill {

struct SharedRange {
  uint64_t begin = 0, end = 0;
};

class SharedRanges {
 public:
  static constexpr size_t kMax = 1024;

  // Returns false, and records nothing, if there is no room. REQUIRES: nothing recorded overlaps it.
  bool add(const SharedRange& range);
  // Forgets what lies in [begin, end). If that splits a range and there is no room for the second part, the second part is forgotten too.
  void remove(uint64_t begin, uint64_t end);
  // The first range that ends above `address`; null if none does. Valid until the next change.
  const SharedRange* at_or_above(uint64_t address) const;

  size_t count() const { return count_; }
  const SharedRange& operator[](size_t i) const { return ranges_[i]; }
  // Sum of all ranges.
  uint64_t bytes() const;

 private:
  size_t index_above(uint64_t address) const;
  bool insert(size_t at, const SharedRange& range);

  SharedRange ranges_[kMax];
  size_t count_ = 0;
};

}  // namespace spill
