// Futexes on spilled words: std::atomic::wait, std::counting_semaphore and the like use them by syscall number (syscall.cc). Those that are mutexes,
// inheriting priorities (FUTEX_LOCK_PI and its kin), are the kernel's alone: ENOSYS.
#include <errno.h>
#include <linux/futex.h>
#include <time.h>

#include "spill/intercept/parking.h"
#include "sys/kernel.h"

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

// FUTEX_WAKE_OP's last argument, which FUTEX_OP makes: 4 bits of a change and 4 of a comparison, then 12 each of a signed number for these.
struct WakeOperation {
  uint32_t code;

  bool is_known() const { return (code >> 28 & 7) <= FUTEX_OP_XOR && (code >> 24 & 15) <= FUTEX_OP_CMP_GE; }
  static int32_t number(uint32_t bits) { return static_cast<int32_t>(bits << 20) >> 20; }
  uint32_t changed(uint32_t old) const {
    uint32_t with = static_cast<uint32_t>(number(code >> 12));
    if ((code >> 28 & FUTEX_OP_OPARG_SHIFT) != 0) with = uint32_t{1} << (with & 31);
    switch (code >> 28 & 7) {
      case FUTEX_OP_SET: return with;
      case FUTEX_OP_ADD: return old + with;
      case FUTEX_OP_OR: return old | with;
      case FUTEX_OP_ANDN: return old & ~with;
      default: return old ^ with;
    }
  }
  bool is_met_by(uint32_t old) const {
    const auto value = static_cast<int32_t>(old);
    const int32_t limit = number(code);
    switch (code >> 24 & 15) {
      case FUTEX_OP_CMP_EQ: return value == limit;
      case FUTEX_OP_CMP_NE: return value != limit;
      case FUTEX_OP_CMP_LT: return value < limit;
      case FUTEX_OP_CMP_LE: return value <= limit;
      case FUTEX_OP_CMP_GT: return value > limit;
      default: return value >= limit;
    }
  }
  // Returns the old value. Sequentially consistent, as the kernel's change is: pairs with whatever the program does with the word.
  uint32_t apply_to(std::atomic<uint32_t>& word) const {
    uint32_t old = word.load();
    while (!word.compare_exchange_weak(old, changed(old))) {
    }
    return old;
  }
};

// Of either kind of word.
long wake(const uint32_t* word, uint32_t count, int operation) {
  if (!is_c_library_object(word)) return unpark(word, count);
  return sys::syscall(SYS_futex, word, FUTEX_WAKE | (operation & FUTEX_PRIVATE_FLAG), count);
}

// The second word is changed before anybody is woken, not at the same moment: who begins to wait in between sees the change, or is woken, too.
long wake_by_operation(const uint32_t* word, uint32_t count, uint32_t* second, uint32_t second_count,
                       WakeOperation change, int operation) {
  if (reinterpret_cast<uint64_t>(second) % sizeof(uint32_t) != 0) return fail(EINVAL);
  if (!change.is_known()) return fail(ENOSYS);
  const uint32_t old = is_c_library_object(second)
                           ? change.apply_to(*reinterpret_cast<std::atomic<uint32_t>*>(second))
                           : change.apply_to(Words(second, sizeof(uint32_t))[0]);
  const long woken = wake(word, count, operation);
  if (sys::failed(woken)) return fail(static_cast<int>(-woken));
  return change.is_met_by(old) ? woken + wake(second, second_count, operation) : woken;
}

}  // namespace

long call_futex(const uint32_t* word, int operation, uint32_t value, const timespec* timeout, uint32_t* word2,
                uint32_t value3) {
  // A word that is not aligned may lie on two pages.
  if (reinterpret_cast<uint64_t>(word) % sizeof(uint32_t) != 0) return fail(EINVAL);
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
    // In the place of a timeout is how many of the second word's waiters to wake.
    case FUTEX_WAKE_OP:
      return wake_by_operation(word, value, word2, static_cast<uint32_t>(reinterpret_cast<uint64_t>(timeout)),
                               {value3}, operation);
    default: return fail(ENOSYS);
  }
}

}  // namespace spill
