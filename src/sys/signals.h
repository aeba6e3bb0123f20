// Which signals the calling thread blocks, and the sets of them that the runtime blocks.
//
// A set is a word with a bit for each signal, as the kernel has it. Any thread; errno stays. Cost: a system call, of a guard two.
#pragma once
#include <signal.h>

#include <cstdint>

namespace sys {

constexpr uint64_t signal_bit(int number) { return uint64_t{1} << (number - 1); }

// What may be blocked depends on what the thread does meanwhile. Whoever blocks all lets nothing fault, and does not take long: else
// some have to come through.
inline constexpr uint64_t kAllSignals = ~uint64_t{0};
// Those that the C library keeps for itself: one cancels threads, the other lets setuid() and its kin reach all of them, and waits until each has
// taken it. No program sets, blocks or names them.
inline constexpr uint64_t kLibrarySignals = signal_bit(32) | signal_bit(33);
// Those that a thread's own instructions raise, which kill the process where they are blocked: SIGSYS, too, of a system call that a sandbox answers
// in a handler.
inline constexpr uint64_t kRaisedSignals = signal_bit(SIGSEGV) | signal_bit(SIGBUS) | signal_bit(SIGFPE) |
                                           signal_bit(SIGILL) | signal_bit(SIGTRAP) | signal_bit(SIGSYS);
// What others send, whose handlers must not run: to be blocked whatever is done meanwhile, for as long as it takes.
inline constexpr uint64_t kSentSignals = ~(kRaisedSignals | kLibrarySignals);

// What the calling thread blocks.
uint64_t signal_mask();
// Blocks exactly these, or these as well, or these no longer. Each returns the mask of before.
uint64_t set_signal_mask(uint64_t signals);
uint64_t block_signals(uint64_t signals);
uint64_t unblock_signals(uint64_t signals);

// While one lives the calling thread blocks these as well.
class BlockedSignals {
 public:
  explicit BlockedSignals(uint64_t signals) : before_(block_signals(signals)) {}
  ~BlockedSignals() { set_signal_mask(before_); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  const uint64_t before_;
};

}  // namespace sys
