// Policy: decides which way a thread's flushes take, from what each way costs the thread.
//
// A trial goes through rounds, and in each round every candidate has a window of some fences. Its cost there is the time from the window's beginning
// to its end, including the program's own work, divided by the number of lines that were flushed. So what a way costs outside of the flush counts as
// well: stores that wait for a line's write-back, and lines that were thrown out of the caches. The length of windows varies, so that what the
// program does periodically does not hit one candidate more than others. Candidates are compared, round by round, with inline, which is what the
// program does without the runtime: another one wins only if the median of its ratios to inline is below 1 by more than their noise. The winner then
// holds for many times what the trial took, longer each time that it wins again.
//
//   rounds   | inline epoch decoupled | inline epoch decoupled | ...     a way that is far worse than inline drops out of the trial
//
// Pure: the caller brings the time. Thread contract: one thread.
// (Ribbon only controls how many threads flush; it never gives up a way that loses.)
#pragma once
#include <cstddef>
#include <cstdint>

namespace persist {

enum class Way : uint8_t {
  kInline,     // each flush is executed at once
  kEpoch,      // no line is flushed more often than it must be (line_set.h)
  kDecoupled,  // other threads flush (fifo.h, flushers.h)
  kProactive,  // as epoch; other threads also flush lines that were stored to lately (flushers.h)
  kAuto        // whichever of these pays
};
inline constexpr Way kWays[] = {Way::kInline, Way::kEpoch, Way::kDecoupled, Way::kProactive, Way::kAuto};
const char* name_of(Way way);

class Policy {
 public:
  static constexpr size_t kMaxCandidates = 4;
  static constexpr uint32_t kRounds = 9;
  static constexpr uint64_t kWindowFences = 32, kMaxWindowFences = 63, kWindowLines = 128;
  static constexpr uint64_t kHeldFences = 256;  // between looks at whether the winner still holds
  static constexpr uint32_t kHoldTrials = 64, kMaxHoldTrials = 1024;

  // kAuto begins with a trial of inline, epoch, and the other candidates; any other way is taken for good.
  explicit Policy(Way asked) { ask(asked); }
  void ask(Way asked);
  // Gives kAuto one more way to try, in a trial that begins now. REQUIRES: kDecoupled or kProactive.
  void add_candidate(Way way);

  bool is_auto() const { return asked_ == Way::kAuto; }
  // Does the policy have to know of each line now? Between trials, fences are enough.
  bool is_measuring() const { return is_auto() && (is_trying_ || is_first_window_); }
  // Since the last window the thread has flushed in a way that is no candidate: a trial that was under way begins anew.
  void interrupt() {
    fences_ = 0;
    if (is_trying_) is_first_window_ = true;
  }

  // The thread's way now.
  Way chosen() const { return chosen_; }
  bool is_trying() const { return is_trying_; }
  // How many trials have ended, and how many of them had another winner than the one before.
  uint32_t trials() const { return trials_; }
  uint32_t changes() const { return changes_; }

  // Counts fences. Returns whether end_window() is to be called now. Cost: some 1 ns.
  bool count_fences(uint64_t count) { return asked_ == Way::kAuto && (fences_ += count) >= window_fences_; }
  // Ends a window. `now`: the time, in any unit. `lines`: how many lines have been flushed in all; ignored between trials. Returns whether
  // chosen() has changed. Cost: some 10 ns.
  bool end_window(uint64_t now, uint64_t lines);

 private:
  struct Candidate {
    Way way;
    uint32_t windows;
    double costs[kRounds];  // time for a line
  };

  void begin_trial(uint64_t now);
  bool end_trial(uint64_t now);
  bool choose(Way way);

  Way asked_ = Way::kAuto;
  Way chosen_ = Way::kInline;
  Way winner_ = Way::kInline;  // of the last trial
  bool is_trying_ = false;
  bool is_first_window_ = true;  // its beginning was not noted, so it is no part of a trial
  bool is_warm_ = false;         // the window follows another one of the same way
  uint64_t fences_ = 0;          // of the window
  uint64_t window_fences_ = kWindowFences, window_count_ = 0;
  uint64_t window_begin_ = 0, window_lines_ = 0;
  uint64_t trial_begin_ = 0, held_until_ = 0;
  uint32_t hold_trials_ = kHoldTrials;
  uint32_t trials_ = 0, changes_ = 0;
  size_t candidate_count_ = 2, current_ = 0;
  uint32_t round_ = 0;
  Candidate candidates_[kMaxCandidates] = {{.way = Way::kInline, .windows = 0, .costs = {}},
                                           {.way = Way::kEpoch, .windows = 0, .costs = {}}};
};

}  // namespace persist
