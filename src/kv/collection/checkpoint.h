// Checkpoints: the index on the medium, so that a start need not list all records. (uDepot, section 4.4)
//
// The collector's thread takes one between two victims, while everything else goes on:
//  1 The log says, as of one moment, which segments are not sealed, which of these have no records yet, and the last sequence
//    (Log::begin_checkpoint). What the collector moves from then on goes to a segment without records, or to a newer one
//  2 Changes that have begun are waited for. From then on the index knows all changes with this sequence or a lower one, and nothing that they
//    have ended
//  3 Images of the index's tables are written to segments of their own, one after the other (checkpoint_format.h)
//  4 Changes are waited for again, and the large values without a head are counted, including those that have lost their head since 2: images may
//    have their pieces but not their heads. Then come a flush, which makes all records durable that the images refer to; the end, which holds the
//    facts of 1 and the count; and another flush. From then on the checkpoint counts
//  5 The segments of the previous checkpoint are given back
//
// A start uses the newest checkpoint that is whole, and replays what is newer (recovery.h). Why that is enough:
//  - A record with a higher sequence is in a segment that was not sealed at step 1, or in a newer one; so is whatever has ended it, which has a
//    higher sequence still. Both are replayed
//  - A record with a lower sequence is in a segment that had no records at step 1, or in a newer one, only if the collector has moved it since, so
//    that it was live after step 2, or if its change was under way at step 1. These segments are replayed as a whole, and in either case what ends
//    the record has a higher sequence
//  - Pieces end with their heads
// No checkpoint is needed: without one the whole log is replayed.
#pragma once
#include "kv/collection/large_values.h"
#include "kv/collection/readers.h"
#include "kv/index/index.h"
#include "kv/log/log.h"
#include "kv/media/checkpoint_format.h"

namespace kv {

class Checkpointer {
 public:
  Checkpointer() = default;
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  // All outlive it. `segments`: those of the last checkpoint; `number`: the highest number that any has had.
  void open(const Identity& identity, Index& index, Log& log, Readers& changes, LargeValues& large_values,
            uint64_t number, std::vector<uint32_t> segments);

  enum class Taken {
    kDone,    // it counts; the segments of the previous one are EMPTIED
    kNotNow,  // too many segments were not sealed; nothing was done
    kNoRoom,  // too few segments are free; those that it had taken are EMPTIED
    kFailed,  // error() says why; those that it had taken are EMPTIED
  };
  Taken take(Channel& channel);
  int error() const { return error_; }  // an errno value, after kFailed
  uint64_t number() const { return number_; }
  uint64_t bytes() const { return bytes_; }  // of pieces that the last call has written

 private:
  void count_headless(CheckpointState& state);
  Taken write_tables(Channel& channel, CheckpointState& state);
  Taken write_piece_bytes(Channel& channel, size_t bytes);
  bool next_segment(Channel& channel);
  void empty(std::vector<uint32_t>& segments);

  const Identity* identity_ = nullptr;
  Index* index_ = nullptr;
  Log* log_ = nullptr;
  Readers* changes_ = nullptr;
  LargeValues* large_values_ = nullptr;
  uint64_t number_ = 0;
  uint64_t bytes_ = 0;
  int error_ = 0;
  std::vector<uint32_t> segments_;  // of the last checkpoint that counts
  // Of the one that is being taken.
  std::vector<uint32_t> written_;
  uint64_t at_ = 0;              // where the next piece goes: bytes into the last of written_
  uint32_t piece_ = 0;           // the next piece's number
  std::span<std::byte> memory_;  // for a piece
  TableImage* image_ = nullptr;
};

}  // namespace kv
