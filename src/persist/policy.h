// Policy: which way a thread's flushes take, from what each costs it.
//
// A trial goes through rounds; in each, every candidate has a window of some fences, not always as many, so that none meets with what the program does now and then more often than others, and its cost is the time from the window's begin to its end, the program's own
// work included, for each line that was flushed in it. So what a way costs outside of the flush counts as well: stores that wait for a line's write-back,
// caches that lines were thrown out of. Candidates are compared round by round with inline, which is what the program does without the runtime: another wins only if the median
// of its ratios is below 1 by more than their noise. Then the winner holds for many times what the trial took, longer each time that it wins again.
//
//   rounds   | inline epoch decoupled | inline epoch decoupled | ...     one that is far worse than inline drops out of the trial
//
// Pure: the caller brings the time. Thread contract: one thread's.
// (Ribbon, PACT'20, steers only how many threads flush; a way that loses is never taken back there.)
#pragma once
#include <cstddef>
#include <cstdint>

namespace persist {

enum class Way : uint8_t {
  kInline,     // each flush is executed where it stands
  kEpoch,      // line_set.h: no line more often than it must be
  kDecoupled,  // other threads flush (fifo.h, flushers.h)
  kProactive,  // as epoch, and lines that were stored to lately are flushed ahead (flushers.h)
  kAuto        // whichever of these pays
};
inline constexpr Way kWays[] = {Way::kInline, Way::kEpoch, Way::kDecoupled, Way::kProactive, Way::kAuto};
const char* name_of(Way way);

class Policy {
 public:
  static constexpr size_t kCandidatesMax = 4;
  static constexpr uint32_t kRounds = 9;
  static constexpr uint64_t kWindowFences = 32, kWindowFencesMost = 63, kWindowLines = 128;
  static constexpr uint64_t kHeldFences = 256;  // between looks at whether a way is still held
  static constexpr uint32_t kHoldTrials = 64, kHoldTrialsMax = 1024;

  // With kAuto it begins with a trial of inline, epoch, and what else is a candidate; with another way it is that one for good.
  explicit Policy(Way asked) { ask(asked); }
  void ask(Way asked);
  // More ways for kAuto to try, from the next trial on. REQUIRES: kDecoupled or kProactive.
  void add_candidate(Way way);

  bool is_auto() const { return asked_ == Way::kAuto; }
  // Does it have to know of each line now? Between trials fences are enough.
  bool is_measuring() const { return is_auto() && (is_trying_ || is_first_window_); }
  // What came since the last window was of no way that is a candidate: a trial begins anew.
  void interrupt() {
    fences_ = 0;
    if (is_trying_) is_first_window_ = true;
  }

  // What the thread does now.
  Way chosen() const { return chosen_; }
  bool is_trying() const { return is_trying_; }
  // Trials that ended, and how many of them another way than before came out of.
  uint32_t trials() const { return trials_; }
  uint32_t changes() const { return changes_; }

  // For each fence, or several. Returns whether end_window() is to be called after it. Cost: some 1 ns.
  bool count_fences(uint64_t count) { return asked_ == Way::kAuto && (fences_ += count) >= window_fences_; }
  // Now, in any unit of time, so many lines have been flushed in all (but between trials). Returns whether chosen() is another one now. Cost: some 10 ns.
  bool end_window(uint64_t now, uint64_t lines);

 private:
  struct Candidate {
    Way way;
    uint32_t windows;
    double costs[kRounds];  // time of a line
  };

  void begin_trial(uint64_t now);
  bool end_trial(uint64_t now);
  bool choose(Way way);

  Way asked_ = Way::kAuto;
  Way chosen_ = Way::kInline;
  Way winner_ = Way::kInline;  // of the last trial
  bool is_trying_ = false;
  bool is_first_window_ = true;  // whose begin nobody noted
  bool is_warm_ = false;         // the window follows another of the same way
  uint64_t fences_ = 0;          // of the window
  uint64_t window_fences_ = kWindowFences, window_count_ = 0;
  uint64_t window_begin_ = 0, window_lines_ = 0;
  uint64_t trial_begin_ = 0, held_until_ = 0;
  uint32_t hold_trials_ = kHoldTrials;
  uint32_t trials_ = 0, changes_ = 0;
  size_t candidate_count_ = 2, current_ = 0;
  uint32_t round_ = 0;
  Candidate candidates_[kCandidatesMax] = {{.way = Way::kInline, .windows = 0, .costs = {}},
                                           {.way = Way::kEpoch, .windows = 0, .costs = {}}};
};

}  // namespace persist
