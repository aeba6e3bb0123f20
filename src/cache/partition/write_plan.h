// WritePlan: the order in which the changed pages of a batch are written, and which of them move to other places on storage.
//
// A page that has a place is written there. If that would take an Io for each of many pages, they get new adjacent places instead, in the order of
// their addresses, and one Io writes them all. Pages that lie together on storage stay together, so that sequential readers profit from reading
// ahead. A page whose place must not be overwritten, since a child or parent of this process may read it, moves in any case, as a whole.
//
// The plan takes new places for pages that move; until these are written they keep their old places, too (partition_move.cc).
//
// Thread contract: the partition's lock is held as long as the plan exists.
#pragma once
#include "cache/pages/places.h"
#include "cache/partition/batch.h"

namespace cache {

class WritePlan {
 public:
  // Plans the victims that have something to write (changed_count); sets where they move (new_place), and which of them must (must_move). `chaos`:
  // whatever can move does.
  WritePlan(Batch& batch, FramePool& frames, Places& places, bool chaos);

  // How many victims are to be written.
  uint32_t count() const { return count_; }
  // The i-th of them, by its number in the batch. Neighbours on storage follow each other: first come those that stay where they are, by page; then
  // those that move, by new place.
  uint32_t operator[](uint32_t i) const { return order_[i]; }

 private:
  void order_by_page();
  void write_whole_if_frozen(uint32_t v);
  uint32_t take_scattered(uint8_t* scattered);
  uint32_t take_new_places(const uint8_t* moving, uint32_t moving_count, bool chaos);

  Batch& batch_;
  FramePool& frames_;
  Places& places_;
  const uint64_t pieces_;  // OS pages a page
  uint8_t order_[Batch::kMaxVictims];
  uint32_t count_ = 0;
};

}  // namespace cache
