// Banks: the hazard slots of tasks that are suspended in a miss (loop.h). The slots of its thread are other tasks' meanwhile;
// what it will go on using stands in its bank, and whoever looks at the slots of all threads looks at all banks, too
// (holders.h). So nothing is pinned, and nobody waits for a task that is suspended.
//
// A bank has a place for each slot. Why nothing that is held is ever overlooked by whoever looks at slots first, and then at banks:
//   suspend   the slots that are live are stored to the bank; then other tasks overwrite them. Seen in the slot or in the bank
//   resume    the bank is stored to the slots, and stays as it is: seen in the bank
//   suspend   what is still live stands in the same place of both, and stays; the rest is not needed any more
// So the bank of a task that runs may hold what the task no longer needs, until its next miss: pages stay in memory, and mapped files open.
//
// Thread contract: a bank is stored to by its task's thread alone; looked at by anyone.
#pragma once
#include "base/error.h"
#include "spill/abi.h"

namespace spill {

class alignas(64) Bank {
 public:
  // Keeps those of the calling thread's slots that are in `live`, a bit for each.
  void keep(const Slot* slots, uint64_t live) {
    for (uint64_t left = live; left != 0; left &= left - 1) {
      const int i = __builtin_ctzll(left);
      // Release, all three: a slot that is overwritten afterwards is overwritten after this.
      slots_[i].store(slots[i].load(std::memory_order_relaxed), std::memory_order_release);
    }
    live_.store(live, std::memory_order_release);
  }
  // They are the thread's again.
  void bring_back(Slot* slots) const {
    for (uint64_t left = live_.load(std::memory_order_relaxed); left != 0; left &= left - 1) {
      const int i = __builtin_ctzll(left);
      slots[i].store(slots_[i].load(std::memory_order_relaxed), std::memory_order_release);
    }
  }
  // The task needs nothing of it.
  void clear() { live_.store(0, std::memory_order_release); }

  template <class F>
  void for_each(F&& f) {
    for (uint64_t left = live_.load(std::memory_order_acquire); left != 0; left &= left - 1)
      f(slots_[__builtin_ctzll(left)]);
  }

  // Of all that there ever were.
  Bank* next() const { return next_; }

 private:
  friend base::Expected<Bank*> take_bank();
  friend void give_back_bank(Bank& bank);
  friend void forget_banks();

  std::atomic<uint64_t> live_{0};
  Bank* next_ = nullptr;
  Bank* next_free_ = nullptr;
  Slot slots_[kAllSlotCount] = {};
};
static_assert(kAllSlotCount <= 64);

// An empty bank for one task. Errors: ENOMEM.
base::Expected<Bank*> take_bank();
void give_back_bank(Bank& bank);

// The first of all that there ever were.
Bank* first_bank();

// In a child of fork: no task is suspended.
void forget_banks();

}  // namespace spill
