// Fiber: a stack and a place in the code that runs on it, and the switch from one to another.
//
// A switch keeps what the System V ABI makes a callee keep: six registers, the stack pointer and the control words of
// SSE and x87 (a task that sets the rounding mode keeps it to itself). Signal masks are the thread's: no system call.
//
//   from the top of the stack of a fiber that is switched out
//     return address      into switch_to's caller
//     rbp rbx r12 r13 r14 r15
//     MXCSR (4 bytes), x87 control word (2), padding (2)      <- stack_pointer_
//
// Thread contract: a fiber runs on the thread that started it; compiled code keeps addresses of thread-local data
// across calls. The address sanitizer and the thread sanitizer are told of every switch.
#pragma once
#include <cstddef>

namespace sys {

class Fiber {
 public:
  // A thread's own stack, once it is switched away from.
  Fiber() = default;
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The first switch to this fiber calls entry(argument) on [stack, stack + bytes), which must not return: it ends by
  // end_and_switch_to. REQUIRES: it is not running. Cost: a few stores to the stack's top.
  void start(char* stack, size_t bytes, void (*entry)(void* argument), void* argument);

  // Goes on in `to`; returns when another fiber switches to this one. REQUIRES: this is the fiber that runs. Cost: some
  // 25 instructions, no system call.
  void switch_to(Fiber& to);

  // The same for a fiber that will not run again: it may be started anew, and its stack given away, as soon as
  // `to` runs.
  [[noreturn]] void end_and_switch_to(Fiber& to);

  // Where it goes on. REQUIRES: it is switched out, and started or was running before.
  const void* return_address() const;

 private:
  friend struct FiberEntry;
  void leave_for(Fiber& to, bool ends);
  void arrive_from(Fiber& previous);

  void* stack_pointer_ = nullptr;
  // What the sanitizers want to know of it.
  const void* stack_ = nullptr;
  size_t stack_bytes_ = 0;
  [[maybe_unused]] void* fake_stack_ = nullptr;  // the address sanitizer's
  [[maybe_unused]] void* watched_ = nullptr;     // the thread sanitizer's
  bool ended_ = false;
};

}  // namespace sys
