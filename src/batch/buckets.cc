#include "batch/buckets.h"

#include <utility>

#include "base/check.h"
#include "sys/spin.h"

namespace batch {

base::Expected<void> Buckets::open(const Shape& shape, const Spread& spread) {
  CHECK(!memory_.is_open());
  shape_ = shape;
  spread_ = spread;
  tag_bytes_ = shape.slots() <= 16 ? 16 : shape.slots() <= 32 ? 32 : 64;
  // Checked first, so that neither the count nor the product overflows.
  if (spread.bucket_count() > HugeMemory::kMax / shape.bucket_bytes)
    return base::failure(ENOMEM, "no memory for ", spread.bucket_count(), " buckets");
  const uint64_t heads_at = count() * shape.bucket_bytes;
  if (auto opened = memory_.open(heads_at + count() * sizeof(uint16_t), "the buckets of a table"); !opened)
    return opened;
  records_ = memory_.at<std::byte>(0);
  heads_ = memory_.at<std::atomic<uint16_t>>(heads_at);
  return {};
}

base::Expected<void> Buckets::add_tags() {
  if (has_tags()) return {};
  if (auto opened = tags_memory_.open(count() * tag_bytes_, "the tags of a table"); !opened) return opened;
  tags_ = tags_memory_.at<uint8_t>(0);
  for (uint64_t i = 0; i < count(); ++i) {
    const uint32_t records = Head::of(heads_[i].load(std::memory_order_relaxed)).count;
    for (uint32_t slot = 0; slot < records; ++slot)
      tags(i)[slot] = tag_of(load_key(record(i, slot), shape_.key_bytes));
  }
  return {};
}

void Buckets::swap(Buckets& other) {
  std::swap(shape_, other.shape_);
  std::swap(spread_, other.spread_);
  memory_.swap(other.memory_);
  tags_memory_.swap(other.tags_memory_);
  std::swap(records_, other.records_);
  std::swap(heads_, other.heads_);
  std::swap(tags_, other.tags_);
  std::swap(tag_bytes_, other.tag_bytes_);
}

Head Buckets::lock_slow(uint64_t index) const {
  for (int spins = 0;; ++spins) {
    if (heads_[index].load(std::memory_order_relaxed) == Head::kLocked) {
      sys::spin(spins);
      continue;
    }
    // Pairs with the release in unlock().
    const uint16_t word = heads_[index].exchange(Head::kLocked, std::memory_order_acquire);
    if (word != Head::kLocked) return Head::of(word);
  }
}

void Buckets::verify() const {
  for (uint64_t i = 0; i < count(); ++i) {
    const uint16_t word = heads_[i].load(std::memory_order_relaxed);
    CHECK_EQ(word & Head::kLocked, 0);
    const Head head = Head::of(word);
    CHECK_LE(head.count, shape_.slots());
    CHECK(i < spread_.bucket_count() || head.reach == 0);
    for (uint32_t slot = 0; slot < head.count; ++slot) {
      const Key key = load_key(record(i, slot), shape_.key_bytes);
      CHECK(spread_.has(key));
      const uint64_t home = spread_.home(key);
      CHECK_LE(home, i);
      CHECK_LE(i - home, Head::of(heads_[home].load(std::memory_order_relaxed)).reach);
      if (has_tags()) CHECK_EQ(tags(i)[slot], tag_of(key));
      // Another record of this key would lie between its home and here.
      for (uint64_t j = home; j <= i; ++j) {
        const uint32_t end = j == i ? slot : Head::of(heads_[j].load(std::memory_order_relaxed)).count;
        for (uint32_t other = 0; other < end; ++other)
          CHECK(load_key(record(j, other), shape_.key_bytes) != key);
      }
    }
  }
}

}  // namespace batch
