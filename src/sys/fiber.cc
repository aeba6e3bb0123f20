#include "sys/fiber.h"

#include <cstdint>
#include <cstring>

#include "base/check.h"

#if __has_feature(address_sanitizer)
#include <sanitizer/common_interface_defs.h>
#endif
#if __has_feature(thread_sanitizer)
#include <sanitizer/tsan_interface.h>
#endif

// spillway_switch_stack(void** from, void* to, Fiber* previous): saves registers on the stack as fiber.h shows, stores
// their address to *from, restores those at `to`, and returns this call's `previous` there.
asm(R"(
  .text
  .p2align 4
  .hidden spillway_switch_stack
  .globl spillway_switch_stack
  .type spillway_switch_stack, @function
spillway_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  subq $8, %rsp
  stmxcsr (%rsp)
  fnstcw 4(%rsp)
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  ldmxcsr (%rsp)
  fldcw 4(%rsp)
  addq $8, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  movq %rdx, %rax
  ret
  .size spillway_switch_stack, .-spillway_switch_stack

  # The first return of a fiber leads here (Fiber::start). Who unwinds its stack finds an end.
  .p2align 4
  .hidden spillway_enter_fiber
  .globl spillway_enter_fiber
  .type spillway_enter_fiber, @function
spillway_enter_fiber:
  .cfi_startproc
  .cfi_undefined rip
  movq %r12, %rdi
  movq %rax, %rsi
  movq %r13, %rdx
  movq %r14, %rcx
  call spillway_begin_fiber
  ud2
  .cfi_endproc
  .size spillway_enter_fiber, .-spillway_enter_fiber
)");

extern "C" {
sys::Fiber* spillway_switch_stack(void** from, void* to, sys::Fiber* previous);
void spillway_enter_fiber();
}

namespace sys {
namespace {

// What fiber.h shows, lowest address first.
struct Saved {
  uint32_t sse_control;
  uint16_t x87_control;
  uint16_t padding;
  uint64_t r15, r14, r13, r12, rbx, rbp;
  const void* return_address;
};
static_assert(sizeof(Saved) == 64);  // so that the stack of a fiber that begins is aligned for a call

constexpr uint32_t kDefaultSse = 0x1f80;  // a program's at its start: exceptions masked, round to nearest
constexpr uint16_t kDefaultX87 = 0x37f;

}  // namespace

struct FiberEntry {
  static void begin(Fiber& fiber, Fiber& previous, void (*entry)(void* argument), void* argument) {
    fiber.arrive_from(previous);
    entry(argument);
    CHECK(false && "a fiber's entry returned");
  }
};

void Fiber::start(char* stack, size_t bytes, void (*entry)(void* argument), void* argument) {
  CHECK_EQ(reinterpret_cast<uint64_t>(stack + bytes) % 16, 0u);
  Saved saved = {};
  saved.sse_control = kDefaultSse;
  saved.x87_control = kDefaultX87;
  saved.r12 = reinterpret_cast<uint64_t>(this);
  saved.r13 = reinterpret_cast<uint64_t>(entry);
  saved.r14 = reinterpret_cast<uint64_t>(argument);
  saved.return_address = reinterpret_cast<const void*>(&spillway_enter_fiber);
  char* const at = stack + bytes - sizeof saved;
  memcpy(at, &saved, sizeof saved);
  stack_pointer_ = at;
  stack_ = stack;
  stack_bytes_ = bytes;
  fake_stack_ = nullptr;
  ended_ = false;
#if __has_feature(thread_sanitizer)
  watched_ = __tsan_create_fiber(0);
#endif
}

const void* Fiber::return_address() const {
  Saved saved;
  memcpy(&saved, stack_pointer_, sizeof saved);
  return saved.return_address;
}

// The last step on the old stack. Inlined: the thread sanitizer keeps a list of calls for each fiber, and would note the call of this function in the old
// fiber's and its return in the new one's. A new fiber's first call would then be written before the beginning of its list.
[[gnu::always_inline]] inline void Fiber::leave_for([[maybe_unused]] Fiber& to, bool ends) {
  ended_ = ends;
#if __has_feature(address_sanitizer)
  __sanitizer_start_switch_fiber(ends ? nullptr : &fake_stack_, to.stack_, to.stack_bytes_);
#endif
#if __has_feature(thread_sanitizer)
  if (watched_ == nullptr) watched_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(to.watched_, 0);
#endif
}

// The first step on the new one.
void Fiber::arrive_from([[maybe_unused]] Fiber& previous) {
#if __has_feature(address_sanitizer)
  // This is how it becomes known where a thread's own stack lies.
  __sanitizer_finish_switch_fiber(fake_stack_, &previous.stack_, &previous.stack_bytes_);
#endif
#if __has_feature(thread_sanitizer)
  if (previous.ended_) __tsan_destroy_fiber(previous.watched_);
#endif
}

__attribute__((noinline)) void Fiber::switch_to(Fiber& to) {
  leave_for(to, false);
  Fiber* const previous = spillway_switch_stack(&stack_pointer_, to.stack_pointer_, this);
  arrive_from(*previous);
}

void Fiber::end_and_switch_to(Fiber& to) {
  leave_for(to, true);
  spillway_switch_stack(&stack_pointer_, to.stack_pointer_, this);
  __builtin_unreachable();
}

}  // namespace sys

extern "C" __attribute__((used, visibility("hidden"))) void spillway_begin_fiber(sys::Fiber* fiber,
                                                                                 sys::Fiber* previous,
                                                                                 void (*entry)(void*),
                                                                                 void* argument) {
  sys::FiberEntry::begin(*fiber, *previous, entry, argument);
}
