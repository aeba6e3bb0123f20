// Checkpoints: the index on the medium, so that a start need not list all records. (uDepot, section 4.4)
//
// One is taken while everything goes on, by the collector's thread, between two victims:
//  1 the log says which segments are not sealed, which of these have no records yet, and the last sequence, at one time
//    (Log::begin_checkpoint); what the collector moves from then on goes to one of those, or to a newer segment
//  2 changes that have begun are waited for: the index knows now of all with this sequence or a lower one, and what they have ended
//  3 images of the index's tables go to segments of their own, one behind the other (checkpoint_format.h)
//  4 changes are waited for again, and large values that have no head are counted: also those that lost it since 2, whose
//    pieces may be in images that their heads are not in. A flush, which makes all records last that the images know; the end, which
//    says what 1 was, and the count; a flush. From then on it counts
//  5 the segments of the one before are given back
// A start uses the newest that is whole, and replays what is newer (recovery.h). Why that is enough: whatever ended a record with a higher
// sequence has a higher one still, and so is in a segment that was not sealed, or is newer. A record with a lower sequence is in a newer
// segment, or one that had no records, only if it was alive after step 2: the collector has moved it there since; or its change was under way
// at step 1. What ends it has a higher sequence in either case. Pieces end with their heads. None is needed: without a checkpoint
// all of the log is replayed.
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

  // All outlive it. `segments` are those of the last one, whose number is `number` or lower.
  void open(const Identity& identity, Index& index, Log& log, Readers& changes, LargeValues& large_values,
            uint64_t number, std::vector<uint32_t> segments);

  enum class Taken {
    kDone,    // segments were emptied
    kNotNow,  // too many segments were being written
    kNoRoom,  // too few free segments; segments were emptied: what had been written
    kFailed,  // so, too
  };
  Taken take(Channel& channel);
  int error() const { return error_; }  // of kFailed: an errno value
  uint64_t number() const { return number_; }
  uint64_t bytes() const { return bytes_; }  // of the last one

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
  std::vector<uint32_t> segments_;  // of the last one that counts
  // While one is taken.
  std::vector<uint32_t> written_;
  uint64_t at_ = 0;  // bytes into the segment
  uint32_t piece_ = 0;
  std::span<std::byte> memory_;  // of a piece
  TableImage* image_ = nullptr;
};

}  // namespace kv
