// Contexts and environments of setjmp that lie in spilled memory (context.S has their entry points): between plain
// copies and the program's objects.
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <ucontext.h>

#include "spill/intercept/intercept.h"
#include "spill/signals.h"
#include "sys/signals.h"

// What context.S knows of them.
static_assert(sizeof(ucontext_t) == 968 && sizeof(sigjmp_buf) == 200);
static_assert(offsetof(ucontext_t, uc_mcontext.gregs[REG_R8]) == 40);
static_assert(offsetof(ucontext_t, uc_mcontext.gregs[REG_RIP]) == 168);
static_assert(offsetof(ucontext_t, uc_mcontext.fpregs) == 224);
static_assert(offsetof(_libc_fpstate, mxcsr) == 24);

// Called by context.S.
#define SPILL_OF_ENTRY extern "C" __attribute__((visibility("hidden")))

namespace spill {

// The context that the C library is about to enter, whose mask it gives to the kernel.
SPILL_OF_ENTRY void spill_filter_mask(ucontext_t* context) {
  if ((mask_of(context->uc_sigmask) & kFaultSignals) == 0)
    return;  // it may lie in memory that cannot be written
  *reinterpret_cast<uint64_t*>(&context->uc_sigmask) &= ~kFaultSignals;
}

SPILL_OF_ENTRY bool spill_is_spilled(const void* address) { return in_range(address); }

// `return_address` is where the entry point's own stands: the caller goes on above it.
SPILL_OF_ENTRY void spill_store_jump(__jmp_buf_tag* to, __jmp_buf_tag* plain_jump,
                                     const uint64_t* return_address) {
  uint64_t guard;
  asm("movq %%fs:0x30, %0" : "=r"(guard));
  const auto mangled = [guard](uint64_t value) {
    value ^= guard;
    return value << 17 | value >> 47;
  };
  auto* words = reinterpret_cast<uint64_t*>(plain_jump);
  words[6] = mangled(reinterpret_cast<uint64_t>(return_address + 1));
  words[7] = mangled(*return_address);
  constexpr size_t kMaskAt = offsetof(__jmp_buf_tag, __saved_mask);
  copy(to, plain_jump, plain_jump->__mask_was_saved != 0 ? kMaskAt + sizeof(uint64_t) : kMaskAt);
}

SPILL_OF_ENTRY void spill_load_context(const ucontext_t* from, ucontext_t* to) { copy(to, from, sizeof *to); }

SPILL_OF_ENTRY void spill_store_context(ucontext_t* to, ucontext_t* plain_context,
                                        const uint64_t* return_address) {
  plain_context->uc_mcontext.gregs[REG_RSP] =
      static_cast<greg_t>(reinterpret_cast<uint64_t>(return_address + 1));
  plain_context->uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(*return_address);
  plain_context->uc_mcontext.fpregs = &to->__fpregs_mem;
  copy(to, plain_context, sizeof *to);
}

// Copies, and sets the mask: what comes now may be handled by the stack of the context that is left.
SPILL_OF_ENTRY void spill_prepare_context(const ucontext_t* from, ucontext_t* to) {
  copy(to, from, sizeof *to);
  copy(&to->__fpregs_mem, to->uc_mcontext.fpregs, sizeof to->__fpregs_mem);
  to->uc_mcontext.fpregs = &to->__fpregs_mem;
  sys::set_signal_mask(mask_of(to->uc_sigmask) & ~kFaultSignals);
}

}  // namespace spill
