// WritePlan: in which order the changed pages of a batch are written, and which of them move to other places on storage.
//
// A page that has a place is written there. If that would take an Io for each of many pages, they get new places next to each other instead, in the order
// of their addresses, and one Io writes them all. Pages that lie together on storage stay together, so that reading ahead works for whoever reads them
// in sequence. A page whose place may not be written to, since a child of fork may read it, or a parent, moves in any case, as a whole.
//
// The plan takes new places for pages that move; until they are written these have their old ones, too (partition_move.cc).
//
// Thread contract: the partition's lock, for as long as there is a plan.
#pragma once
#include "cache/pages/places.h"
#include "cache/partition/batch.h"

namespace cache {

class WritePlan {
 public:
  // Of the victims that have something to write (changed_count); says in them where they move (new_place), and which may not stay (must_move).
  // `chaos`: whatever can move does.
  WritePlan(Batch& batch, FramePool& frames, Places& places, bool chaos);

  // How many victims are written.
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
