#include "batch/stored/merge.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <tuple>

#include "batch/sizes.h"

namespace batch {

bool Bytes::reserve(size_t bytes) {
  if (bytes <= capacity_ && bytes_ != nullptr) return true;
  capacity_ = std::max<size_t>(bytes, 1);  // so that data() is not null after reserve(0)
  bytes_.reset(new (std::nothrow) std::byte[capacity_]);
  if (bytes_ == nullptr) capacity_ = 0;
  return bytes_ != nullptr;
}

Merge::Merge(const Shape& shape, const Positions& positions, const Change* functions)
    : shape_(shape), positions_(positions), functions_(functions) {
  const auto set = [&]<class Sizes>(Sizes) { run_ = &Merge::run_as<Sizes>; };
  if (!with_common_sizes(shape, set)) with_sizes<AnySizes>(shape, set);
}

void apply_change(const Shape& shape, const Change* functions, Code code, const std::byte* given,
                  std::byte* value, bool& is_there, MergeCounts& counts) {
  if (!is_there && !may_insert(code.action)) {
    ++counts.missed;
  } else if (code.action == Action::kRemove) {
    is_there = false;
    ++counts.removed;
  } else if (is_there && calls_function(code.action)) {
    const Change& change = functions[code.function];
    change.function(change.context, value, given);
  } else {
    memcpy(value, given, shape.value_bytes);
    counts.inserted += !is_there;
    is_there = true;
  }
}

template <class Sizes>
Merge::Result Merge::run_as(const std::byte* records, uint64_t count, std::span<StoredChange> changes,
                            std::span<const Interval> full, std::byte* to) const {
  const Sizes sizes(shape_);
  const uint32_t record_bytes = sizes.record_bytes();
  std::ranges::sort(changes, {},
                    [](const StoredChange& change) { return std::tuple(change.position, change.order); });
  Result result;
  const std::byte* from = records;
  const std::byte* const end = records + count * record_bytes;
  std::byte* out = to;
  for (size_t i = 0; i < changes.size();) {
    const uint64_t position = changes[i].position;
    const std::byte* const run_begin = from;
    uint64_t next = 0;
    while (from != end && (next = positions_.of(load_key(from, sizes.key_bytes()))) < position)
      from += record_bytes;
    memcpy(out, run_begin, static_cast<size_t>(from - run_begin));
    out += from - run_begin;
    // The records with this position: usually one.
    std::byte* const group = out;
    for (; from != end && positions_.of(load_key(from, sizes.key_bytes())) == position;
         from += record_bytes, out += record_bytes)
      memcpy(out, from, record_bytes);
    const bool has_room = std::ranges::none_of(full, [&](const Interval& interval) {
      return interval.begin <= position && position <= interval.last;
    });
    for (; i < changes.size() && changes[i].position == position; ++i) {
      const std::byte* const change = changes[i].record;
      const Key key = load_key(change, sizes.key_bytes());
      std::byte* at = group;
      while (at != out && load_key(at, sizes.key_bytes()) != key) at += record_bytes;
      const bool was_there = at != out;
      bool is_there = was_there;
      if (!is_there && !has_room && may_insert(changes[i].code.action)) {
        ++result.dropped;
        continue;
      }
      apply_change(shape_, functions_, changes[i].code, change + sizes.key_bytes(), at + sizes.key_bytes(),
                   is_there, result);
      if (is_there && !was_there) {
        memcpy(at, change, sizes.key_bytes());
        out += record_bytes;
      } else if (was_there && !is_there) {
        memmove(at, at + record_bytes, static_cast<size_t>(out - at) - record_bytes);
        out -= record_bytes;
      }
    }
  }
  memcpy(out, from, static_cast<size_t>(end - from));
  out += end - from;
  result.count = static_cast<uint64_t>(out - to) / record_bytes;
  return result;
}

}  // namespace batch
