// Contexts and setjmp environments in spilled memory: what the entry points in context.S need to move them between
// plain copies and the program's objects.
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

// What context.S assumes about them.
static_assert(sizeof(ucontext_t) == 968 && sizeof(sigjmp_buf) == 200);
static_assert(offsetof(ucontext_t, uc_mcontext.gregs[REG_R8]) == 40);
static_assert(offsetof(ucontext_t, uc_mcontext.gregs[REG_RIP]) == 168);
static_assert(offsetof(ucontext_t, uc_mcontext.fpregs) == 224);
static_assert(offsetof(_libc_fpstate, mxcsr) == 24);

// Called by context.S.
#define SPILL_OF_ENTRY extern "C" __attribute__((visibility("hidden")))

namespace spill {
namespace {

// The slots with which a context was left, which tell the thread and its handler's level, in words that neither the C library nor the kernel
// uses; and the stack pointer: makecontext gives another one to a context that has not begun yet.
struct Left {
  uint64_t key;
  uint64_t slots;
  uint64_t stack_pointer;
};
constexpr uint64_t kLeftKey = 0x9d3c52b7e1a06f84;
static_assert(sizeof(Left) <= sizeof(mcontext_t::__reserved1));

uint64_t record_of(uint64_t slots) { return base::round_down(slots, kRecordBytes); }

void note_left(ucontext_t& context, uint64_t stack_pointer) {
  const Left left = {kLeftKey, reinterpret_cast<uint64_t>(__spillway_slots), stack_pointer};
  memcpy(context.uc_mcontext.__reserved1, &left, sizeof left);
}

// To be called before a context is entered. Functions that have translated keep using the slots that they began with: another thread's slots
// would protect nothing, and the slots of code that a handler interrupted, and that is resumed later, protect what that code needs.
// `goes_on`: what is left may be resumed.
void enter(const ucontext_t& context, bool goes_on) {
  Left left;
  memcpy(&left, context.uc_mcontext.__reserved1, sizeof left);
  const auto slots = reinterpret_cast<uint64_t>(__spillway_slots);
  const bool is_as_left = left.key == kLeftKey && left.slots != kUnregisteredSlots &&
                          left.stack_pointer == static_cast<uint64_t>(context.uc_mcontext.gregs[REG_RSP]);
  if (!is_as_left || left.slots == slots) return;
  const bool is_own = record_of(left.slots) == record_of(slots);
  if (is_own && !goes_on && left.slots < slots)
    return leave_handlers_for(reinterpret_cast<const Slot*>(left.slots));
  if (runs_native()) return;
  if (is_own)
    end_process(base::Error::of(ENOTSUP,
                                "a signal handler changes to a context that was left outside of it, or the "
                                "other way round (swapcontext): leave handlers by siglongjmp or setcontext"),
                kFatalStatus);
  end_process(base::Error::of(ENOTSUP,
                              "a context that one thread has left (swapcontext, getcontext) is to go on in "
                              "another: let each thread go on with its own"),
              kFatalStatus);
}

}  // namespace

// For a plain context that the C library is about to fill in; `stack_pointer`: where it will be resumed.
SPILL_OF_ENTRY void spill_note_left(ucontext_t* context, uint64_t stack_pointer) {
  note_left(*context, stack_pointer);
}

// For a context that the C library is about to enter, whose mask it passes to the kernel.
SPILL_OF_ENTRY void spill_enter_context(ucontext_t* context, bool goes_on) {
  enter(*context, goes_on);
  if ((mask_of(context->uc_sigmask) & kFaultSignals) == 0)
    return;  // it may lie in memory that cannot be written
  *reinterpret_cast<uint64_t*>(&context->uc_sigmask) &= ~kFaultSignals;
}

SPILL_OF_ENTRY bool spill_is_spilled(const void* address) { return in_range(address); }

// `return_address`: the place on the stack of the entry point's return address; the caller goes on above it.
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

// Copies, and sets the mask: signals that come now may still be handled on the stack of the context that is left.
SPILL_OF_ENTRY void spill_prepare_context(const ucontext_t* from, ucontext_t* to, bool goes_on) {
  copy(to, from, sizeof *to);
  enter(*to, goes_on);
  copy(&to->__fpregs_mem, to->uc_mcontext.fpregs, sizeof to->__fpregs_mem);
  to->uc_mcontext.fpregs = &to->__fpregs_mem;
  sys::set_signal_mask(mask_of(to->uc_sigmask) & ~kFaultSignals);
}

}  // namespace spill
