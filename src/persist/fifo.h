// Fifo: the lines that one thread hands over to flushers. (Ribbon, section 2.1: decoupled flushing, each application thread's circular buffer)
//
//   positions    claimed - taken <= claimed <= head;  head - claimed <= kLines
//   lines_[position % kLines]
//   state_       claimed (43 bits) | taken: how many of the claimed lines are not durable yet (14 bits) | held: how many of those the thread itself
//                has taken (7 bits)
//
//  1 the thread writes a line, and then head
//  2 a flusher, or the thread at its fence, takes lines: it reads `claimed`, then head, copies lines between them, and claims these by advancing
//    `claimed`. If another was faster, its copy is void
//  3 whoever has taken lines subtracts them from `taken` when they are flushed and fenced, in any order
//  4 the thread's fence waits until all lines are claimed and none is taken: then all are durable
//  5 lines that the thread takes are held from the instruction that claims them to the one that says that they are done. So a handler that interrupts
//    the thread anywhere knows which lines it must not wait for, and finds them in held_
// (In the paper a queue has one flushing thread. Here several may serve one, so that there can be more of them than application threads, and the
// thread itself may.)
//
// Thread contract: claim() and finish() by flushers; waiting(), is_worthwhile() and visit() by any thread; the rest by the owner, whose handlers may
// call const functions, ask() and wait().
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
  static constexpr uint32_t kMaxClaimLines = 64;
  // When this many lines wait, handing them to another core pays even if the thread's fence could execute them: waking a flusher that sleeps takes a
  // system call, which takes as long as some fifty lines.
  static constexpr uint32_t kWorthLines = 128;
  // How many lines may be taken at a time, by all together.
  static constexpr uint32_t kMaxTaken = (1 << 14) - 1;

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
  // Do many lines wait, or does the thread wait for them?
  bool is_worthwhile() const {
    return waiting() >= kWorthLines || asks_.load(std::memory_order_relaxed) != 0;
  }
  // Takes at most count_max lines, which the caller has to flush, and copies them to `to`. Returns how many; 0: none wait, or another was faster.
  uint32_t claim(uintptr_t* to, uint32_t count_max = kMaxClaimLines) { return take(to, count_max, 0); }
  // Says that this many lines that the caller has claimed are durable.
  void finish(uint32_t count) {
    state_.fetch_sub(kTaken * count);  // pairs with the acquire in is_done()
    if (waiter_.load(std::memory_order_seq_cst) != 0 && is_done()) {
      waiter_.store(0, std::memory_order_seq_cst);
      sys::futex_wake(waiter_, 1);
    }
  }

  // For the thread itself: takes lines that nobody has claimed, and holds them until finish_held() says that they are durable. Returns how many.
  uint32_t hold() { return take(held_, kMaxClaimLines, kHeld); }
  const uintptr_t* held() const { return held_; }
  uint32_t held_count() const {
    return static_cast<uint32_t>(state_.load(std::memory_order_relaxed) & kMaxHeld);
  }
  void finish_held() { state_.fetch_sub((kTaken + kHeld) * held_count(), std::memory_order_release); }

  // Is all that was pushed durable, except what the thread holds?
  bool is_done() const {
    const uint64_t state = state_.load(std::memory_order_seq_cst);
    return between(state, head_.load(std::memory_order_relaxed)) == 0 &&
           (state & (kClaimed - 1)) == (kTaken + kHeld) * (state & kMaxHeld);
  }
  // Has flushers take what waits, however little it is, since the thread is going to wait().
  void ask() { asks_.store(1, std::memory_order_relaxed); }
  // Returns when it is done. REQUIRES: flushers run, and have been asked for what waits.
  void wait() {
    for (int spins = 0; spins < kSpins && !is_done(); ++spins) sys::spin(spins);
    while (!is_done()) {
      // Pairs with the load in finish(): one of them sees the other.
      waiter_.store(1, std::memory_order_seq_cst);
      if (is_done()) break;
      sys::futex_wait(waiter_, 1, kLookNs);
    }
    waiter_.store(0, std::memory_order_relaxed);
    asks_.store(0, std::memory_order_relaxed);
  }

  // Calls visit(line) for each line that was pushed and is not durable yet, and for some that were pushed before; the thread and flushers may go on meanwhile.
  template <class Visit>
  void visit(const Visit& visit) const {
    for (const auto& line : lines_)
      if (const uintptr_t address = line.load(std::memory_order_relaxed); address != 0) visit(address);
  }

  // In the child of a fork: what was pushed is for the parent to flush. If a handler has forked, the thread that it interrupted goes on with what it holds.
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
  static constexpr uint64_t kMaxHeld = kTaken - 1;
  static_assert(kMaxClaimLines <= kMaxHeld);

  // How many lines lie between `claimed` and the head. REQUIRES: the head was read after the state, or by the thread that pushes.
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
      // A flusher that was too late leaves the rest of this FIFO to the other one.
      if (held == 0 && state / kClaimed != claimed) return 0;
    }
  }

  alignas(base::kLineBytes) std::atomic<uint64_t> head_{0};
  std::atomic<uint32_t> waiter_{0};  // 1: the thread sleeps, or is about to
  std::atomic<uint32_t> asks_{0};
  uintptr_t held_[kMaxClaimLines];
  alignas(base::kLineBytes) std::atomic<uint64_t> state_{0};
  alignas(base::kLineBytes) std::atomic<uintptr_t> lines_[kLines] = {};
};

}  // namespace persist
