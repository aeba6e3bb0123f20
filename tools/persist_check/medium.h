// Medium: what may be on the medium if power fails after an event of a history, as x86 has it.
//
// 1 a line's content there is one of those that it had, in their order: all of its stores up to one, and none behind it
// 2 of the one store behind these any of its aligned units of 8 bytes may be there, too
// 3 lines are independent of each other
// 4 a flush covers the stores to its line that precede it; it is done for sure when the thread that flushed has fenced, an
//   ordered one (clflush) at once. A store past the caches is as one that is flushed at once
// 5 what was found, not told of, is taken to arrive as a whole: what its stores were, in which order, is not known
//
// A medium moves forward, an event at a time.
#pragma once
#include <cstddef>
#include <set>
#include <unordered_map>
#include <vector>

#include "history.h"

namespace persist_check {

// A content that a line may have on the medium.
struct LineState {
  Units content;
  size_t stored_count = 0;  // how many of the line's pending pieces are there
  uint8_t torn = 0;         // units that are there of the next one
};

class Medium {
 public:
  struct Pending {
    size_t event = 0;
    const Piece* piece = nullptr;
  };
  // A line that not all is sure of. Positions count all stores that changed the line.
  struct Line {
    std::vector<Pending> pending;  // those at positions `sure` and up, oldest first
    uint64_t sure = 0;
    uint64_t flushed = 0;  // those before it were flushed by somebody
    size_t flush_event = 0;
    uint64_t end() const { return sure + pending.size(); }
  };
  struct Unfenced {
    LineId line;
    uint64_t end = 0;  // the position up to which it covers
    size_t event = 0;  // the flush, or the store past the caches
  };

  explicit Medium(const History& history);

  // Takes the next event. Returns whether more is sure than before.
  bool advance();
  size_t event_count() const { return next_; }  // so many were taken

  // What is sure, of each file.
  const std::vector<std::vector<Units>>& sure() const { return sure_; }
  // Of sure(), by what differs from what was there initially: the same for the same content.
  uint64_t sure_hash() const { return sure_hash_; }
  // Puts a content into sure(), for an image; the caller puts the old one back before it goes on.
  void show(LineId id, const Units& content) { sure_[file_of(id)][line_of(id)] = content; }

  // Lines with something pending; ordered, so that a seed gives the same images anywhere.
  const std::set<LineId>& open_lines() const { return open_; }
  // REQUIRES: something was stored to it.
  const Line& line(LineId id) const { return lines_.at(id); }
  // What the threads have flushed and not yet fenced, and is still not sure.
  std::vector<Unfenced> unfenced() const;

  // The contents that an open line may have: first what is sure, last what was stored, each of the others once. No more than
  // `count_max`, which is at least 4; `is_all` becomes false if there are more.
  std::vector<LineState> states(LineId id, size_t count_max, bool& is_all) const;

 private:
  void make_sure(LineId id, uint64_t end);
  void flush(LineId id, const Event& event);

  const History& history_;
  size_t next_ = 0;
  std::vector<std::vector<Units>> sure_;
  std::unordered_map<LineId, Line> lines_;
  std::set<LineId> open_;
  std::unordered_map<uint32_t, std::vector<Unfenced>> unfenced_;  // by thread
  bool has_more_sure_ = false;
  uint64_t sure_hash_ = 0;
};

// What a line with this content adds (by exclusive or) to the hash of an image.
uint64_t hash_of(LineId id, const Units& content);

}  // namespace persist_check
