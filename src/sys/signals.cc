#include "sys/signals.h"

#include "sys/kernel.h"

namespace sys {
namespace {

uint64_t change(int how, const uint64_t* signals) {
  uint64_t before = 0;
  syscall(SYS_rt_sigprocmask, how, signals, &before, sizeof before);
  return before;
}

}  // namespace

uint64_t signal_mask() { return change(SIG_BLOCK, nullptr); }
uint64_t set_signal_mask(uint64_t signals) { return change(SIG_SETMASK, &signals); }
uint64_t block_signals(uint64_t signals) { return change(SIG_BLOCK, &signals); }
uint64_t unblock_signals(uint64_t signals) { return change(SIG_UNBLOCK, &signals); }

}  // namespace sys
