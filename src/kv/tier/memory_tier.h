// MemoryTier: copies of records in memory, so that what is used again soon costs no I/O.
//
//           read                 written                  came back
//             │                     │                         │
//             ▼                     ▼                         ▼
//           small ──used twice──────────────────────────► main ◄─┐ used: again at its end,
//             │                                             │ └───┘ with one use less
//             ▼                                             ▼
//           ghost: only that it was there                 gone
//
// S3-FIFO (Yang, Zhang, Qiu, Yue, Vigfusson: FIFO queues are all you need for cache eviction, SOSP 2023, section 4), of blocks: records of
// any length lie one behind the other, a queue is a list of blocks, and its oldest block goes as a whole. What is to stay of it is
// copied to the newest block of main: memory has no gaps that fit nothing.
//
//  1 a copy has the address of its record, and may be of an earlier life of that segment: who gets one judges it, as what comes from the
//    device, by the segment's generation and the record's check. So nothing needs to be told here when segments are collected
//  2 small has a tenth of the memory: what is used once passes through it, and leaves main alone
//  3 memory is parted by a hash of the address into shards, each with a lock, which is held while a record is copied
//  4 there are never more blocks than the budget, which may change at any time; memory of those that are too many is given back at once
//
// Thread contract: any, but for open() and close(). Cost: of read() and keep() a lock, some cache misses, the copy; of one keep() in some hundreds
// besides a block that goes: 50 us.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "sys/lock.h"

namespace kv {

struct TierCounts {
  uint64_t budget_bytes = 0;
  uint64_t used_bytes = 0;    // of blocks
  uint64_t record_count = 0;  // that can be found
  uint64_t record_bytes = 0;
  uint64_t kept_records = 0;      // since it was opened, that were copied to it
  uint64_t promoted_records = 0;  // from small to main, or that came back
};

class MemoryTier {
 public:
  static constexpr size_t kBlockBytes = 256 << 10;
  // Longer ones are not kept.
  static constexpr size_t kRecordBytesMost = kBlockBytes / 4;
  // What positions reach.
  static constexpr uint64_t kBytesMost = uint64_t{128} << 30;

  MemoryTier() = default;
  ~MemoryTier() { close(); }
  MemoryTier(const MemoryTier&) = delete;
  MemoryTier& operator=(const MemoryTier&) = delete;

  // Address space for the largest budget there will be, up to kBytesMost; the budget is that, until it is set. 0: nothing is ever kept. Errors:
  // ENOMEM.
  base::Expected<void> open(uint64_t bytes_most);
  void close();

  // What may be used, at most what open() had; of less than a tenth of that nothing. An index takes up to 1/64 more. Cost: of less than before, the work of giving back.
  void set_budget(uint64_t bytes);

  // Copies what was kept under the address, as much as there is room for: how much. 0: nothing was.
  size_t read(uint64_t address, std::span<std::byte> to);
  // The record at the address is this; what was kept under it goes.
  void keep(uint64_t address, std::span<const std::byte> record);
  // The record at the address is not used any more: that at the other one, which was kept, is its successor, and as much in use as it was.
  void replace(uint64_t address, uint64_t by);
  void forget(uint64_t address) { take_out(address); }

  // Of blocks.
  uint64_t used_bytes() const { return used_blocks_.load(std::memory_order_relaxed) * uint64_t{kBlockBytes}; }
  // Cost: all locks, one after the other.
  TierCounts counts();
  // Invariants, for tests.
  void verify();

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  static constexpr uint32_t kUnitBytes = 64;  // of positions: where records begin
  static constexpr uint32_t kBlocksPerShard = 32;
  static constexpr uint32_t kShardsMost = 64;
  static constexpr uint32_t kBlocksLeast = 3;  // of a shard: one in each queue, and a spare one
  static constexpr uint32_t kSmallPart = 10;
  static constexpr uint64_t kHeadBytes = 1024;  // of memory for each head of a chain
  static constexpr uint8_t kUsesMost = 3;
  static constexpr uint8_t kUsesToStay = 2;  // in small
  // Blocks of main all of which stay, one after the other; of the next one nothing stays.
  static constexpr int kInVainMost = 8;

  struct Box;
  struct Block {
    uint32_t next = kNone;
    uint32_t used_bytes = 0;
  };
  // Of blocks, oldest first.
  struct Queue {
    uint32_t first = kNone, last = kNone;
    uint32_t count = 0;
  };
  struct alignas(64) Shard {
    sys::Mutex lock;
    Queue small, main;
    uint32_t spare = kNone;     // a block in no queue: for what stays of one that goes
    uint32_t* heads = nullptr;  // of chains: positions
    uint32_t* ghosts = nullptr;
    TierCounts counts;  // of its records
  };

  Shard& shard_of(uint64_t hash) { return shards_[hash & (shard_count_ - 1)]; }
  uint32_t& head_of(Shard& shard, uint64_t hash) const { return shard.heads[hash >> 16 & (heads_ - 1)]; }
  uint32_t& ghost_of(Shard& shard, uint64_t hash) const { return shard.ghosts[hash >> 16 & (heads_ - 1)]; }
  Box& box_at(uint32_t position) const;
  uint32_t position_of(const Box& box) const;
  Box* find(Shard& shard, uint64_t hash, uint64_t address) const;
  template <class Use>
  void with_box(uint64_t address, const Use& use);
  void unlink(Shard& shard, uint64_t hash, Box& box);
  bool append(Shard& shard, Queue& queue, uint64_t hash, uint64_t address, uint8_t uses,
              std::span<const std::byte> record);
  void add_block(Queue& queue, uint32_t block);
  bool has_room(const Queue& queue, uint32_t bytes) const;
  // In its queues.
  static uint32_t block_count_of(const Shard& shard) { return shard.small.count + shard.main.count; }
  uint32_t take_block(Shard& shard);
  void have_one_given(const Shard& shard);
  uint32_t make_room(Shard& shard);
  bool evict(Shard& shard, Queue& from, bool keeps);
  bool give_one(Shard& shard);
  uint8_t take_out(uint64_t address);
  uint32_t take_free();
  void give_free(uint32_t block);
  bool is_over() const {
    return used_blocks_.load(std::memory_order_relaxed) > budget_blocks_.load(std::memory_order_relaxed);
  }
  template <class Use>
  void for_each_in(uint32_t block, const Use& use) const;

  std::byte* memory_ = nullptr;
  uint32_t block_count_ = 0;
  std::unique_ptr<Block[]> blocks_;
  uint32_t shard_count_ = 0;
  std::unique_ptr<Shard[]> shards_;
  uint32_t heads_ = 0;  // of a shard, a power of two; and its ghosts
  uint32_t* tables_ = nullptr;
  std::atomic<uint32_t> budget_blocks_{0}, used_blocks_{0};
  sys::Mutex free_lock_;  // of what follows
  std::vector<uint32_t> free_;
};

}  // namespace kv
