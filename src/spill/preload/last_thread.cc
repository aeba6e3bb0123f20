#include "spill/preload/last_thread.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdint>

#include "sys/kernel.h"
#include "sys/threads.h"

namespace spill::preload {
namespace {

constexpr uint32_t kMainLeft = 1, kHasThreads = 2;
constinit std::atomic<uint32_t> state{0};
constinit pthread_key_t key = 0;
constinit bool has_key = false;

// Main's thread stays in the kernel's count until the process ends.
bool is_over() {
  constexpr uint64_t kFolderLinks = 2;  // and one for each thread
  struct stat facts;
  return !sys::failed(sys::syscall(SYS_newfstatat, AT_FDCWD, "/proc/self/task", &facts, 0)) &&
         facts.st_nlink == kFolderLinks + sys::started_thread_count() + 1;
}

void wait_for_end(void*) {
  constexpr uint64_t kPauseNs = 20'000'000;
  do sys::nap(kPauseNs);
  while (!is_over());
  exit(0);
}

// Whoever notes the second of two things begins.
void note(uint32_t what) {
  const uint32_t before = state.fetch_or(what, std::memory_order_acq_rel);
  if ((before & what) == 0 && (before | what) == (kMainLeft | kHasThreads))
    static_cast<void>(sys::start_thread(wait_for_end, nullptr, "spillway end").has_value());
}

// The value is the round of destructors: it is set again up to the last one.
void leave_main(void* value) {
  const auto round = reinterpret_cast<uintptr_t>(value);
  if (round < sys::kLastDestructorRound)
    pthread_setspecific(key, reinterpret_cast<void*>(round + 1));
  else
    note(kMainLeft);
}

void mark_thread() {
  if (has_key) pthread_setspecific(key, reinterpret_cast<void*>(1));
}

}  // namespace

void watch_main_thread() {
  has_key = pthread_key_create(&key, leave_main) == 0;
  mark_thread();
}

void note_own_threads() { note(kHasThreads); }

void become_main_thread() {
  state.store(0, std::memory_order_relaxed);
  sys::forget_started_threads();
  mark_thread();
}

}  // namespace spill::preload
