// StagedCells: small pieces of memory, all of the same size, in which changes wait. CacheBuckets and Decoupled use them as cache-buckets.
//
//   cell    | record 0 | record 1 | ...     |     each a change: its key, and the given value
//   codes   a byte for each record: what is to be done (job.h)
//
// This class only holds the memory: the owner knows how many changes a cell has, and who may use it at the moment. All is zeros at first, including some
// bytes besides the cells, which the owner may use for anything.
#pragma once
#include <cstring>

#include "base/error.h"
#include "batch/huge_memory.h"
#include "batch/job.h"
#include "batch/key.h"
#include "batch/shape.h"

namespace batch {

class StagedCells {
 public:
  StagedCells(const Shape& shape, uint32_t cell_bytes) : shape_(shape), cell_bytes_(cell_bytes) {}

  // The size of a cell with its codes.
  uint64_t bytes_each() const { return cell_bytes_ + capacity(); }
  // Errors: ENOMEM. REQUIRES: not open.
  base::Expected<void> open(uint64_t count, uint64_t bytes_beside) {
    const uint64_t beside_at = count * cell_bytes_,
                   codes_at = base::round_up(beside_at + bytes_beside, base::kLineBytes);
    if (auto opened = memory_.open(codes_at + count * capacity(), "the cache-buckets of a table"); !opened)
      return opened;
    records_ = memory_.at<std::byte>(0);
    beside_ = memory_.at<std::byte>(beside_at);
    codes_ = memory_.at<uint8_t>(codes_at);
    return {};
  }
  template <class T>
  T* beside() const {
    return reinterpret_cast<T*>(beside_);
  }
  uint64_t memory_bytes() const { return memory_.bytes(); }

  uint32_t capacity() const { return cell_bytes_ / shape_.record_bytes(); }
  // Copies the job's next change into the cell, as its change number `at`. REQUIRES: at < capacity().
  void put(uint64_t cell, uint32_t at, const Job& job) const {
    std::byte* const record = records(cell) + at * shape_.record_bytes();
    memcpy(record, job.keys + job.done_count * job.key_stride, shape_.key_bytes);
    if (job.given != nullptr)
      memcpy(record + shape_.key_bytes, job.given + job.done_count * job.given_stride, shape_.value_bytes);
    codes(cell)[at] = job.code.byte();
  }
  // Is one of the first `count` changes a change of this key?
  bool has(uint64_t cell, uint32_t count, const Key& key) const {
    for (uint32_t i = 0; i < count; ++i)
      if (load_key(records(cell) + i * shape_.record_bytes(), shape_.key_bytes) == key) return true;
    return false;
  }
  // A job that makes the cell's first `count` changes.
  Job job_of(uint64_t cell, uint32_t count) const {
    const uint32_t record_bytes = shape_.record_bytes();
    return {.count = count,
            .keys = records(cell),
            .given = records(cell) + shape_.key_bytes,
            .key_stride = record_bytes,
            .given_stride = record_bytes,
            .codes = codes(cell)};
  }
  // Removes the first `made` of `count` changes, and moves the others to the front.
  void drop_first(uint64_t cell, uint64_t made, uint32_t count) const {
    const uint64_t left = count - made, record_bytes = shape_.record_bytes();
    memmove(records(cell), records(cell) + made * record_bytes, left * record_bytes);
    memmove(codes(cell), codes(cell) + made, left);
  }

 private:
  std::byte* records(uint64_t cell) const { return records_ + cell * cell_bytes_; }
  uint8_t* codes(uint64_t cell) const { return codes_ + cell * capacity(); }

  const Shape shape_;
  const uint32_t cell_bytes_;
  HugeMemory memory_;
  std::byte* records_ = nullptr;
  std::byte* beside_ = nullptr;
  uint8_t* codes_ = nullptr;
};

}  // namespace batch
