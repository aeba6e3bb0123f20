#include "task/overflow.h"

#include <signal.h>

#include "base/log.h"
#include "sys/kernel.h"
#include "sys/lock.h"
#include "sys/memory.h"
#include "task/scheduler.h"

namespace task {
namespace {

constexpr size_t kSignalStackBytes = 64 << 10;
constexpr uint32_t kMostSchedulers = 64;

// Relaxed: a fault in a guard comes after its scheduler was added, on the same thread or on one that it started.
constinit std::atomic<Scheduler*> schedulers[kMostSchedulers] = {};

}  // namespace

void add_guards(Scheduler& scheduler) {
  for (auto& element : schedulers) {
    Scheduler* nobody = nullptr;
    if (element.compare_exchange_strong(nobody, &scheduler, std::memory_order_relaxed)) return;
  }
}

void remove_guards(Scheduler& scheduler) {
  for (auto& element : schedulers) {
    Scheduler* expected = &scheduler;
    if (element.compare_exchange_strong(expected, nullptr, std::memory_order_relaxed)) return;
  }
}

bool explain_overflow(uint64_t fault_address) {
  for (auto& element : schedulers) {
    Scheduler* const scheduler = element.load(std::memory_order_relaxed);
    if (scheduler == nullptr) continue;
    const StackPool& stacks = scheduler->stacks();
    const uint32_t slot = stacks.slot_at(fault_address);
    if (slot == StackPool::kNoSlot || fault_address >= reinterpret_cast<uint64_t>(stacks.stack_of(slot)))
      continue;
    scheduler->say_overflow(scheduler->task_of(slot));
    return true;
  }
  return false;
}

base::Expected<void> SignalStack::open() {
  stack_t now = {};
  sys::syscall(SYS_sigaltstack, nullptr, &now);
  if ((now.ss_flags & SS_DISABLE) == 0) return {};
  auto memory = sys::map_anonymous(kSignalStackBytes, "a stack for signal handlers");
  if (!memory) return std::unexpected(memory.error());
  memory_ = *memory;
  const stack_t mine = {.ss_sp = memory_, .ss_flags = 0, .ss_size = kSignalStackBytes};
  sys::syscall(SYS_sigaltstack, &mine, nullptr);
  return {};
}

void SignalStack::close() {
  if (memory_ == nullptr) return;
  const stack_t none = {.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
  sys::syscall(SYS_sigaltstack, &none, nullptr);
  sys::unmap(memory_, kSignalStackBytes);
  memory_ = nullptr;
}

}  // namespace task
