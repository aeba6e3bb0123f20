#include "spill/fork.h"

#include <errno.h>
#include <pthread.h>

#include <atomic>

#include "base/check.h"
#include "base/log.h"
#include "spill/abi.h"
#include "spill/address_space.h"
#include "spill/budget.h"
#include "spill/file_maps.h"
#include "spill/intercept/aio.h"
#include "spill/intercept/cancel.h"
#include "spill/intercept/parking.h"
#include "spill/intercept/process.h"
#include "spill/last_thread.h"
#include "spill/loop.h"
#include "spill/mapped_pages.h"
#include "spill/pins.h"
#include "spill/runtime.h"
#include "spill/satc.h"
#include "spill/shared_maps.h"
#include "spill/signals.h"
#include "spill/standing_pins.h"
#include "sys/barrier.h"
#include "sys/files.h"
#include "sys/kernel.h"
#include "sys/memory.h"
#include "sys/nap.h"
#include "sys/signals.h"

// The C library's lock of the list of its streams, which is recursive.
extern "C" void _IO_list_lock();
extern "C" void _IO_list_unlock();
extern "C" void _IO_list_resetlock();

namespace spill {
namespace {

constexpr uint64_t kPollNs = 500'000;

// For the fork under way: set by the child when step 4 is done. Null: there is no step 4.
constinit std::atomic<uint32_t>* child_is_ready = nullptr;
// The child cannot have what its parent has.
constinit bool is_hopeless = false;
// Of the forking thread.
constinit uint64_t signal_mask = 0;
// Whose memory this is; 0 before the runtime starts.
constinit std::atomic<long> process{0};

void restore_signals(bool is_child) {
  thaw_standing_pins();
  const uint64_t mask = signal_mask;  // another fork may begin as soon as the last lock is let go
  thaw_mappings();
  if (is_child) {
    own_shared_maps();
    own_file_maps();
  } else {
    thaw_shared_maps();
    thaw_file_maps();
  }
  thaw_budget();
  sys::set_signal_mask(mask);
}

// A thread whose stack the program gave (pthread_attr_setstack) has its thread-local data there too: parent and child
// would both store to it before the child has its own.
bool shares_thread_data() { return in_range(__builtin_thread_pointer()); }

bool is_started() { return runtime.started.load(std::memory_order_relaxed); }

}  // namespace

// Step 1.
void before_fork() {
  if (!is_started()) return;
  if (in_range(__builtin_frame_address(0)) || shares_thread_data())
    end_process(base::Error::of(ENOTSUP,
                                "fork by the C library itself (daemon, forkpty) on a stack in spilled "
                                "memory: give that stack memory from mmap with MAP_STACK"),
                kFatalStatus);
  if (satc_is_used())
    end_process(base::Error::of(ENOTSUP,
                                "fork by the C library itself (daemon, forkpty) in a program of "
                                "-fspill-translation=satc: compile it without"),
                kFatalStatus);
  // A handler might run on a stack that the two share for a moment.
  const uint64_t mask = sys::set_signal_mask(~kFaultSignals);
  freeze_budget();
  freeze_file_maps();
  freeze_shared_maps();
  freeze_mappings();
  freeze_standing_pins();
  signal_mask = mask;
  // Its holder gives back what dead threads had, and may wait in the cache for others' loads to end.
  freeze_thread_records();
  const bool watched = runtime.cache->before_fork({is_kept, pins_of_this_thread});
  freeze_addresses();
  freeze_actions();
  is_hopeless = false;
  child_is_ready = nullptr;
  if (!keeps_pages()) return;
  auto page = sys::map_shared_anonymous(base::kOsPageBytes, "a word that parent and child share");
  // If nobody watches the child, the parent would never know that it has died.
  is_hopeless = !watched || !page;
  if (page) child_is_ready = reinterpret_cast<std::atomic<uint32_t>*>(*page);
}

// Steps 2 and 4. Also called when fork failed: then there is no child to wait for.
void after_fork_in_parent() {
  if (!is_started()) return;
  thaw_actions();
  thaw_addresses();
  runtime.cache->after_fork_in_parent();
  thaw_thread_records();
  if (child_is_ready != nullptr) {
    while (!is_hopeless && child_is_ready->load(std::memory_order_acquire) == 0 &&
           !runtime.cache->last_child_is_over())
      sys::nap(kPollNs);
    sys::unmap(child_is_ready, base::kOsPageBytes);
  }
  restore_signals(false);
}

// Steps 3 and 4.
void after_fork_in_child() {
  if (!is_started()) return;
  runtime.is_fork_child.store(true, std::memory_order_relaxed);
  process.store(sys::syscall(SYS_getpid), std::memory_order_relaxed);
  sys::leave_error_output();  // it may be a daemon
  leave_loop_in_child();
  keep_only_this_thread();
  thaw_actions();
  thaw_thread_records();
  forget_waiters();
  forget_cancel_lock();
  forget_requests();
  forget_copies();
  count_only_this_thread();
  static_cast<void>(sys::register_barrier().has_value());  // it worked for the parent
  if (!runtime.cache->after_fork_in_child() || is_hopeless)
    end_fork_child("the system has no room for its frames; raise vm.max_map_count, ulimit -n and ulimit -f");
  own_kept_pages();
  pin_again_after_fork();
  // Release: pairs with the parent's acquire; its stacks may change from here on.
  if (child_is_ready != nullptr) child_is_ready->store(1, std::memory_order_release);
  thaw_addresses();
  restore_signals(true);
}

long fork_on_plain_stack(long (*make)(void* context), void* context) {
  // A child would need what all threads have pinned, but it has none of those threads.
  if (satc_is_used()) {
    errno = ENOTSUP;
    return -1;
  }
  if (!is_started() || (!keeps_pages() && !in_range(__builtin_frame_address(0)))) return make(context);
  if (shares_thread_data()) {
    errno = ENOTSUP;
    return -1;
  }
  constexpr uint64_t kStackBytes = uint64_t{1} << 20;
  auto stack = sys::map_anonymous(kStackBytes, "a stack to fork on");
  if (!stack) {
    errno = ENOMEM;
    return -1;
  }
  long result;
  asm volatile(
      "mov %%rsp, %%rbx\n\t"
      "mov %[top], %%rsp\n\t"
      "call *%[make]\n\t"
      "mov %%rbx, %%rsp"
      : "=a"(result), "+D"(context)
      : [top] "r"(*stack + kStackBytes), [make] "r"(make)
      : "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3",
        "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
  sys::unmap(*stack, kStackBytes);
  return result;
}

void watch_forks() {
  process.store(sys::syscall(SYS_getpid), std::memory_order_relaxed);
  CHECK_EQ(pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child), 0);
}

// In a child the C library has reset the lock before handlers run, if there was more than one thread.
void lock_streams_before_fork() {
  CHECK_EQ(pthread_atfork(_IO_list_lock, _IO_list_unlock, _IO_list_resetlock), 0);
}

void start_background_in_children() {
  // Without it, threads that need frames evict pages themselves, and nothing is cleaned.
  const auto start = [] {
    if (is_started()) static_cast<void>(start_background().has_value());
  };
  CHECK_EQ(pthread_atfork(nullptr, nullptr, start), 0);
}

bool is_sharing_child() {
  const long owner = process.load(std::memory_order_relaxed);
  return owner != 0 && owner != sys::syscall(SYS_getpid);
}

void end_fork_child(const char* why) {
  base::log({.name = "failed", .level = base::LogLevel::kError, .fields = {{"status", kFatalStatus}}},
            "a copy of this process cannot have its parent's memory: ", why);
  sys::syscall(SYS_exit_group, kFatalStatus);
  __builtin_unreachable();
}

}  // namespace spill
