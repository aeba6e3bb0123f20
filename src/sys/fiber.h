// Fiber: a stack and the point where the code on it goes on, and the switch from one fiber to another.
//
// A switch saves what the System V ABI has a callee preserve: six registers, the stack pointer and the control words of
// SSE and x87 (so each task has its own rounding mode). The signal mask stays the thread's: no system call.
//
//   the stack of a fiber that is switched out, highest address first
//     return address      into switch_to's caller
//     rbp rbx r12 r13 r14 r15
//     MXCSR (4 bytes), x87 control word (2), padding (2)      <- stack_pointer_
//
// Thread contract: a fiber runs on the thread that started it, since compiled code keeps addresses of thread-local data
// across calls. The address sanitizer and the thread sanitizer are told of every switch.
#pragma once
#include <cstddef>

namespace sys {

class Fiber {
 public:
  // Becomes the thread's own stack when that is switched away from.
  Fiber() = default;
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The first switch to this fiber calls entry(argument) on [stack, stack + bytes), which must not return: it ends by
  // end_and_switch_to. REQUIRES: it is not running. Cost: a few stores to the stack's top.
  void start(char* stack, size_t bytes, void (*entry)(void* argument), void* argument);

  // Goes on in `to`; returns when another fiber switches to this one. REQUIRES: this fiber is running. Cost: some
  // 25 instructions, no system call.
  void switch_to(Fiber& to);

  // The same for a fiber that ends: as soon as `to` runs, this one may be started anew, and its stack used for something
  // else.
  [[noreturn]] void end_and_switch_to(Fiber& to);

  // Where it will go on. REQUIRES: it is switched out, after it was started or has run.
  const void* return_address() const;

 private:
  friend struct FiberEntry;
  void leave_for(Fiber& to, bool ends);
  void arrive_from(Fiber& previous);

  void* stack_pointer_ = nullptr;
  // For the sanitizers.
  const void* stack_ = nullptr;
  size_t stack_bytes_ = 0;
  [[maybe_unused]] void* fake_stack_ = nullptr;  // the address sanitizer's
  [[maybe_unused]] void* watched_ = nullptr;     // the thread sanitizer's
  bool ended_ = false;
};

}  // namespace sys
