// Fifo: lines that one thread hands to others to flush. (Ribbon, PACT'20, 2.1: decoupled flushing, each application thread's circular buffer)
//
//   positions    claimed - taken <= claimed <= head;  head - claimed <= kLines
//   lines_[position % kLines]
//   state_       claimed (43 bits) | taken: of what was claimed, not done yet (14) | held: of that, by the thread itself (7)
//
//  1 the thread writes a line, and then head
//  2 who takes lines, a flusher or the thread at its fence, reads `claimed`, then head, copies lines between them, and takes them by advancing `claimed`; if another was faster
//    the copy is void
//  3 what is flushed and fenced is taken no more, by each for its own, in any order
//  4 the thread's fence waits until all is claimed and nothing taken: all is durable then, whatever the order
//  5 what the thread has taken itself is held from the instruction on that claims it, to the one that says that it is done: a handler that interrupts it anywhere knows which
//    lines it must not wait for, and finds them in held_
// (In the paper a queue has one flushing thread; here several may serve one, so that there can be more of them than application threads, and the thread itself.)
//
// Thread contract: claim() and finish() by flushers; waiting(), is_worthwhile() and visit() by any; the rest by the thread, whose handlers may call what is const, ask() and wait().
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/ids.h"
#include "sys/lock.h"
#include "sys/spin.h"

namespace persist {

class Fifo {
 public:
  static constexpr uint32_t kLines = 1024;
  static constexpr uint32_t kClaimLinesMax = 64;
  // So many that wait are worth the way to another core, although the thread's fence could execute them: who sleeps there is woken by a system call, which takes as long as some
  // fifty lines.
  static constexpr uint32_t kWorthLines = 128;
  // That all who claim may have taken at a time.
  static constexpr uint32_t kTakenMost = (1 << 14) - 1;

  // False: it is full. Cost: some 1 ns.
  bool push(uintptr_t line) {
    const uint64_t head = head_.load(std::memory_order_relaxed);
    // Pairs with the release in take(): a place is written again only after it was copied.
    if (between(state_.load(std::memory_order_acquire), head) == kLines) return false;
    lines_[head % kLines].store(line, std::memory_order_relaxed);
    head_.store(
        head + 1,
        std::memory_order_release);  // pairs with the acquire in take(); so does what was stored to the line
    return true;
  }

  // How many lines nobody has claimed.
  uint64_t waiting() const {
    const uint64_t state = state_.load(std::memory_order_acquire);
    return between(state, head_.load(std::memory_order_relaxed));
  }
  // Many wait, or the thread waits for them.
  bool is_worthwhile() const {
    return waiting() >= kWorthLines || asks_.load(std::memory_order_relaxed) != 0;
  }
  // Copies lines to `to`, at most that many, which are the caller's to flush. Returns how many; 0: none wait, or another was faster.
  uint32_t claim(uintptr_t* to, uint32_t count_max = kClaimLinesMax) { return take(to, count_max, 0); }
  // So many claimed lines are durable.
  void finish(uint32_t count) {
    state_.fetch_sub(kTaken * count);  // pairs with the acquire in is_done()
    if (waiter_.load(std::memory_order_seq_cst) != 0 && is_done()) {
      waiter_.store(0, std::memory_order_seq_cst);
      sys::futex_wake(waiter_, 1);
    }
  }

  // The same by the thread itself: takes lines that nobody has claimed, which it holds until it says that they are durable.
  uint32_t hold() { return take(held_, kClaimLinesMax, kHeld); }
  const uintptr_t* held() const { return held_; }
  uint32_t held_count() const {
    return static_cast<uint32_t>(state_.load(std::memory_order_relaxed) & kHeldMost);
  }
  void finish_held() { state_.fetch_sub((kTaken + kHeld) * held_count(), std::memory_order_release); }

  // All that was pushed is durable, but for what the thread holds.
  bool is_done() const {
    const uint64_t state = state_.load(std::memory_order_seq_cst);
    return between(state, head_.load(std::memory_order_relaxed)) == 0 &&
           (state & (kClaimed - 1)) == (kTaken + kHeld) * (state & kHeldMost);
  }
  // Flushers are to take what waits, however little it is: the thread is going to wait().
  void ask() { asks_.store(1, std::memory_order_relaxed); }
  // Returns when it is done. REQUIRES: flushers run, and have been asked for what waits.
  void wait() {
    for (int spins = 0; spins < kSpins && !is_done(); ++spins) sys::spin(spins);
    while (!is_done()) {
      waiter_.store(
          1, std::memory_order_seq_cst);  // pairs with the load in finish(): one of them sees the other
      if (is_done()) break;
      sys::futex_wait(waiter_, 1, kLookNs);
    }
    waiter_.store(0, std::memory_order_relaxed);
    asks_.store(0, std::memory_order_relaxed);
  }

  // visit(line) for each line that was pushed and is not durable yet, and for others that were pushed before, beside what the thread and flushers do.
  template <class Visit>
  void visit(const Visit& visit) const {
    for (const auto& line : lines_)
      if (const uintptr_t address = line.load(std::memory_order_relaxed); address != 0) visit(address);
  }

  // After fork, in the child: whatever was pushed is the parent's to flush. What the thread holds, interrupted by who forks, it goes on with.
  void forget() {
    const uint64_t held = held_count();
    state_.store(kClaimed * head_.load(std::memory_order_relaxed) + (kTaken + kHeld) * held,
                 std::memory_order_relaxed);
  }

 private:
  static constexpr int kSpins = 300;
  static constexpr uint64_t kLookNs = 1'000'000;
  // One line, in each part of the state.
  static constexpr uint64_t kHeld = 1, kTaken = 1 << 7, kClaimed = 1 << 21;
  static constexpr uint64_t kHeldMost = kTaken - 1;
  static_assert(kClaimLinesMax <= kHeldMost);

  // From what is claimed to the head. REQUIRES: the head was read after the state, or by the thread that pushes.
  static uint64_t between(uint64_t state, uint64_t head) {
    return (kClaimed * head - (state & ~(kClaimed - 1))) / kClaimed;
  }
  uint32_t take(uintptr_t* to, uint32_t count_max, uint64_t held) {
    uint64_t state = state_.load(std::memory_order_acquire);
    for (;;) {
      const uint64_t claimed = state / kClaimed;
      const uint64_t head = head_.load(std::memory_order_acquire);
      const auto count = static_cast<uint32_t>(std::min<uint64_t>(between(state, head), count_max));
      if (count == 0) return 0;
      for (uint32_t i = 0; i < count; ++i)
        to[i] = lines_[(claimed + i) % kLines].load(std::memory_order_relaxed);
      const uint64_t taken = state + (kClaimed + kTaken + held) * count;
      if (state_.compare_exchange_strong(state, taken, std::memory_order_acq_rel, std::memory_order_acquire))
        return count;
      // Flushers do not all stay with what is left of one FIFO.
      if (held == 0 && state / kClaimed != claimed) return 0;
    }
  }

  alignas(base::kLineBytes) std::atomic<uint64_t> head_{0};
  std::atomic<uint32_t> waiter_{0};  // 1: the thread sleeps, or is about to
  std::atomic<uint32_t> asks_{0};
  uintptr_t held_[kClaimLinesMax];
  alignas(base::kLineBytes) std::atomic<uint64_t> state_{0};
  alignas(base::kLineBytes) std::atomic<uintptr_t> lines_[kLines] = {};
};

}  // namespace persist
