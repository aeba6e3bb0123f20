// Buckets: the records of a table, and the head of each bucket. This class only holds the memory; kernels work on it (kernels.h).
//
// A record whose home is full lies in one of the next Head::kMaxReach buckets. For the last homes there are that many more buckets at the end.
//
// Invariants, while no head is locked (verify)
//  1 a record lies in its home or in a bucket after it, no farther away than its home's reach says
//  2 no key occurs twice
//  3 if there are tags, tag i of a bucket is the tag of its record i, for each record in the bucket
#pragma once
#include <atomic>

#include "base/error.h"
#include "batch/huge_memory.h"
#include "batch/shape.h"
#include "batch/spread.h"

namespace batch {

class Buckets {
 public:
  Buckets() = default;
  Buckets(const Buckets&) = delete;
  Buckets& operator=(const Buckets&) = delete;

  // Makes empty buckets, in large OS pages if the system has some. Errors: ENOMEM. REQUIRES: not open.
  base::Expected<void> open(const Shape& shape, const Spread& spread);
  void close() {
    memory_.close();
    tags_memory_.close();
    tags_ = nullptr;
  }
  // From now on all records have tags. Errors: ENOMEM. REQUIRES: nobody else uses the buckets.
  base::Expected<void> add_tags();
  void swap(Buckets& other);

  const Shape& shape() const { return shape_; }
  const Spread& spread() const { return spread_; }
  bool has_tags() const { return tags_ != nullptr; }
  // The number of all buckets: the homes, and those after the last home.
  uint64_t count() const { return spread_.bucket_count() + Head::kMaxReach; }
  uint64_t memory_bytes() const { return memory_.bytes() + tags_memory_.bytes(); }

  std::byte* bucket(uint64_t index) const { return records_ + index * shape_.bucket_bytes; }
  std::byte* record(uint64_t index, uint32_t slot) const {
    return bucket(index) + slot * shape_.record_bytes();
  }
  std::atomic<uint16_t>& head(uint64_t index) const { return heads_[index]; }
  // How many bytes of tags a bucket has: as many as a vector comparison reads.
  uint32_t tag_bytes() const { return tag_bytes_; }
  uint8_t* tags(uint64_t index) const { return tags_ + index * tag_bytes_; }
  static uint8_t tag_of(const Key& key) { return static_cast<uint8_t>(hash_of(key)); }

  // Locks the bucket, and returns its head as it was before. Spins, and yields after a while. Cost: an atomic exchange.
  Head lock(uint64_t index) const {
    // Pairs with the release in unlock().
    const uint16_t word = heads_[index].exchange(Head::kLocked, std::memory_order_acquire);
    if (word != Head::kLocked) [[likely]]
      return Head::of(word);
    return lock_slow(index);
  }
  void unlock(uint64_t index, const Head& head) const {
    heads_[index].store(head.word(), std::memory_order_release);
  }

  // Brings the buckets [begin, end) into the CPU's cache, front to back, as far as they fit there.
  void fetch(uint64_t begin, uint64_t end) const {
    uint64_t sum = 0;
    for (const std::byte* at = bucket(begin); at < bucket(end); at += base::kLineBytes)
      sum += load_word<uint64_t>(at);
    asm volatile("" : : "r"(sum));
  }

  // For tests; nobody else may use the buckets meanwhile. Ends the process if an invariant does not hold.
  void verify() const;

 private:
  Head lock_slow(uint64_t index) const;

  Shape shape_;
  Spread spread_;
  HugeMemory memory_;  // of records and heads
  HugeMemory tags_memory_;
  std::byte* records_ = nullptr;
  std::atomic<uint16_t>* heads_ = nullptr;
  uint8_t* tags_ = nullptr;
  uint32_t tag_bytes_ = 0;
};

}  // namespace batch
