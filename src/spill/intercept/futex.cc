// Futexes on spilled words: std::atomic::wait, std::counting_semaphore and the like use them by syscall number (syscall.cc).
#include <errno.h>
#include <linux/futex.h>
#include <time.h>

#include "spill/intercept/parking.h"

namespace spill {
namespace {

Deadline deadline_of(int command, bool realtime, const timespec* timeout) {
  if (timeout == nullptr) return Deadline::never();
  const timespec time = load(timeout);
  if (command == FUTEX_WAIT_BITSET) return Deadline::at(realtime ? CLOCK_REALTIME : CLOCK_MONOTONIC, time);
  // FUTEX_WAIT says how long, not until when.
  const bool is_time = time.tv_nsec >= 0 && time.tv_nsec < 1'000'000'000;
  return Deadline::at(CLOCK_MONOTONIC, is_time ? monotonic_after(time) : time);
}

long wait_futex(const uint32_t* word, uint32_t expected, const Deadline& deadline, uint32_t mask) {
  if (!deadline.is_valid() || mask == 0) return fail(EINVAL);
  const Parked parked = park(
      word, [=] { return Words(word, 4)[0].load(std::memory_order_relaxed) == expected; }, deadline, true,
      mask);
  switch (parked) {
    case Parked::kWoken: return 0;
    case Parked::kChanged: return fail(EAGAIN);
    case Parked::kTimedOut: return fail(ETIMEDOUT);
    case Parked::kInterrupted: return fail(EINTR);
  }
  return fail(EINVAL);
}

}  // namespace

long call_futex(const uint32_t* word, int operation, uint32_t value, const timespec* timeout,
                uint32_t value3) {
  const bool realtime = (operation & FUTEX_CLOCK_REALTIME) != 0;
  switch (const int command = operation & FUTEX_CMD_MASK) {
    case FUTEX_WAIT: return wait_futex(word, value, deadline_of(command, realtime, timeout), ~uint32_t{0});
    case FUTEX_WAIT_BITSET: return wait_futex(word, value, deadline_of(command, realtime, timeout), value3);
    case FUTEX_WAKE: return unpark(word, value);
    case FUTEX_WAKE_BITSET: return unpark(word, value, value3);
    case FUTEX_CMP_REQUEUE:
      if (Words(word, 4)[0].load(std::memory_order_relaxed) != value3) return fail(EAGAIN);
      [[fallthrough]];
    // Spurious wake-ups are allowed: wakes all, instead of moving some to another word.
    case FUTEX_REQUEUE: return unpark(word, ~uint32_t{0});
    default: return fail(ENOSYS);
  }
}

}  // namespace spill
