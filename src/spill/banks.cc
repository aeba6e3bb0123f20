#include "spill/banks.h"

#include <new>

#include "sys/lock.h"
#include "sys/memory.h"

namespace spill {
namespace {

constexpr uint64_t kBlockBytes = 64 << 10;
constexpr uint64_t kBanksPerBlock = kBlockBytes / sizeof(Bank);

constinit std::atomic<Bank*> first{nullptr};  // only grows, so that readers need no lock
constinit Bank* first_free = nullptr;
constinit sys::Mutex mutex;

}  // namespace

base::Expected<Bank*> take_bank() {
  sys::LockGuard guard(mutex);
  if (first_free == nullptr) {
    auto memory = sys::map_anonymous(kBlockBytes, "what suspended tasks hold");
    if (!memory) return std::unexpected(memory.error());
    Bank* const banks = reinterpret_cast<Bank*>(*memory);
    for (uint64_t i = 0; i < kBanksPerBlock; ++i) {
      Bank* const bank = new (&banks[i]) Bank;
      bank->next_ = first.load(std::memory_order_relaxed);
      bank->next_free_ = first_free;
      first_free = bank;
      // Release: whoever finds the bank finds it empty.
      first.store(bank, std::memory_order_release);
    }
  }
  Bank* const taken = first_free;
  first_free = taken->next_free_;
  return taken;
}

void give_back_bank(Bank& bank) {
  bank.clear();
  sys::LockGuard guard(mutex);
  bank.next_free_ = first_free;
  first_free = &bank;
}

Bank* first_bank() { return first.load(std::memory_order_acquire); }

void forget_banks() {
  new (&mutex) sys::Mutex;
  first_free = nullptr;
  for (Bank* bank = first.load(std::memory_order_relaxed); bank != nullptr; bank = bank->next_) {
    bank->clear();
    bank->next_free_ = first_free;
    first_free = bank;
  }
}

}  // namespace spill
