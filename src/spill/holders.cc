#include "spill/holders.h"

#include "spill/banks.h"
#include "spill/runtime.h"
#include "sys/barrier.h"

namespace spill {
namespace {

template <class F>
void for_each_slot(F&& f) {
  for (Thread* thread = first_thread(); thread != nullptr; thread = thread->next) {
    // A level that a handler entered after the barrier holds nothing translated before it.
    const uint32_t top = thread->top_level.load(std::memory_order_acquire);
    for (uint32_t level = 0; level <= top; ++level)
      for (Slot& slot : thread->levels[level].slots) f(slot);
  }
  // After the slots, whose addresses move there (banks.h).
  for (Bank* bank = first_bank(); bank != nullptr; bank = bank->next()) bank->for_each(f);
}

class HazardHolders final : public cache::Holders {
 public:
  // Pairs with the compiler fence between slot store and entry load in every translation.
  void barrier() override { sys::process_barrier(); }

  void visit(void (*visit)(void* context, base::PageId page), void* context) override {
    for_each_slot([=](const Slot& slot) {
      const uint64_t address = slot.load(std::memory_order_acquire);
      if (in_range(address)) visit(context, runtime.cache->page_of(address));
    });
  }
};

constinit HazardHolders holders;

}  // namespace

cache::Holders& hazard_holders() { return holders; }

void for_each_held(uint64_t begin, uint64_t end, void (*f)(void* context, uint64_t address), void* context) {
  for_each_slot([=](const Slot& slot) {
    const uint64_t address = slot.load(std::memory_order_acquire);
    if (address - begin < end - begin) f(context, address);
  });
}

void clear_slots_of_all(uint64_t begin, uint64_t end) {
  for_each_slot([=](Slot& slot) {
    uint64_t address = slot.load(std::memory_order_relaxed);
    // Its owner may store another address at any time.
    if (address - begin < end - begin) slot.compare_exchange_strong(address, 0, std::memory_order_relaxed);
  });
}

}  // namespace spill
