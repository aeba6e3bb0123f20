#include "kv/tier/memory_tier.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/mix.h"
#include "sys/memory.h"

namespace kv {

// A record as it lies in a block; its bytes follow.
struct MemoryTier::Box {
  uint64_t address : 56;
  uint64_t uses : 6;
  uint64_t is_in_main : 1;
  uint64_t is_linked : 1;  // it can be found; else it only takes room
  uint32_t next;           // the next one's position plus 1 in its chain; 0: none
  uint32_t bytes;

  std::span<std::byte> record() { return {reinterpret_cast<std::byte*>(this + 1), bytes}; }
  static uint32_t size(size_t record_bytes) {
    return static_cast<uint32_t>((sizeof(Box) + record_bytes + kUnitBytes - 1) / kUnitBytes * kUnitBytes);
  }
};

namespace {

// The low bits of a hash choose the shard, those from 16 on the chain, and the upper half is the ghost's mark.
uint64_t hash_of(uint64_t address) { return base::mix(address); }
uint32_t ghost_mark(uint64_t hash) { return static_cast<uint32_t>(hash >> 32) | 1; }

}  // namespace

base::Expected<void> MemoryTier::open(uint64_t bytes_most) {
  const uint64_t block_count = std::min(bytes_most, kMaxBytes) / kBlockBytes;
  if (block_count < kMinBlocks) return {};
  block_count_ = static_cast<uint32_t>(block_count);
  shard_count_ = std::clamp(std::bit_floor(block_count_ / kBlocksPerShard), 1u, kMaxShards);
  heads_ = static_cast<uint32_t>(std::bit_ceil(block_count * kBlockBytes / kHeadBytes / shard_count_));
  blocks_.reset(new (std::nothrow) Block[block_count_]);
  shards_.reset(new (std::nothrow) Shard[shard_count_]);
  auto memory = sys::map_anonymous(block_count * kBlockBytes, "records in memory");
  if (memory) memory_ = reinterpret_cast<std::byte*>(*memory);
  auto tables = sys::map_anonymous(sizeof(uint32_t) * 2 * heads_ * shard_count_, "records in memory");
  if (tables) tables_ = reinterpret_cast<uint32_t*>(*tables);
  if (blocks_ == nullptr || shards_ == nullptr || memory_ == nullptr || tables_ == nullptr) {
    close();
    return base::failure(ENOMEM, "store: no address space for ", base::Bytes{bytes_most}, " of memory");
  }
  for (uint32_t i = 0; i < shard_count_; ++i) {
    shards_[i].heads = tables_ + size_t{2} * heads_ * i;
    shards_[i].ghosts = shards_[i].heads + heads_;
  }
  free_.reserve(block_count_);
  for (uint32_t i = 0; i < block_count_; ++i) free_.push_back(block_count_ - 1 - i);
  budget_blocks_.store(block_count_, std::memory_order_relaxed);
  return {};
}

void MemoryTier::close() {
  sys::unmap(memory_, block_count_ * kBlockBytes);
  sys::unmap(tables_, sizeof(uint32_t) * 2 * heads_ * shard_count_);
  memory_ = nullptr;
  tables_ = nullptr;
  blocks_.reset();
  shards_.reset();
  free_ = {};
  block_count_ = shard_count_ = heads_ = 0;
  budget_blocks_.store(0, std::memory_order_relaxed);
  used_blocks_.store(0, std::memory_order_relaxed);
}

// --- chains: linked by positions plus 1, with 0 at the end ---

MemoryTier::Box& MemoryTier::box_at(uint32_t position) const {
  return *reinterpret_cast<Box*>(memory_ + uint64_t{position} * kUnitBytes);
}

uint32_t MemoryTier::position_of(const Box& box) const {
  return static_cast<uint32_t>((reinterpret_cast<const std::byte*>(&box) - memory_) / kUnitBytes);
}

MemoryTier::Box* MemoryTier::find(Shard& shard, uint64_t hash, uint64_t address) const {
  for (uint32_t at = head_of(shard, hash); at != 0;) {
    Box& box = box_at(at - 1);
    if (box.address == address) return &box;
    at = box.next;
  }
  return nullptr;
}

void MemoryTier::unlink(Shard& shard, uint64_t hash, Box& box) {
  uint32_t* at = &head_of(shard, hash);
  while (&box_at(*at - 1) != &box) at = &box_at(*at - 1).next;
  *at = box.next;
  box.is_linked = 0;
  --shard.counts.record_count;
  shard.counts.record_bytes -= box.bytes;
}

// --- blocks ---

uint32_t MemoryTier::take_free() {
  uint32_t used = used_blocks_.load(std::memory_order_relaxed);
  do {
    if (used >= budget_blocks_.load(std::memory_order_relaxed)) return kNone;
  } while (!used_blocks_.compare_exchange_weak(used, used + 1, std::memory_order_relaxed));
  sys::LockGuard scope(free_lock_);
  const uint32_t block = free_.back();
  free_.pop_back();
  return block;
}

void MemoryTier::give_free(uint32_t block) {
  sys::release(memory_ + uint64_t{block} * kBlockBytes, kBlockBytes);
  {
    sys::LockGuard scope(free_lock_);
    free_.push_back(block);
  }
  used_blocks_.fetch_sub(1, std::memory_order_relaxed);
}

template <class Use>
void MemoryTier::for_each_in(uint32_t block, const Use& use) const {
  const uint32_t begin = block * (kBlockBytes / kUnitBytes);
  for (uint32_t at = 0; at < blocks_[block].used_bytes;) {
    Box& box = box_at(begin + at / kUnitBytes);
    at += Box::size(box.bytes);
    use(box);
  }
}

void MemoryTier::add_block(Queue& queue, uint32_t block) {
  blocks_[block] = {};
  (queue.last == kNone ? queue.first : blocks_[queue.last].next) = block;
  queue.last = block;
  ++queue.count;
}

bool MemoryTier::has_room(const Queue& queue, uint32_t bytes) const {
  return queue.last != kNone && blocks_[queue.last].used_bytes + bytes <= kBlockBytes;
}

// Appends a copy to the queue's newest block, or to a new one. False: there is no room.
bool MemoryTier::append(Shard& shard, Queue& queue, uint64_t hash, uint64_t address, uint8_t uses,
                        std::span<const std::byte> record) {
  const uint32_t bytes = Box::size(record.size());
  if (!has_room(queue, bytes)) {
    const uint32_t block = take_block(shard);
    if (block == kNone) return false;
    add_block(queue, block);
  }
  Block& block = blocks_[queue.last];
  Box& box = box_at(queue.last * (kBlockBytes / kUnitBytes) + block.used_bytes / kUnitBytes);
  block.used_bytes += bytes;
  uint32_t& head = head_of(shard, hash);
  box = {.address = address,
         .uses = uses,
         .is_in_main = &queue == &shard.main,
         .is_linked = 1,
         .next = head,
         .bytes = static_cast<uint32_t>(record.size())};
  memcpy(box.record().data(), record.data(), record.size());
  head = position_of(box) + 1;
  ++shard.counts.record_count;
  shard.counts.record_bytes += record.size();
  return true;
}

// A block that is in no queue. kNone: there is none.
uint32_t MemoryTier::take_block(Shard& shard) {
  // If there are more blocks than the budget, this shard gives one; set_budget() takes the rest from all shards in turn.
  if (is_over()) give_one(shard);
  if (block_count_of(shard) + 1 < kMinBlocks && !is_over()) have_one_given(shard);
  if (shard.spare == kNone) shard.spare = take_free();
  if (shard.spare == kNone) return kNone;
  if (const uint32_t block = take_free(); block != kNone) return block;
  return make_room(shard);
}

// If all blocks are taken, a shard that has more than it needs gives one up. Otherwise a shard that has lost its blocks would never get any again.
void MemoryTier::have_one_given(const Shard& shard) {
  if (used_blocks_.load(std::memory_order_relaxed) < budget_blocks_.load(std::memory_order_relaxed)) return;
  for (uint32_t i = 0; i < shard_count_; ++i) {
    Shard& other = shards_[i];
    // Locked shards are skipped: two threads may be here at once, each with the lock of its own shard.
    if (&other == &shard || !other.lock.try_lock()) continue;
    const bool gives = block_count_of(other) > kMinBlocks && give_one(other);
    other.lock.unlock();
    if (gives) return;
  }
}

// Evicts the oldest blocks until one is free besides the spare one. kNone: there are none.
uint32_t MemoryTier::make_room(Shard& shard) {
  if (block_count_of(shard) == 0) return kNone;
  CHECK(shard.spare != kNone);
  for (int tries = 0;; ++tries) {
    const bool is_from_small =
        shard.main.count == 0 || shard.small.count * kSmallPart > block_count_of(shard);
    Queue& from = is_from_small ? shard.small : shard.main;
    const uint32_t block = from.first;
    if (evict(shard, from, tries < kMaxInVain)) return block;
  }
}

// Takes the oldest block out of its queue, and copies the records that stay; none stay unless `keeps`. False: that took the spare block, and the evicted
// one is the spare block now.
bool MemoryTier::evict(Shard& shard, Queue& from, bool keeps) {
  const bool is_small = &from == &shard.small;
  const uint32_t block = from.first;
  from.first = blocks_[block].next;
  if (from.first == kNone) from.last = kNone;
  --from.count;
  const uint32_t spare = shard.spare;
  for_each_in(block, [&](Box& box) {
    if (!box.is_linked) return;
    const uint64_t address = box.address, hash = hash_of(address);
    const auto uses = static_cast<uint8_t>(box.uses);
    unlink(shard, hash, box);
    if (is_small && uses < kUsesToStay) {
      ghost_of(shard, hash) = ghost_mark(hash);
      return;
    }
    if (!keeps || uses == 0) return;
    if (is_small) ++shard.counts.promoted_records;
    Queue& main = shard.main;
    // All that stays of one block fits into the newest block and one more.
    if (!has_room(main, Box::size(box.bytes))) {
      CHECK(shard.spare != kNone);
      add_block(main, std::exchange(shard.spare, kNone));
    }
    CHECK(append(shard, main, hash, address, static_cast<uint8_t>(is_small ? 0 : uses - 1), box.record()));
  });
  if (shard.spare == spare) return true;
  shard.spare = block;
  return false;
}

// The shard gives a block back. False: it has none.
bool MemoryTier::give_one(Shard& shard) {
  uint32_t block = make_room(shard);
  if (block == kNone) std::swap(block, shard.spare);
  if (block == kNone) return false;
  give_free(block);
  return true;
}

void MemoryTier::set_budget(uint64_t bytes) {
  const uint64_t blocks = std::min<uint64_t>(bytes / kBlockBytes, block_count_);
  const bool is_enough = blocks >= uint64_t{kMinBlocks} * shard_count_;
  budget_blocks_.store(is_enough ? static_cast<uint32_t>(blocks) : 0, std::memory_order_relaxed);
  // Each shard gives a block in turn.
  for (bool gives = true; gives && is_over();) {
    gives = false;
    for (uint32_t i = 0; i < shard_count_ && is_over(); ++i) {
      sys::LockGuard scope(shards_[i].lock);
      gives = give_one(shards_[i]) || gives;
    }
  }
}

// --- calls ---

// Calls use(shard, hash, box) under the shard's lock, if the address has a box.
template <class Use>
void MemoryTier::with_box(uint64_t address, const Use& use) {
  if (shard_count_ == 0) return;
  const uint64_t hash = hash_of(address);
  Shard& shard = shard_of(hash);
  sys::LockGuard scope(shard.lock);
  if (Box* const box = find(shard, hash, address); box != nullptr) use(shard, hash, *box);
}

size_t MemoryTier::read(uint64_t address, std::span<std::byte> to) {
  size_t bytes = 0;
  with_box(address, [&](Shard&, uint64_t, Box& box) {
    if (box.uses < kMaxUses) ++box.uses;
    bytes = std::min<size_t>(box.bytes, to.size());
    memcpy(to.data(), box.record().data(), bytes);
  });
  return bytes;
}

void MemoryTier::keep(uint64_t address, std::span<const std::byte> record) {
  if (record.size() > kMaxRecordBytes || budget_blocks_.load(std::memory_order_relaxed) == 0) return;
  const uint64_t hash = hash_of(address);
  Shard& shard = shard_of(hash);
  sys::LockGuard scope(shard.lock);
  if (Box* const old = find(shard, hash, address); old != nullptr) {
    // Somebody else has read and kept it, too.
    if (std::ranges::equal(old->record(), record)) return;
    unlink(shard, hash, *old);
  }
  uint32_t& ghost = ghost_of(shard, hash);
  const bool came_back = ghost == ghost_mark(hash);
  if (came_back) ghost = 0;
  if (!append(shard, came_back ? shard.main : shard.small, hash, address, 0, record)) return;
  ++shard.counts.kept_records;
  if (came_back) ++shard.counts.promoted_records;
}

void MemoryTier::replace(uint64_t address, uint64_t by) {
  const uint8_t uses = take_out(address);
  if (uses == 0) return;
  with_box(by, [&](Shard&, uint64_t, Box& box) { box.uses = std::max<uint64_t>(box.uses, uses); });
}

// Forgets the record at the address. Returns the uses that a successor inherits.
uint8_t MemoryTier::take_out(uint64_t address) {
  uint8_t uses = 0;
  with_box(address, [&](Shard& shard, uint64_t hash, Box& box) {
    unlink(shard, hash, box);
    uses = static_cast<uint8_t>(box.uses);
    if (box.is_in_main) uses = std::max(uses, kUsesToStay);
  });
  return uses;
}

TierCounts MemoryTier::counts() {
  TierCounts all;
  for (uint32_t i = 0; i < shard_count_; ++i) {
    Shard& shard = shards_[i];
    sys::LockGuard scope(shard.lock);
    all.record_count += shard.counts.record_count;
    all.record_bytes += shard.counts.record_bytes;
    all.kept_records += shard.counts.kept_records;
    all.promoted_records += shard.counts.promoted_records;
  }
  all.budget_bytes = budget_blocks_.load(std::memory_order_relaxed) * uint64_t{kBlockBytes};
  all.used_bytes = used_bytes();
  return all;
}

void MemoryTier::verify() {
  uint32_t blocks = 0;
  for (uint32_t i = 0; i < shard_count_; ++i) {
    Shard& shard = shards_[i];
    sys::LockGuard scope(shard.lock);
    uint64_t count = 0, bytes = 0;
    for (const Queue* queue : {&shard.small, &shard.main}) {
      uint32_t in_queue = 0;
      for (uint32_t block = queue->first; block != kNone; block = blocks_[block].next) {
        ++in_queue;
        CHECK_LE(blocks_[block].used_bytes, kBlockBytes);
        CHECK(blocks_[block].next != kNone || block == queue->last);
        for_each_in(block, [&](Box& box) {
          if (!box.is_linked) return;
          ++count;
          bytes += box.bytes;
          CHECK_EQ(box.is_in_main != 0, queue == &shard.main);
          CHECK(&shard_of(hash_of(box.address)) == &shard);
          CHECK(find(shard, hash_of(box.address), box.address) == &box);
        });
      }
      CHECK_EQ(in_queue, queue->count);
      blocks += in_queue;
    }
    CHECK(shard.spare != kNone || block_count_of(shard) == 0);
    blocks += shard.spare != kNone ? 1 : 0;
    CHECK_EQ(count, shard.counts.record_count);
    CHECK_EQ(bytes, shard.counts.record_bytes);
  }
  CHECK_EQ(blocks, used_blocks_.load(std::memory_order_relaxed));
  CHECK_EQ(free_.size() + blocks, size_t{block_count_});
}

}  // namespace kv
