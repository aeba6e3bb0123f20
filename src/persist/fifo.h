// Fifo: lines that one thread hands to others to flush. (Ribbon, PACT'20, 2.1: decoupled flushing, each application thread's circular buffer)
//
//   positions    done <= claimed <= head;  head - claimed <= kLines
//   lines_[position % kLines]
//
//  1 the thread writes a line, and then head
//  2 a flusher reads `claimed`, then head, copies lines between them, and takes them by advancing `claimed`; if another was faster the copy is void
//  3 what is flushed and fenced is added to done, by each flusher for its own, in any order
//  4 the thread's fence waits until done is what head was: all is durable then, whatever the order
// (In the paper a queue has one flushing thread; here several may serve one, so that there can be more of them than application threads.)
//
// Thread contract: push(), is_done() and wait() by the thread, claim() and finish() by flushers.
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

  // False: it is full. Cost: some 1 ns.
  bool push(uintptr_t line) {
    const uint64_t head = head_.load(std::memory_order_relaxed);
    // Pairs with the release in claim(): a place is written again only after it was copied.
    if (head - claimed_.load(std::memory_order_acquire) == kLines) return false;
    lines_[head % kLines].store(line, std::memory_order_relaxed);
    head_.store(
        head + 1,
        std::memory_order_release);  // pairs with the acquire in claim(); so does what was stored to the line
    return true;
  }

  // How many lines nobody has claimed.
  uint64_t waiting() const {
    const uint64_t claimed = claimed_.load(std::memory_order_relaxed);
    return head_.load(std::memory_order_relaxed) - claimed;
  }
  // Copies lines to `to`, at most that many, which are the caller's to flush. Returns how many; 0: none wait, or another flusher was faster.
  uint32_t claim(uintptr_t* to, uint32_t count_max = kClaimLinesMax) {
    uint64_t claimed = claimed_.load(std::memory_order_acquire);
    const uint64_t head = head_.load(std::memory_order_acquire);
    if (head <= claimed) return 0;
    const auto count = static_cast<uint32_t>(std::min<uint64_t>(head - claimed, count_max));
    for (uint32_t i = 0; i < count; ++i)
      to[i] = lines_[(claimed + i) % kLines].load(std::memory_order_relaxed);
    return claimed_.compare_exchange_strong(claimed, claimed + count, std::memory_order_acq_rel) ? count : 0;
  }
  // So many claimed lines are durable.
  void finish(uint32_t count) {
    const uint64_t done = done_.fetch_add(count) + count;  // pairs with the acquire in is_done()
    if (waiter_.load(std::memory_order_seq_cst) != 0 && done >= awaited_.load(std::memory_order_relaxed)) {
      waiter_.store(0, std::memory_order_seq_cst);
      sys::futex_wake(waiter_, 1);
    }
  }

  bool is_done() const {
    return done_.load(std::memory_order_acquire) == head_.load(std::memory_order_relaxed);
  }
  // Returns when all that was pushed is durable. REQUIRES: flushers run.
  void wait() {
    for (int spins = 0; spins < kSpins; ++spins) {
      if (is_done()) return;
      sys::spin(spins);
    }
    while (!is_done()) {
      awaited_.store(head_.load(std::memory_order_relaxed), std::memory_order_relaxed);
      waiter_.store(
          1, std::memory_order_seq_cst);  // pairs with the load in finish(): one of them sees the other
      if (done_.load(std::memory_order_seq_cst) == head_.load(std::memory_order_relaxed)) break;
      sys::futex_wait(waiter_, 1, kLookNs);
    }
    waiter_.store(0, std::memory_order_relaxed);
  }

  // visit(line) for each line that was pushed and is not durable yet, and for others that were pushed before, beside what the thread and flushers do.
  template <class Visit>
  void visit(const Visit& visit) const {
    for (const auto& line : lines_)
      if (const uintptr_t address = line.load(std::memory_order_relaxed); address != 0) visit(address);
  }

  // After fork, in the child: whatever was pushed is the parent's to flush.
  void forget() {
    const uint64_t head = head_.load(std::memory_order_relaxed);
    claimed_.store(head, std::memory_order_relaxed);
    done_.store(head, std::memory_order_relaxed);
  }

 private:
  static constexpr int kSpins = 300;
  static constexpr uint64_t kLookNs = 1'000'000;

  alignas(base::kLineBytes) std::atomic<uint64_t> head_{0};
  std::atomic<uint64_t> awaited_{0};
  std::atomic<uint32_t> waiter_{0};  // 1: the thread sleeps, or is about to
  alignas(base::kLineBytes) std::atomic<uint64_t> claimed_{0};
  alignas(base::kLineBytes) std::atomic<uint64_t> done_{0};
  alignas(base::kLineBytes) std::atomic<uintptr_t> lines_[kLines] = {};
};

}  // namespace persist
