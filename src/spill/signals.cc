#include "spill/signals.h"

#include <errno.h>

#include "base/check.h"
#include "spill/fault.h"
#include "spill/fork.h"
#include "spill/pins.h"
#include "spill/runtime.h"
#include "sys/kernel.h"
#include "sys/lock.h"
#include "sys/signals.h"

namespace spill {
namespace {

constexpr int kSignalCount = 65;

extern "C" void spillway_signal_return();
asm(".text\n"
    ".type spillway_signal_return, @function\n"
    "  nop\n"  // unwinders look up the byte before a return address, which must not belong to another function
    "spillway_signal_return:\n"
    "  movq $15, %rax\n"  // rt_sigreturn; unwinders know these bytes
    "  syscall\n");

// What the program set, by signal. Read in handlers while another thread may set it: two words of an
// action may then be of two settings, as with the kernel's own window between setting and delivery.
struct ProgramAction {
  std::atomic<void (*)(int, siginfo_t*, void*)> handler;
  std::atomic<unsigned long> flags;
  std::atomic<uint64_t> mask;
};
constinit ProgramAction program_actions[kSignalCount] = {};
// Step 6: the actions of the last such child that set or asked for one. If there are two such children at a time,
// the other one is taken to have its parent's handlers.
constinit ProgramAction child_actions[kSignalCount] = {};
constinit std::atomic<long> child_process{0};
constinit sys::Mutex actions_mutex;
constinit bool runtime_owned[kSignalCount] = {};

// The actions of the calling process.
ProgramAction* actions_here() {
  const long child = child_process.load(std::memory_order_acquire);
  return child != 0 && child == sys::syscall(SYS_getpid) ? child_actions : program_actions;
}

// The same, for setting or reporting one. REQUIRES: actions_mutex.
ProgramAction* own_actions() {
  if (!is_sharing_child()) return program_actions;
  const long process = sys::syscall(SYS_getpid);
  if (child_process.load(std::memory_order_relaxed) == process) return child_actions;
  for (int number = 1; number < kSignalCount; ++number) {
    const ProgramAction& inherited = program_actions[number];
    ProgramAction& own = child_actions[number];
    own.handler.store(inherited.handler.load());
    own.flags.store(inherited.flags.load());
    own.mask.store(inherited.mask.load());
  }
  child_process.store(process, std::memory_order_release);
  return child_actions;
}

bool is_function(void (*handler)(int, siginfo_t*, void*)) {
  auto value = reinterpret_cast<uint64_t>(handler);
  return value != reinterpret_cast<uint64_t>(SIG_DFL) && value != reinterpret_cast<uint64_t>(SIG_IGN);
}

[[noreturn]] __attribute__((noinline)) void end_nesting() {
  end_process(base::Error::of(ENOMEM, "more than ", kMaxLevels - 1, " signal handlers are nested"),
              kFatalStatus);
}

// Step 3.
void run_program_handler(int number, siginfo_t* info, void* context) {
  ProgramAction& action = actions_here()[number];
  auto handler = action.handler.load(std::memory_order_acquire);
  if (!is_function(handler)) return;
  const unsigned long flags = action.flags.load(std::memory_order_relaxed);
  uint64_t blocks = action.mask.load(std::memory_order_relaxed);
  if ((flags & SA_NODEFER) == 0) blocks |= signal_bit(number);
  if ((flags & SA_RESETHAND) != 0) {
    struct sigaction reset = {};
    set_program_action(number, &reset, nullptr);
  }
  const int saved_errno = errno;
  Thread& thread = this_thread();
  Slot* slots = __spillway_slots;
  const uint32_t level = thread.top_level.load(std::memory_order_relaxed);
  const uint32_t next = level + 1;
  if (next == kMaxLevels) end_nesting();
  const auto frame = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  thread.handler_frames[next] = frame;
  // Release: the evictor that sees a slot of the level sees the level.
  thread.top_level.store(next, std::memory_order_release);
  __spillway_slots = thread.levels[next].slots;
  const uint64_t blocked_faults = thread.blocked_faults;
  thread.blocked_faults = blocked_faults | (blocks & kFaultSignals);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  // Again: a handler that came before this one had its level has used the same.
  thread.handler_frames[next] = frame;
  handler(number, info, context);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  set_blocked_faults(thread, blocked_faults);
  for (Slot& slot : thread.levels[next].slots) slot.store(0, std::memory_order_release);
  __spillway_slots = slots;
  thread.top_level.store(level, std::memory_order_release);
  errno = saved_errno;
}

// On the alternate signal stack?
bool on_alternate_stack(uint64_t address, const stack_t& alternate) {
  return (alternate.ss_flags & SS_DISABLE) == 0 &&
         address - reinterpret_cast<uint64_t>(alternate.ss_sp) < alternate.ss_size;
}

void enter_handler(int number, siginfo_t* info, void* context) {
  const bool fault = (number == SIGSEGV || number == SIGBUS) && info->si_code > 0;
  if (fault) {
    handle_fault(number, info, context);
    return;
  }
  Thread* thread = this_thread_if_registered();
  if (thread != nullptr && thread->runtime_depth > 0) {
    defer_signal(info, context);
    return;
  }
  if (runtime_owned[number]) {
    if (thread != nullptr && (thread->blocked_faults & signal_bit(number)) != 0)
      spillway_plain_memcpy(thread->kept_fault, info, sizeof *info);
    else
      pass_to_program(number, info, context);
  } else {
    run_program_handler(number, info, context);
  }
}

long set_kernel_action(int number, const KernelAction* action) {
  return sys::syscall(SYS_rt_sigaction, number, action, nullptr, sizeof action->mask);
}

}  // namespace

void defer_signal(siginfo_t* info, void* context) {
  Thread& thread = this_thread();
  uint64_t& mask = *reinterpret_cast<uint64_t*>(&static_cast<ucontext_t*>(context)->uc_sigmask);
  constexpr uint64_t kAll = ~kFaultSignals;
  // The kernel may stack the frames of several signals before the first handler runs: the last handler is the
  // one that interrupted the runtime itself.
  if (thread.deferred_count == 0 || mask != kAll) thread.deferred_mask = mask;
  ++thread.deferred_count;
  if ((signal_bit(info->si_signo) & kFaultSignals) != 0) {
    spillway_plain_memcpy(thread.kept_fault, info, sizeof *info);
    return;
  }
  mask = kAll;
  sys::set_signal_mask(mask);
  sys::syscall(SYS_rt_tgsigqueueinfo, sys::syscall(SYS_getpid), sys::syscall(SYS_gettid), info->si_signo,
               info);
}

namespace {

// The mask that a jump restores is the kernel's, in which no fault signal is blocked.
void take_saved_mask(Thread& thread) {
  set_blocked_faults(thread, 0);
  thread.has_other_mask = true;  // until the task looks
}

void clear_level(Thread& thread, uint32_t level) {
  for (Slot& slot : thread.levels[level].slots) slot.store(0, std::memory_order_release);
}

void go_on_with_level(Thread& thread, uint32_t level) {
  end_left_pins(level);
  __spillway_slots = thread.levels[level].slots;
  thread.top_level.store(level, std::memory_order_release);
}

}  // namespace

void leave_handlers_for(const Slot* slots) {
  Thread& thread = this_thread();
  take_saved_mask(thread);
  uint32_t level = thread.top_level.load(std::memory_order_relaxed);
  for (; level > 0 && thread.levels[level].slots != slots; --level) clear_level(thread, level);
  go_on_with_level(thread, level);
}

void leave_handlers(uint64_t stack_pointer, bool restores_mask) {
  Thread* thread = this_thread_if_registered();
  if (thread == nullptr) return;
  if (restores_mask) take_saved_mask(*thread);
  uint32_t level = thread->top_level.load(std::memory_order_relaxed);
  if (level == 0) return;
  stack_t alternate = {};
  sys::syscall(SYS_sigaltstack, nullptr, &alternate);
  const bool to_alternate = on_alternate_stack(stack_pointer, alternate);
  while (level > 0) {
    const uint64_t frame = thread->handler_frames[level];
    const bool handler_on_alternate = on_alternate_stack(frame, alternate);
    // A handler is left when the jump goes to an older frame of its stack, or off the alternate stack.
    const bool left = handler_on_alternate == to_alternate ? frame < stack_pointer : handler_on_alternate;
    if (!left) break;
    clear_level(*thread, level);
    --level;
  }
  go_on_with_level(*thread, level);
}

void freeze_actions() { actions_mutex.lock(); }
void thaw_actions() { actions_mutex.unlock(); }

void install_runtime_handler(int number) {
  KernelAction old = {};
  sys::syscall(SYS_rt_sigaction, number, nullptr, &old, sizeof old.mask);
  program_actions[number].handler.store(old.handler);
  program_actions[number].flags.store(old.flags);
  program_actions[number].mask.store(old.mask);
  runtime_owned[number] = true;
  KernelAction action = {enter_handler, SA_SIGINFO | SA_ONSTACK | SA_NODEFER | kFlagRestorer,
                         spillway_signal_return, 0};
  CHECK_EQ(set_kernel_action(number, &action), 0);
}

void pass_to_program(int number, siginfo_t* info, void* context) {
  ProgramAction& action = actions_here()[number];
  auto handler = action.handler.load(std::memory_order_acquire);
  const bool fault = info->si_code > 0;
  if (is_function(handler) && !(fault && (this_thread().blocked_faults & signal_bit(number)) != 0)) {
    // The runtime's registration blocks nothing: block what the program's would.
    sys::block_signals(action.mask.load(std::memory_order_relaxed) & ~kFaultSignals);
    run_program_handler(number, info, context);
    return;
  }
  if (!fault && reinterpret_cast<uint64_t>(handler) == reinterpret_cast<uint64_t>(SIG_IGN)) return;
  const long process = sys::syscall(SYS_getpid);
  // The first process of a container is not ended by what others send, and still needs the runtime's handler.
  if (!fault && process == 1) return;
  // The default action, and for a fault also "ignore": the kernel ends the process when the access is
  // repeated, or when the signal that was sent is sent again.
  KernelAction plain = {};
  set_kernel_action(number, &plain);
  if (!fault) sys::syscall(SYS_tgkill, process, sys::syscall(SYS_gettid), number);
}

int set_program_action(int number, const struct sigaction* action, struct sigaction* old) {
  if (!is_signal(number) || ((number == SIGKILL || number == SIGSTOP) && action != nullptr)) {
    errno = EINVAL;
    return -1;
  }
  InRuntime inside;
  sys::LockGuard guard(actions_mutex);
  ProgramAction& program = own_actions()[number];
  KernelAction kernel = {};
  if (!runtime_owned[number]) {
    sys::syscall(SYS_rt_sigaction, number, nullptr, &kernel, sizeof kernel.mask);
    // What was inherited over exec, or set behind our back, is the program's setting.
    if (kernel.handler != enter_handler) {
      program.handler.store(kernel.handler);
      program.flags.store(kernel.flags);
      program.mask.store(kernel.mask);
    }
  }
  if (old != nullptr) {
    *old = {};
    old->sa_sigaction = program.handler.load(std::memory_order_relaxed);
    old->sa_flags = static_cast<int>(program.flags.load(std::memory_order_relaxed) & ~kFlagRestorer);
    *reinterpret_cast<uint64_t*>(&old->sa_mask) = program.mask.load(std::memory_order_relaxed);
  }
  if (action == nullptr) return 0;
  program.flags.store(static_cast<unsigned long>(action->sa_flags), std::memory_order_relaxed);
  program.mask.store(mask_of(action->sa_mask), std::memory_order_relaxed);
  program.handler.store(action->sa_sigaction, std::memory_order_release);
  if (runtime_owned[number]) {
    // The kernel may have been given the default action above (pass_to_program): ours again.
    KernelAction ours = {enter_handler, SA_SIGINFO | SA_ONSTACK | SA_NODEFER | kFlagRestorer,
                         spillway_signal_return, 0};
    if (number == SIGSEGV || number == SIGBUS) set_kernel_action(number, &ours);
    return 0;
  }
  if (is_function(action->sa_sigaction)) {
    kernel.handler = enter_handler;
    // The runtime implements SA_RESETHAND itself: the kernel delivers a deferred signal twice.
    kernel.flags =
        (static_cast<unsigned long>(action->sa_flags) & ~static_cast<unsigned long>(SA_RESETHAND)) |
        SA_SIGINFO | kFlagRestorer;
  } else {
    kernel.handler = action->sa_sigaction;
    kernel.flags = static_cast<unsigned long>(action->sa_flags) | kFlagRestorer;
  }
  kernel.restorer = spillway_signal_return;
  kernel.mask = mask_of(action->sa_mask) & ~kFaultSignals;
  if (long result = set_kernel_action(number, &kernel); result != 0) {
    errno = static_cast<int>(-result);
    return -1;
  }
  return 0;
}

}  // namespace spill
