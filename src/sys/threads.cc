#include "sys/threads.h"

#include <errno.h>
#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>

#include "base/bits.h"
#include "sys/c_library.h"
#include "sys/kernel.h"
#include "sys/lock.h"
#include "sys/signals.h"

namespace sys {
namespace {

using CreateFunction = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
using JoinFunction = int (*)(pthread_t, void**);

// What start_thread hands to the new thread; it lies on the starter's stack, and is valid until `taken` is set.
struct Start {
  void (*entry)(void*);
  void* argument;
  const char* name;
  std::atomic<uint32_t> taken{0};
};

constinit std::atomic<uint32_t> started_count{0};

uint32_t count_of(const Cpus& cpus) {
  uint32_t count = 0;
  for (const uint64_t word : cpus.words) count += static_cast<uint32_t>(std::popcount(word));
  return count;
}

void* run_thread(void* start_argument) {
  auto* start = static_cast<Start*>(start_argument);
  auto* entry = start->entry;
  void* argument = start->argument;
  syscall(SYS_prctl, PR_SET_NAME, start->name, 0, 0, 0);
  start->taken.store(1, std::memory_order_release);  // pairs with the load in start_thread; `start` dies here
  futex_wake(start->taken, 1);
  entry(argument);
  started_count.fetch_sub(1, std::memory_order_relaxed);
  return nullptr;
}

}  // namespace

int thread_id() { return static_cast<int>(syscall(SYS_gettid)); }

bool has_ended(int thread_id) { return syscall(SYS_tgkill, syscall(SYS_getpid), thread_id, 0) == -ESRCH; }

Cpus own_cpus() {
  Cpus cpus;
  if (failed(syscall(SYS_sched_getaffinity, 0, sizeof cpus.words, cpus.words))) return {};
  return cpus;
}

uint32_t cpu_count() { return std::max(count_of(own_cpus()), 1u); }

uint32_t cpu_at(const Cpus& cpus, uint32_t index) {
  const uint32_t count = count_of(cpus);
  if (count == 0) return kNoCpu;
  uint32_t left = index % count, cpu = 0;
  while (!base::has_bit(cpus.words, cpu) || left-- > 0) ++cpu;
  return cpu;
}

bool stay_on(const Cpus& cpus) {
  return !failed(syscall(SYS_sched_setaffinity, 0, sizeof cpus.words, cpus.words));
}

base::Expected<Thread> start_thread(void (*entry)(void* argument), void* argument, const char* name) {
  // glibc 2.34 moved it into libc proper; before that, it is found under whatever version there is.
  const auto create = reinterpret_cast<CreateFunction>(find_c_function("pthread_create", "GLIBC_2.34"));
  if (create == nullptr) return base::failure(ENOSYS, "cannot start a thread: pthread_create was not found");

  Start start = {.entry = entry, .argument = argument, .name = name};
  // The new thread's mask, whatever the starter blocks. If that is the C library's signals, too, setuid() would wait for the new thread for ever.
  const uint64_t before = set_signal_mask(~kLibrarySignals);
  pthread_t handle;
  started_count.fetch_add(1, std::memory_order_relaxed);
  int error = create(&handle, nullptr, run_thread, &start);
  set_signal_mask(before);
  if (error != 0) {
    started_count.fetch_sub(1, std::memory_order_relaxed);
    return base::failure(error, "cannot start thread ", name, ": ", base::error_name(error),
                         "; raise ulimit -u");
  }
  while (start.taken.load(std::memory_order_acquire) == 0) futex_wait(start.taken, 0);
  return Thread{handle};
}

void join_thread(Thread thread) {
  const auto join = reinterpret_cast<JoinFunction>(find_c_function("pthread_join", "GLIBC_2.34"));
  if (join != nullptr) join(thread.handle, nullptr);
}

uint32_t started_thread_count() { return started_count.load(std::memory_order_relaxed); }
void forget_started_threads() { started_count.store(0, std::memory_order_relaxed); }

}  // namespace sys
