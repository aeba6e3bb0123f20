// Banks: the hazard slots of tasks that are suspended in a miss (loop.h). Other tasks use the thread's slots meanwhile; the addresses that
// the suspended task goes on using stand in its bank, and whoever looks at the slots of all threads looks at all banks, too (holders.h). So
// nothing is pinned, and nobody waits for a suspended task.
//
// A bank has a place for each slot. Why a scan of the slots first, and then of the banks, never overlooks a held address:
//   suspend   the live slots are stored to the bank before other tasks overwrite them: seen in the slot or in the bank
//   resume    the bank is copied to the slots, and stays as it is: seen in the bank
//   suspend   what is still live is at the same place in both, and stays; the rest is no longer needed
// So until its next miss, a running task's bank may hold what the task no longer needs: pages stay in memory, and mapped files open.
//
// Thread contract: only its task's thread stores to a bank; anyone may read it.
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
      // Release, like the two stores below: slots that are overwritten afterwards are overwritten after this.
      slots_[i].store(slots[i].load(std::memory_order_relaxed), std::memory_order_release);
    }
    live_.store(live, std::memory_order_release);
  }
  // Copies them back to the thread's slots.
  void bring_back(Slot* slots) const {
    for (uint64_t left = live_.load(std::memory_order_relaxed); left != 0; left &= left - 1) {
      const int i = __builtin_ctzll(left);
      slots[i].store(slots_[i].load(std::memory_order_relaxed), std::memory_order_release);
    }
  }
  // The task needs none of them any more.
  void clear() { live_.store(0, std::memory_order_release); }

  template <class F>
  void for_each(F&& f) {
    for (uint64_t left = live_.load(std::memory_order_acquire); left != 0; left &= left - 1)
      f(slots_[__builtin_ctzll(left)]);
  }

  // Next in the list of all banks ever made.
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

// The first of all banks ever made.
Bank* first_bank();

// In a child of fork: no task is suspended.
void forget_banks();

}  // namespace spill
