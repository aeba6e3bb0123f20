// Blocks: pieces of a FramePool that are as large as a large OS page, and the region of addresses that each of them was given to.
//
// A page of a region lies in the region's block at its own position, unless another page has taken that. So memory that a program fills in order
// lies in order, over 2 MiB, and one entry of the CPU's translation caches reaches all of it if the block is one large OS page. The region
// that a block was given to is a hint: any page may get a free frame of it.
//
// Thread contract: guarded by the partition's lock. Memory: 24 bytes a block.
#pragma once
#include <cstdint>

#include "base/ids.h"
#include "base/mix.h"

namespace cache {

class Blocks {
 public:
  static constexpr uint32_t kNone = ~uint32_t{0};
  static constexpr uint32_t kMaxLooks = 16;  // blocks that give() looks at

  static uint64_t bytes_for(uint32_t block_count) {
    return block_count * (sizeof(Block) + 2 * sizeof(uint32_t));
  }
  // Begins with no blocks. `memory`: bytes_for(most_blocks) bytes of zeros, aligned as uint64_t.
  void open(char* memory, uint32_t most_blocks, uint32_t frames_per_block) {
    blocks_ = reinterpret_cast<Block*>(memory);
    hints_ = reinterpret_cast<uint32_t*>(memory + most_blocks * sizeof(Block));
    count_ = 0;
    frames_ = frames_per_block;
  }
  // Sets the number of blocks. Frames of the new ones may be in use already: `look` tells their state. REQUIRES: not fewer than before, at most
  // most_blocks.
  struct Looks {
    bool is_free, is_fresh;
  };
  template <class Look>  // look(frame) -> Looks
  void grow(uint32_t block_count, Look look) {
    for (; count_ < block_count; ++count_) {
      Block& block = blocks_[count_];
      block = {.region = ~uint64_t{0}, .free_count = 0, .fresh_count = 0};
      for (uint32_t frame = count_ * frames_; frame < (count_ + 1) * frames_; ++frame) {
        const Looks looks = look(frame);
        block.free_count = static_cast<uint16_t>(block.free_count + looks.is_free);
        block.fresh_count = static_cast<uint16_t>(block.fresh_count + looks.is_fresh);
      }
    }
  }

  uint32_t count() const { return count_; }
  uint32_t frames_per_block() const { return frames_; }
  // kNone for the frames behind the last whole block.
  uint32_t of(uint32_t frame) const { return frame / frames_ < count_ ? frame / frames_ : kNone; }
  bool is_free(uint32_t block) const { return blocks_[block].free_count == frames_; }
  bool is_fresh(uint32_t block) const { return blocks_[block].fresh_count == frames_; }
  bool has_fresh(uint32_t block) const { return blocks_[block].fresh_count != 0; }

  void add_free(uint32_t frame, int by) {
    if (const uint32_t block = of(frame); block != kNone)
      blocks_[block].free_count = static_cast<uint16_t>(blocks_[block].free_count + by);
  }
  void add_fresh(uint32_t frame, int by) {
    if (const uint32_t block = of(frame); block != kNone)
      blocks_[block].fresh_count = static_cast<uint16_t>(blocks_[block].fresh_count + by);
  }

  // The region's block; kNone if it has none, or if another region has overwritten its hint.
  uint32_t find(uint64_t region) const {
    if (count_ == 0) return kNone;
    const uint32_t block = hints_[hint_of(region)];
    return blocks_[block].region == region ? block : kNone;
  }
  // Gives the region a wholly free block: the first such among the kMaxLooks after the block that was given last; kNone if there is none.
  uint32_t give(uint64_t region, bool allow_fresh) {
    for (uint32_t looked = 0; looked < count_ && looked < kMaxLooks; ++looked) {
      const uint32_t block = cursor_;
      cursor_ = cursor_ + 1 == count_ ? 0 : cursor_ + 1;
      if (!is_free(block) || (!allow_fresh && has_fresh(block))) continue;
      blocks_[block].region = region;
      hints_[hint_of(region)] = block;
      return block;
    }
    return kNone;
  }

 private:
  struct Block {
    uint64_t region;
    uint16_t free_count;
    uint16_t fresh_count;
  };

  // The number is hashed, since the regions of one partition may be evenly spaced.
  uint64_t hint_of(uint64_t region) const {
    return (base::spread(region) >> 32) * (2 * uint64_t{count_}) >> 32;
  }

  Block* blocks_ = nullptr;
  uint32_t* hints_ = nullptr;  // two for each block
  uint32_t count_ = 0;
  uint32_t frames_ = 1;
  uint32_t cursor_ = 0;
};

}  // namespace cache
