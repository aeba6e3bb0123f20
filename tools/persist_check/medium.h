// Medium: what may be on the medium if power fails after an event of a history, by the rules of x86.
//
// 1 a line has one of the contents there that it has had: all stores to it up to some store, in their order, and none after that
// 2 any of the aligned units of 8 bytes of the next store may be there, too
// 3 lines are independent of each other
// 4 a flush covers the stores to its line that precede it. They are sure to be there once the thread that flushed has fenced; with an ordered flush
//   (clflush), at once. A store past the caches counts as flushed at once
// 5 a store that was found, not reported, arrives as a whole: which stores it consists of, and in what order, is not known
//
// A medium moves forward through the history, an event at a time.
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
  uint8_t torn = 0;         // which units of the next piece are there
};

class Medium {
 public:
  struct Pending {
    size_t event = 0;
    const Piece* piece = nullptr;
  };
  // A line that has been stored to. Positions number the stores that changed it.
  struct Line {
    std::vector<Pending> pending;  // those at positions `sure` and up, oldest first
    uint64_t sure = 0;             // stores before this position are on the medium
    uint64_t flushed = 0;          // stores before this position were flushed by some thread
    size_t flush_event = 0;
    uint64_t end() const { return sure + pending.size(); }
  };
  struct Unfenced {
    LineId line;
    uint64_t end = 0;  // covers the stores before this position
    size_t event = 0;  // the flush, or the store past the caches
  };

  // The history must stay as it is while the medium exists.
  explicit Medium(const History& history);

  // Takes the next event. Returns whether more is sure than before. REQUIRES: event_count() is less than the number of events.
  bool advance();
  size_t event_count() const { return next_; }  // how many were taken

  // What is sure to be on the medium, of each file.
  const std::vector<std::vector<Units>>& sure() const { return sure_; }
  // A hash of how sure() differs from the initial content: the same for the same content.
  uint64_t sure_hash() const { return sure_hash_; }
  // Puts a line's content into sure(), to make an image. The caller puts the old content back before it calls advance().
  void show(LineId id, const Units& content) { sure_[file_of(id)][line_of(id)] = content; }

  // Lines with pending stores; ordered, so that a seed gives the same images on any machine.
  const std::set<LineId>& open_lines() const { return open_; }
  // REQUIRES: something was stored to it.
  const Line& line(LineId id) const { return lines_.at(id); }
  // What threads have flushed and not fenced yet, unless it is sure for another reason.
  std::vector<Unfenced> unfenced() const;

  // The contents that an open line may have on the medium: first what is sure, last all that was stored, and between them each other one once, at
  // most `count_max` in all. If there are others, `is_all` becomes false. REQUIRES: count_max >= 4.
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

// What a line with this content contributes (by exclusive or) to the hash of an image.
uint64_t hash_of(LineId id, const Units& content);

}  // namespace persist_check
