#include "spill/fault.h"

#include <ucontext.h>

#include <optional>

#include "spill/access.h"
#include "spill/address_space.h"
#include "spill/file_maps.h"
#include "spill/fork.h"
#include "spill/mapped_pages.h"
#include "spill/protection.h"
#include "spill/runtime.h"
#include "spill/signals.h"
#include "sys/mappings.h"
#include "sys/memory.h"
#include "task/overflow.h"

namespace spill {
namespace {

// What the access that faulted needs, from the page fault's error code.
Need need_of(const ucontext_t& context) {
  constexpr uint64_t kWrites = 1 << 1, kFetches = 1 << 4;
  const auto code = static_cast<uint64_t>(context.uc_mcontext.gregs[REG_ERR]);
  return (code & kFetches) != 0 ? Need::kExecute : (code & kWrites) != 0 ? Need::kWrite : Need::kRead;
}

// The thread's slot store hit the page that stands for "not registered": give it slots, and every
// register that was computed from the old pointer the new value. The store is then repeated.
void register_faulting_thread(ucontext_t& context) {
  this_thread();
  const auto slots = reinterpret_cast<uint64_t>(__spillway_slots);
  for (int i = REG_R8; i <= REG_RSP; ++i) {
    auto value = static_cast<uint64_t>(context.uc_mcontext.gregs[i]);
    if (value - kUnregisteredSlots < base::kOsPageBytes)
      context.uc_mcontext.gregs[i] = static_cast<greg_t>(value - kUnregisteredSlots + slots);
  }
}

// Cache::guarded_address takes a partition's lock: InRuntime defers handlers of the program, which might need a page of that partition.
std::optional<uint64_t> guarded_address(uint64_t address) {
  const InRuntime inside;
  return runtime.cache->guarded_address(reinterpret_cast<const char*>(address));
}

// Likewise for Cache::wait_for_share.
void wait_for_share() {
  const InRuntime inside;
  runtime.cache->wait_for_share();
}

}  // namespace

void install_fault_handler() {
  install_runtime_handler(SIGSEGV);
  install_runtime_handler(SIGBUS);
}

void handle_fault(int number, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<uint64_t>(info->si_addr);
  const bool by_access = info->si_code > 0;  // not sent by kill() or the like
  if (number == SIGSEGV && by_access) {
    if (address - kUnregisteredSlots < base::kOsPageBytes) {
      register_faulting_thread(*static_cast<ucontext_t*>(context));
      return;
    }
    const Need need = need_of(*static_cast<ucontext_t*>(context));
    if (in_range(address) && file_map_kind(address) == FileMapKind::kPlain) {
      // The kernel refused the access, unless it was under way when the map became the kernel's: then it is repeated.
      if (need == Need::kExecute || !sys::populate(reinterpret_cast<void*>(address), need == Need::kWrite))
        pass_to_program(number, info, context);
      return;
    }
    if (in_range(address) && is_allocated(address) && allows(protection_at(address), need)) {
      const auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
      map_at_own_address(address, static_cast<uint64_t>(registers[REG_RIP]));
      return;
    }
    if (const auto meant = guarded_address(address)) {
      // Translated before the page was protected. The program knows it by another address.
      if (allows(protection_at(*meant), need)) {
        renew_guards(*meant);
        return;
      }
      siginfo_t told = *info;
      told.si_addr = reinterpret_cast<void*>(*meant);
      pass_to_program(number, &told, context);
      return;
    }
    if (runtime.cache->is_in_frame(reinterpret_cast<const char*>(address))) {
      // A child of vfork has its parent's frames; a copy that was made behind our back has none.
      if (!sys::is_mapped(address, address + 1))
        end_fork_child(
            "it was made by a system call that the runtime does not see; use fork, or exec at once");
      wait_for_share();
      return;
    }
  }
  if (by_access) task::explain_overflow(address);
  // For the program nothing is mapped there; the kernel knows the range as a whole.
  if (number == SIGSEGV && by_access && in_reserved_range(address) && !is_allocated(address))
    info->si_code = SEGV_MAPERR;
  // The program's handler may return, and the repeated access may then find the page.
  if (number == SIGBUS && by_access && in_range(address)) hide_bus_error(address);
  pass_to_program(number, info, context);
}

}  // namespace spill
