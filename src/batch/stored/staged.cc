#include "batch/stored/staged.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/ids.h"

namespace batch {

base::Expected<void> StagedChanges::open(const Shape& shape, uint64_t bytes, uint32_t chunk_bytes) {
  shape_ = shape;
  chunk_bytes_ = chunk_bytes;
  // A change needs a tag, a code and a record. Rounding up the number of tags takes less than kTagsAtOnce bytes more.
  capacity_ = (chunk_bytes - static_cast<uint32_t>(sizeof(Head)) - kTagsAtOnce) / (2 + shape.record_bytes());
  CHECK_GT(capacity_, 0u);
  tag_bytes_ = static_cast<uint32_t>(base::round_up(capacity_, kTagsAtOnce));
  records_at_ = static_cast<uint32_t>(sizeof(Head)) + tag_bytes_ + capacity_;
  CHECK_LE(records_at_ + capacity_ * shape.record_bytes(), chunk_bytes);
  chunk_count_ = static_cast<uint32_t>(std::min<uint64_t>(bytes / chunk_bytes, kNone - 1));
  if (chunk_count_ < kMinChunks)
    return base::failure(EINVAL, "what is staged takes ", uint64_t{kMinChunks} * chunk_bytes,
                         " bytes at least, not ", bytes);
  free_count_ = chunk_count_;
  return memory_.open(uint64_t{chunk_count_} * chunk_bytes, "what is staged");
}

uint32_t StagedChanges::take() {
  CHECK_GT(free_count_, 0u);
  --free_count_;
  uint32_t taken = first_free_;
  if (taken != kNone)
    first_free_ = head(taken).next;
  else
    taken = used_count_++;
  head(taken) = {};
  return taken;
}

void StagedChanges::free(uint32_t index) {
  head(index).next = first_free_;
  first_free_ = index;
  ++free_count_;
}

void StagedChanges::append(List& list, Code code, const Key& key, const std::byte* key_bytes,
                           const std::byte* given) {
  if (list.last == kNone || head(list.last).count == capacity_) {
    const uint32_t taken = take();
    (list.last == kNone ? list.first : head(list.last).next) = taken;
    list.last = taken;
  }
  const uint32_t at = list.last, i = head(at).count++;
  ++list.count;
  tags(at)[i] = tag_of(key);
  codes(at)[i] = code.byte();
  std::byte* const to = record(at, i);
  memcpy(to, key_bytes, shape_.key_bytes);
  if (given != nullptr)
    memcpy(to + shape_.key_bytes, given, shape_.value_bytes);
  else
    memset(to + shape_.key_bytes, 0, shape_.value_bytes);
}

void StagedChanges::append(List& list, List& more) {
  if (more.is_empty()) return;
  (list.last == kNone ? list.first : head(list.last).next) = more.first;
  list.last = more.last;
  list.count += more.count;
  more = {};
}

void StagedChanges::clear(List& list) {
  drain(list, [](Code, const std::byte*) {});
}

}  // namespace batch
