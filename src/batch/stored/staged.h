// StagedChanges: the changes of a stored table that wait in memory until a maker makes them. Each region has a list of chunks of a fixed size.
//
//   chunk   | next, count | tags: a byte for each change | codes: a byte for each change | records ... |
//   tag     a byte of the key's hash. A search for a key's changes compares tags first, with vector instructions
//   record  the change's key, and the given value
//
// Thread contract: under the table's lock. The records of a list may be read without it, while nothing is appended to the list.
#pragma once
#include "base/error.h"
#include "batch/huge_memory.h"
#include "batch/job.h"
#include "batch/key.h"
#include "batch/shape.h"

namespace batch {

class StagedChanges {
 public:
  static constexpr uint32_t kNone = ~uint32_t{0};
  // Changes of a region, in the order in which they came.
  struct List {
    uint32_t first = kNone, last = kNone;  // chunks
    uint32_t count = 0;                    // changes

    bool is_empty() const { return count == 0; }
  };

  // Takes `bytes` bytes of memory, for chunks of chunk_bytes each. Errors: EINVAL: these are fewer than kMinChunks; ENOMEM.
  static constexpr uint32_t kMinChunks = 64;
  base::Expected<void> open(const Shape& shape, uint64_t bytes, uint32_t chunk_bytes);

  uint64_t memory_bytes() const { return memory_.bytes(); }
  uint32_t chunk_count() const { return chunk_count_; }
  uint32_t free_count() const { return free_count_; }
  // The least number of chunks that the list may have.
  uint32_t chunks_of(const List& list) const { return (list.count + capacity_ - 1) / capacity_; }

  // REQUIRES: free_count() > 0.
  void append(List& list, Code code, const Key& key, const std::byte* key_bytes, const std::byte* given);
  // These fetch what the next append() to the list will access into the CPU's cache: first fetch_head(), a while later fetch_end().
  void fetch_head(const List& list) const {
    if (list.last != kNone) __builtin_prefetch(chunk(list.last), 1);
  }
  void fetch_end(const List& list) const {
    if (list.last == kNone) return;
    const uint32_t i = head(list.last).count;
    __builtin_prefetch(tags(list.last) + i, 1);
    __builtin_prefetch(codes(list.last) + i, 1);
    __builtin_prefetch(record(list.last, i), 1);
  }
  // Moves the changes of `more` to the end of `list`.
  void append(List& list, List& more);
  void clear(List& list);
  // Empties the list, and calls move(code, record) for each change; move() may append it to other lists. A chunk is freed before the changes of the next
  // chunk are moved. REQUIRES: free_count() is at least the number of these lists.
  template <class Move>
  void drain(List& list, const Move& move) {
    uint32_t at = list.first;
    list = {};
    while (at != kNone) {
      for (uint32_t i = 0; i < head(at).count; ++i) move(Code::of(codes(at)[i]), record(at, i));
      const uint32_t next = head(at).next;
      free(at);
      at = next;
    }
  }

  // Calls visit(code, record) for each change, in the order of the list.
  template <class Visit>
  void for_each(const List& list, const Visit& visit) const {
    for (uint32_t at = list.first; at != kNone; at = head(at).next)
      for (uint32_t i = 0; i < head(at).count; ++i) visit(Code::of(codes(at)[i]), record(at, i));
  }
  // The same, but only for the changes of one key.
  template <class Visit>
  void for_each_of(const List& list, const Key& key, const Visit& visit) const {
    const uint8_t tag = tag_of(key);
    for (uint32_t at = list.first; at != kNone; at = head(at).next) {
      const uint32_t count = head(at).count;
      const uint8_t* const all = tags(at);
      for (uint32_t begin = 0; begin < count; begin += kTagsAtOnce) {
        uint64_t found = 0;
        for (uint32_t i = 0; i < kTagsAtOnce; ++i) found |= uint64_t{all[begin + i] == tag} << i;
        for (; found != 0; found &= found - 1) {
          const uint32_t i = begin + static_cast<uint32_t>(__builtin_ctzll(found));
          if (i >= count) break;
          const std::byte* const at_record = record(at, i);
          if (load_key(at_record, shape_.key_bytes) == key) visit(Code::of(codes(at)[i]), at_record);
        }
      }
    }
  }

 private:
  static constexpr uint32_t kTagsAtOnce = 32;
  struct Head {
    uint32_t next = kNone;
    uint32_t count = 0;
  };

  static uint8_t tag_of(const Key& key) { return static_cast<uint8_t>(hash_of(key)); }
  std::byte* chunk(uint32_t index) const { return memory_.at<std::byte>(uint64_t{index} * chunk_bytes_); }
  Head& head(uint32_t index) const { return *reinterpret_cast<Head*>(chunk(index)); }
  uint8_t* tags(uint32_t index) const { return reinterpret_cast<uint8_t*>(chunk(index) + sizeof(Head)); }
  uint8_t* codes(uint32_t index) const { return tags(index) + tag_bytes_; }
  std::byte* record(uint32_t index, uint32_t i) const {
    return chunk(index) + records_at_ + uint64_t{i} * shape_.record_bytes();
  }
  uint32_t take();
  void free(uint32_t index);

  Shape shape_;
  HugeMemory memory_;
  uint32_t chunk_bytes_ = 0;
  uint32_t capacity_ = 0;   // how many changes fit into a chunk
  uint32_t tag_bytes_ = 0;  // capacity_, rounded up to a multiple of kTagsAtOnce
  uint32_t records_at_ = 0;
  uint32_t chunk_count_ = 0;
  uint32_t free_count_ = 0;
  uint32_t used_count_ = 0;  // the first used_count_ chunks have been used before
  uint32_t first_free_ = kNone;
};

}  // namespace batch
