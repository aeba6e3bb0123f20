#include "cache/policies/page_history.h"

#include "base/check.h"
#include "base/mix.h"

namespace cache {

// On average at most six entries a bucket, so that few buckets overflow and lose one early.
uint32_t PageHistory::bucket_count(uint32_t capacity) {
  uint32_t count = 1;
  while (count < capacity / 6 + 1) count *= 2;
  return count;
}

uint64_t PageHistory::memory_bytes(uint32_t capacity) {
  return uint64_t{bucket_count(capacity)} * sizeof(Bucket);
}

void PageHistory::open(char* memory, uint32_t capacity) {
  CHECK_EQ(reinterpret_cast<uint64_t>(memory) % base::kLineBytes, 0u);
  buckets_ = reinterpret_cast<Bucket*>(memory);
  bucket_count_ = bucket_count(capacity);
  capacity_ = capacity;
}

void PageHistory::add(PageId page, uint8_t number) {
  CHECK_LE(number, kMaxNumber);
  const uint64_t hash = base::mix(index(page));
  Bucket& bucket = bucket_of(hash);
  uint64_t* place = &bucket.entries[0];
  for (uint64_t& entry : bucket.entries) {
    if (entry == 0 || print_of(entry) == print_of(hash)) {
      place = &entry;
      break;
    }
    if (age_of(entry) > age_of(*place)) place = &entry;
  }
  *place = print_of(hash) | clock_ << kNumberBits | number;
  clock_ = clock_ == kMaxStamp ? 1 : clock_ + 1;
}

std::optional<uint8_t> PageHistory::take(PageId page) {
  if (buckets_ == nullptr) return std::nullopt;
  const uint64_t hash = base::mix(index(page));
  for (uint64_t& entry : bucket_of(hash).entries) {
    if (entry == 0 || print_of(entry) != print_of(hash)) continue;
    const bool counts = age_of(entry) <= capacity_;
    const auto number = static_cast<uint8_t>(entry & kMaxNumber);
    entry = 0;
    if (counts) return number;
    return std::nullopt;
  }
  return std::nullopt;
}

void PageHistory::halve() {
  for (uint32_t i = 0; i < bucket_count_; ++i)
    for (uint64_t& entry : buckets_[i].entries)
      entry = (entry & ~uint64_t{kMaxNumber}) | (entry & kMaxNumber) / 2;
}

}  // namespace cache
