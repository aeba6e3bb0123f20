// Merge: makes changes in the records of a region, in one pass over records and changes in the order of their positions.
#pragma once
#include <memory>
#include <span>

#include "batch/job.h"
#include "batch/shape.h"
#include "batch/stored/positions.h"

namespace batch {

// Memory that can grow, and is not initialized.
class Bytes {
 public:
  // Makes room for this many bytes; the content may be lost. False: out of memory.
  [[nodiscard]] bool reserve(size_t bytes);
  std::byte* data() const { return bytes_.get(); }
  std::span<std::byte> first(size_t bytes) const { return {bytes_.get(), bytes}; }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  size_t capacity_ = 0;
};

struct StoredChange {
  uint64_t position = 0;
  uint32_t order = 0;  // its number in the order in which changes came
  Code code;
  const std::byte* record = nullptr;  // the key, and the given value
};

struct MergeCounts {
  uint64_t inserted = 0, removed = 0;
  uint64_t missed = 0;   // changes of records that do not exist
  uint64_t dropped = 0;  // changes that would have inserted a record, but had no room
};

// Makes a change in a record, which may or may not exist: updates the value at `value`, and `is_there`. Codes refer to `functions` by number.
void apply_change(const Shape& shape, const Change* functions, Code code, const std::byte* given,
                  std::byte* value, bool& is_there, MergeCounts& counts);

// The positions from `begin` to `last`, inclusive.
struct PositionInterval {
  uint64_t begin = 0, last = 0;
};

class Merge {
 public:
  Merge(const Shape& shape, const Positions& positions, const Change* functions);

  using Interval = PositionInterval;
  struct Result : MergeCounts {
    uint64_t count = 0;  // of records
  };
  // Makes the changes in the `count` records at `records`, which are sorted by position, and writes the resulting records to `to`, sorted as well. Sorts
  // `changes`. Inserts no record whose position lies in one of the intervals `full`. REQUIRES: `to` has room for as many records as there are records
  // and changes together.
  Result run(const std::byte* records, uint64_t count, std::span<StoredChange> changes,
             std::span<const Interval> full, std::byte* to) const {
    return (this->*run_)(records, count, changes, full, to);
  }

 private:
  template <class Sizes>
  Result run_as(const std::byte* records, uint64_t count, std::span<StoredChange> changes,
                std::span<const Interval> full, std::byte* to) const;

  const Shape shape_;
  const Positions positions_;
  const Change* const functions_;
  Result (Merge::*run_)(const std::byte*, uint64_t, std::span<StoredChange>, std::span<const Interval>,
                        std::byte*) const = nullptr;
};

}  // namespace batch
