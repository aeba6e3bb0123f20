// Merge: changes are made in the records of a region, both in the order of their positions, in one pass over each.
#pragma once
#include <memory>
#include <span>

#include "batch/job.h"
#include "batch/shape.h"
#include "batch/stored/positions.h"

namespace batch {

// Memory that grows, and is not cleared.
class Bytes {
 public:
  // What was there is lost where it is too small. False: there is no memory.
  [[nodiscard]] bool reserve(size_t bytes);
  std::byte* data() const { return bytes_.get(); }
  std::span<std::byte> first(size_t bytes) const { return {bytes_.get(), bytes}; }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  size_t capacity_ = 0;
};

struct StoredChange {
  uint64_t position = 0;
  uint32_t order = 0;  // in which they came
  Code code;
  const std::byte* record = nullptr;  // a key, and what is given
};

struct MergeCounts {
  uint64_t inserted = 0, removed = 0;
  uint64_t missed = 0;   // changes of records that are not there
  uint64_t dropped = 0;  // that would have made one where there is no room
};

// What a change makes of a record, or of none: the value at `value`, and whether there is one. `functions` are those that codes have numbers of.
void apply_change(const Shape& shape, const Change* functions, Code code, const std::byte* given,
                  std::byte* value, bool& is_there, MergeCounts& counts);

// Positions from `begin` on, up to `last`.
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
  // `count` records at `records`, sorted by position, become others at `to`, sorted. Sorts `changes`. REQUIRES: `to` has room for a record for each record and
  // each change. Where it is `full` no records are made.
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
