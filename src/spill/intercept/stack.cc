// Stacks that the program makes itself, for signal handlers, contexts and threads: compiled code does not
// translate accesses to its stack, so spilled memory that becomes one is kept in its place (keep_mapped).
#include "spill/intercept/stack.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <ucontext.h>

#include "spill/address_space.h"
#include "spill/intercept/intercept.h"
#include "spill/mapped_pages.h"
#include "spill/runtime.h"
#include "sys/kernel.h"

extern "C" __attribute__((visibility("hidden"))) void spill_end_context();  // context.S

namespace spill {
namespace {

// Keeps the spilled part of a stack mapped. False if there is no room. (A stack may be a static array, whose ends are plain memory.)
bool keep_stack(const void* begin, size_t bytes) {
  const auto address = reinterpret_cast<uint64_t>(begin);
  const uint64_t plain_bytes = plain(begin) ? plain_length(begin, bytes) : 0;
  if (plain_bytes == bytes) return true;
  const uint64_t spilled = address + plain_bytes;
  return keep_mapped(spilled, same_allocation_end(spilled, address + bytes) - spilled);
}

}  // namespace

// A stack set by pthread_attr_setstack is already kept. pthread_attr_setstackaddr gives only a stack's end, and the size may be set later.
bool keep_stack_of(const pthread_attr_t& attributes) {
  void* begin = nullptr;
  size_t bytes = 0;
  pthread_attr_getstack(&attributes, &begin, &bytes);
  const uint64_t end = reinterpret_cast<uint64_t>(begin) + bytes;
  if (end == 0) return true;  // none is given
  if (bytes == 0) pthread_attr_getstacksize(&attributes, &bytes);
  const uint64_t first = end - bytes;
  return (!in_range(first) || is_allocated(first)) && keep_stack(reinterpret_cast<void*>(first), bytes);
}

SPILL_EXPORT int __spill_sigaltstack(const stack_t* stack, stack_t* old) {
  PlainIn<stack_t> plain_stack(stack);
  PlainObject<stack_t> plain_old(old);
  if (stack != nullptr && (plain_stack->ss_flags & SS_DISABLE) == 0 &&
      !keep_stack(plain_stack->ss_sp, plain_stack->ss_size))
    return fail(ENOMEM);
  const long result = sys::syscall(SYS_sigaltstack, static_cast<const stack_t*>(plain_stack),
                                   static_cast<stack_t*>(plain_old));
  if (!sys::failed(result)) return 0;
  errno = static_cast<int>(-result);
  return -1;
}

SPILL_EXPORT int __spill_pthread_attr_setstack(pthread_attr_t* attributes, void* begin, size_t bytes) {
  if (!keep_stack(begin, bytes)) return ENOMEM;
  return pthread_attr_setstack(PlainObject<pthread_attr_t>(attributes), begin, bytes);
}

// The arguments are words, whatever their types, in registers and on the stack.
SPILL_EXPORT void __spill_makecontext(ucontext_t* context, void (*function)(), int count, ...) {
  constexpr int kMaxWords = 16;
  long words[kMaxWords] = {};
  va_list arguments;
  va_start(arguments, count);
  for (int i = 0; i < count && i < kMaxWords; ++i) words[i] = va_arg(arguments, long);
  va_end(arguments);
  const stack_t stack = load(&context->uc_stack);
  if (!keep_stack(stack.ss_sp, stack.ss_size)) {
    end_process(base::Error::of(ENOMEM,
                                "the stacks of contexts, with what spill_pin keeps, would fill too much of "
                                "the memory; give more with --memory"),
                kFatalStatus);
  }
  PlainObject<ucontext_t> plain_context(context);
  makecontext(plain_context, function, count, words[0], words[1], words[2], words[3], words[4], words[5],
              words[6], words[7], words[8], words[9], words[10], words[11], words[12], words[13], words[14],
              words[15]);
  // When a context's function returns, the C library cannot go on with a spilled successor. The return address is on top of the new stack.
  if (in_range(plain_context->uc_link))
    store(reinterpret_cast<void (**)()>(plain_context->uc_mcontext.gregs[REG_RSP]), spill_end_context);
}

}  // namespace spill
