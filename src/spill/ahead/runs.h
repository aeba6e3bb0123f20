// Runs: when an inner loop is entered again, does it go on where it was left, as over the rows of a sparse matrix, or does each run begin elsewhere,
// as over the rows of vertices taken from a queue? What lies beyond the end of a run is worth loading only in the first case.
//
//   the loop asks where it was due                                the same run
//   it asks between where it asked last and a little beyond that  the next run, which goes on where the last one ended
//   it asks elsewhere                                             the next run, which begins elsewhere: a jump
//
// Thread contract: its thread. No I/O: pure bookkeeping, by positions, which advance by `step` in each iteration.
#pragma once
#include <algorithm>
#include <cstdint>

namespace spill {

// How many iterations lead from one position to another; fewer than none if they lead back. The processor traps if the most negative number is
// divided by -1.
constexpr int64_t iterations_between(uint64_t from, uint64_t to, int64_t step) {
  return step == -1 ? static_cast<int64_t>(from - to) : static_cast<int64_t>(to - from) / step;
}

class Runs {
 public:
  // How many iterations may be left out between two runs.
  static constexpr int64_t kMaxGap = 64;
  // A jump adds two to the count, and each run that goes on subtracts one. While the count is above half of this, the next run is expected to
  // be another jump.
  static constexpr uint32_t kMaxJumps = 8;

  // The loop asks at `position`. Cost: two divisions where a run begins.
  void at(uint64_t position, int64_t step) {
    if (position != due_) {
      const int64_t from_last = iterations_between(last_, position, step);
      const int64_t to_due = iterations_between(position, due_, step);
      const bool goes_on = from_last >= 0 && to_due >= -kMaxGap;
      if (!goes_on) begin_ = position;
      jumps_ = goes_on ? jumps_ - std::min(jumps_, 1u) : std::min(jumps_ + 2, kMaxJumps);
    }
    last_ = position;
  }
  // It asks again after this many iterations, unless the run ends before.
  void due_after(int64_t iterations, int64_t step) {
    due_ = last_ + static_cast<uint64_t>(iterations * step);
  }

  bool go_on() const { return jumps_ <= kMaxJumps / 2; }
  // Iterations from where the last jump led to, up to where the loop asked last.
  int64_t length(int64_t step) const { return iterations_between(begin_, last_, step); }

 private:
  uint64_t begin_ = 0;  // where the last jump led to
  uint64_t last_ = 0;   // where the loop asked last
  uint64_t due_ = 0;    // where it asks next if the run goes on
  uint32_t jumps_ = 0;
};

}  // namespace spill
