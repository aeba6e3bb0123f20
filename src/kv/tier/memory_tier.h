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
// S3-FIFO (Yang, Zhang, Qiu, Yue, Vigfusson: FIFO queues are all you need for cache eviction, SOSP 2023, section 4), of blocks: records of any length
// are appended to blocks, a queue is a list of blocks, and its oldest block is evicted as a whole. Records in it that are to stay are copied to the
// newest block of main. So memory has no gaps into which nothing fits.
//
//  1 A copy is found by the address of its record, and may be from an earlier life of that segment. Whoever gets one judges it like bytes from the
//    device: by the segment's generation and the record's check. So the tier need not be told when segments are collected
//  2 Small has a tenth of the memory. Records that are used once pass through it and leave main alone
//  3 Memory is divided into shards by a hash of the address. Each has a lock, which is held while a record is copied
//  4 There are never more blocks than the budget allows. It may change at any time; the memory of surplus blocks is given back at once
//
// Thread contract: any thread, except for open() and close(). Cost of read() and keep(): a lock, some cache misses, the copy; one keep() in some hundreds
// evicts a block, too: 50 us.
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
  uint64_t used_bytes = 0;    // in blocks
  uint64_t record_count = 0;  // that can be found
  uint64_t record_bytes = 0;  // of these records
  // Since it was opened:
  uint64_t kept_records = 0;      // copied to it
  uint64_t promoted_records = 0;  // moved from small to main, or kept in main since they came back
};

class MemoryTier {
 public:
  static constexpr size_t kBlockBytes = 256 << 10;
  // Longer ones are not kept.
  static constexpr size_t kMaxRecordBytes = kBlockBytes / 4;
  // The most memory that positions of 32 bits can address.
  static constexpr uint64_t kMaxBytes = uint64_t{128} << 30;

  MemoryTier() = default;
  ~MemoryTier() { close(); }
  MemoryTier(const MemoryTier&) = delete;
  MemoryTier& operator=(const MemoryTier&) = delete;

  // Takes address space for the largest budget there will be, up to kMaxBytes, and sets the budget to that. 0: nothing is ever kept. Errors: ENOMEM.
  base::Expected<void> open(uint64_t bytes_most);
  void close();

  // Sets how much memory may be used, at most what open() was given. A budget of fewer than kMinBlocks blocks for each shard counts as 0: if open()
  // was given up to 16 MiB, that is less than 768 KiB; up to 512 MiB, less than a twentieth to a tenth of that; more, less than 48 MiB. The tables
  // that find records take up to 1/64 of what open() was given in addition. Cost: if the budget shrinks, that of giving memory back.
  void set_budget(uint64_t bytes);

  // Copies the record that was kept under the address, as much of it as there is room for. Returns how much that is; 0: none was kept.
  size_t read(uint64_t address, std::span<std::byte> to);
  // Keeps a copy of the record at this address, in place of what was kept under it.
  void keep(uint64_t address, std::span<const std::byte> record);
  // The record at `address` has been replaced by the one at `by`, which has been kept and inherits its uses. Forgets the former.
  void replace(uint64_t address, uint64_t by);
  void forget(uint64_t address) { take_out(address); }

  // The memory in blocks.
  uint64_t used_bytes() const { return used_blocks_.load(std::memory_order_relaxed) * uint64_t{kBlockBytes}; }
  // Cost: takes all locks, one after the other.
  TierCounts counts();
  // Checks the invariants, for tests; ends the process where one does not hold.
  void verify();

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  static constexpr uint32_t kUnitBytes = 64;  // records begin at multiples of this, the unit of positions
  static constexpr uint32_t kBlocksPerShard = 32;
  static constexpr uint32_t kMaxShards = 64;
  static constexpr uint32_t kMinBlocks = 3;  // for a shard: one in each queue, and a spare one
  static constexpr uint32_t kSmallPart = 10;
  static constexpr uint64_t kHeadBytes = 1024;  // bytes of memory for each chain
  static constexpr uint8_t kMaxUses = 3;
  static constexpr uint8_t kUsesToStay = 2;  // uses in small that bring a record to main
  // If evicting this many blocks in a row has freed none, since what stays filled another one, nothing of the next one stays.
  static constexpr int kMaxInVain = 8;

  struct Box;
  struct Block {
    uint32_t next = kNone;
    uint32_t used_bytes = 0;
  };
  // A list of blocks, the oldest first.
  struct Queue {
    uint32_t first = kNone, last = kNone;
    uint32_t count = 0;
  };
  struct alignas(64) Shard {
    sys::Mutex lock;
    Queue small, main;
    uint32_t spare = kNone;      // a block in no queue: for what stays of one that is evicted
    uint32_t* heads = nullptr;   // of chains: positions plus 1; 0: an empty chain
    uint32_t* ghosts = nullptr;  // marks of records that have left small
    TierCounts counts;           // record_count to promoted_records, for the shard
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
  // Blocks in the shard's queues.
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
  uint32_t heads_ = 0;  // how many heads, and ghosts, a shard has; a power of two
  uint32_t* tables_ = nullptr;
  std::atomic<uint32_t> budget_blocks_{0}, used_blocks_{0};
  sys::Mutex free_lock_;  // guards what follows
  std::vector<uint32_t> free_;
};

}  // namespace kv
