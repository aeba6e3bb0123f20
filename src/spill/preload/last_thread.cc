#include "spill/preload/last_thread.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <string_view>

#include "base/text.h"
#include "sys/files.h"
#include "sys/kernel.h"
#include "sys/nap.h"
#include "sys/threads.h"

namespace spill::preload {
namespace {

constexpr uint32_t kMainLeft = 1, kHasThreads = 2;
constinit std::atomic<uint32_t> state{0};
constinit pthread_key_t key = 0;
constinit bool has_key = false;

// Is this one of the kernel's threads that serve io_uring?
bool is_io_worker(const char* thread) {
  constexpr uint64_t kIoWorker = 0x10;   // PF_IO_WORKER
  constexpr int kFieldsBeforeFlags = 6;  // after the name, which may contain anything
  base::Text<64> path;
  path << "/proc/self/task/" << thread << "/stat";
  char text[512];
  const long bytes = sys::read_small_file(path.c_str(), text);
  std::string_view facts(text, bytes > 0 ? static_cast<size_t>(bytes) : 0);
  facts.remove_prefix(std::min(facts.rfind(')') + 2, facts.size()));
  for (int i = 0; i < kFieldsBeforeFlags; ++i)
    facts.remove_prefix(std::min(facts.find(' '), facts.size() - 1) + 1);
  uint64_t flags = 0;
  std::from_chars(facts.data(), facts.data() + facts.size(), flags);
  return (flags & kIoWorker) != 0;
}

// How many threads the process has, without io_uring's workers; ~0 if it cannot be found out.
uint32_t count_threads() {
  const long folder =
      sys::syscall(SYS_openat, AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (sys::failed(folder)) return ~0u;
  uint32_t count = 0;
  alignas(dirent64) char entries[4096];
  long bytes = 0;
  while ((bytes = sys::syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0) {
    for (long at = 0; at < bytes;) {
      const auto* const entry = reinterpret_cast<const dirent64*>(entries + at);
      at += entry->d_reclen;
      if (entry->d_name[0] != '.' && !is_io_worker(entry->d_name)) ++count;
    }
  }
  sys::syscall(SYS_close, folder);
  return sys::failed(bytes) ? ~0u : count;
}

// Main's thread is counted until the process ends.
bool is_over() { return count_threads() == sys::started_thread_count() + 1; }

void wait_for_end(void*) {
  constexpr uint64_t kPauseNs = 20'000'000;
  do sys::nap(kPauseNs);
  while (!is_over());
  exit(0);
}

// Notes one of two things, and starts the thread that waits for the end when both have been noted.
void note(uint32_t what) {
  const uint32_t before = state.fetch_or(what, std::memory_order_acq_rel);
  if ((before & what) == 0 && (before | what) == (kMainLeft | kHasThreads))
    static_cast<void>(sys::start_thread(wait_for_end, nullptr, "spillway end").has_value());
}

void leave_main(void* round) {
  if (sys::is_last_round(key, round)) note(kMainLeft);
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
