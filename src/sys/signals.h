// Which signals the calling thread blocks, and the sets of them that the runtime blocks.
//
// A set is a word with a bit for each signal, as in the kernel. Any thread; errno is left alone. Cost: a system call, two for a guard.
#pragma once
#include <signal.h>

#include <cstdint>

namespace sys {

constexpr uint64_t signal_bit(int number) { return uint64_t{1} << (number - 1); }

// What may be blocked depends on what the thread does meanwhile. All signals may be blocked only for a short time, and if nothing can
// fault; otherwise some have to get through.
inline constexpr uint64_t kAllSignals = ~uint64_t{0};
// The C library's own: one cancels threads; by the other setuid() and its kin reach all threads, and they wait until each has handled it. Programs can
// neither handle, block nor name them.
inline constexpr uint64_t kLibrarySignals = signal_bit(32) | signal_bit(33);
// Those that a thread's own instructions raise, which kill the process if they are blocked. SIGSYS is one, since a sandbox may have a handler answer
// system calls.
inline constexpr uint64_t kRaisedSignals = signal_bit(SIGSEGV) | signal_bit(SIGBUS) | signal_bit(SIGFPE) |
                                           signal_bit(SIGILL) | signal_bit(SIGTRAP) | signal_bit(SIGSYS);
// Those that others send. To keep their handlers from running, these may be blocked whatever the thread does, and for as long as it takes.
inline constexpr uint64_t kSentSignals = ~(kRaisedSignals | kLibrarySignals);

// What the calling thread blocks.
uint64_t signal_mask();
// Blocks exactly these, or these as well, or these no longer. Each returns the previous mask.
uint64_t set_signal_mask(uint64_t signals);
uint64_t block_signals(uint64_t signals);
uint64_t unblock_signals(uint64_t signals);

// While it exists, the calling thread blocks these signals as well.
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
