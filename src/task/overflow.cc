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

}  // namespace

bool explain_overflow(uint64_t fault_address) {
  const Worker* const worker = Worker::current();
  if (worker == nullptr) return false;
  const Scheduler& scheduler = worker->scheduler();
  const StackPool& stacks = scheduler.stacks();
  const uint32_t slot = stacks.slot_at(fault_address);
  if (slot == StackPool::kNoSlot || fault_address >= reinterpret_cast<uint64_t>(stacks.stack_of(slot)))
    return false;
  scheduler.say_overflow(scheduler.task_of(slot));
  return true;
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
  stack_t now = {};
  sys::syscall(SYS_sigaltstack, nullptr, &now);
  const stack_t none = {.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
  if (now.ss_sp == memory_) sys::syscall(SYS_sigaltstack, &none, nullptr);  // else tasks have set their own
  sys::unmap(memory_, kSignalStackBytes);
  memory_ = nullptr;
}

}  // namespace task
