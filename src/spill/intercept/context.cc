// Contexts and environments of setjmp that lie in spilled memory (context.S has their entry points): between plain
// copies and the program's objects.
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <ucontext.h>

#include "spill/intercept/intercept.h"
#include "spill/native.h"
#include "spill/runtime.h"
#include "spill/signals.h"
#include "spill/thread.h"
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
namespace {

// In which thread a context was left, by its record, in words that neither the C library nor the kernel uses; and with which stack pointer:
// makecontext gives another one to what has not begun yet.
struct Left {
  uint64_t key;
  uint64_t record;
  uint64_t stack_pointer;
};
constexpr uint64_t kLeftKey = 0x9d3c52b7e1a06f84;
static_assert(sizeof(Left) <= sizeof(mcontext_t::__reserved1));

uint64_t own_record() { return reinterpret_cast<uint64_t>(this_thread_if_registered()); }

void note_left(ucontext_t& context, uint64_t stack_pointer) {
  const Left left = {kLeftKey, own_record(), stack_pointer};
  memcpy(context.uc_mcontext.__reserved1, &left, sizeof left);
}

// Functions that have translated keep to the slots of the thread that they began in: in another one these would protect nothing.
void require_own(const ucontext_t& context) {
  Left left;
  memcpy(&left, context.uc_mcontext.__reserved1, sizeof left);
  const bool is_as_left = left.key == kLeftKey && left.record != 0 &&
                          left.stack_pointer == static_cast<uint64_t>(context.uc_mcontext.gregs[REG_RSP]);
  if (!is_as_left || left.record == own_record() || runs_native()) return;
  end_process(base::Error::of(ENOTSUP,
                              "a context that one thread has left (swapcontext, getcontext) is to go on in "
                              "another: let each thread go on with its own"),
              kFatalStatus);
}

}  // namespace

// The plain context that the C library is about to fill in, and what the stack pointer is where it goes on.
SPILL_OF_ENTRY void spill_note_left(ucontext_t* context, uint64_t stack_pointer) {
  note_left(*context, stack_pointer);
}

// The context that the C library is about to enter, whose mask it gives to the kernel.
SPILL_OF_ENTRY void spill_filter_mask(ucontext_t* context) {
  require_own(*context);
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
  note_left(*plain_context, reinterpret_cast<uint64_t>(return_address + 1));
  copy(to, plain_context, sizeof *to);
}

// Copies, and sets the mask: what comes now may be handled by the stack of the context that is left.
SPILL_OF_ENTRY void spill_prepare_context(const ucontext_t* from, ucontext_t* to) {
  copy(to, from, sizeof *to);
  require_own(*to);
  copy(&to->__fpregs_mem, to->uc_mcontext.fpregs, sizeof to->__fpregs_mem);
  to->uc_mcontext.fpregs = &to->__fpregs_mem;
  sys::set_signal_mask(mask_of(to->uc_sigmask) & ~kFaultSignals);
}

}  // namespace spill
