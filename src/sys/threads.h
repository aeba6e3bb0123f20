// Threads of the runtime itself.
//
// They are made by the C library's own pthread_create, which is found past whatever interposes it, so that thread-local storage works in them. They
// block every signal that a program can send, so that its handlers never run on them.
#pragma once
#include <limits.h>
#include <pthread.h>

#include <cstdint>

#include "base/error.h"

namespace sys {

// The last round of the destructors of a thread's keys in which the runtime may run. The thread sanitizer forgets
// the thread in the very last one: no code that it watches may run there.
#if __has_feature(thread_sanitizer)
inline constexpr unsigned kLastDestructorRound = PTHREAD_DESTRUCTOR_ITERATIONS - 1;
#else
inline constexpr unsigned kLastDestructorRound = PTHREAD_DESTRUCTOR_ITERATIONS;
#endif

// For the destructor of a key whose value counts the rounds, 1 at first: is this the last round? If not, sets the key for the next one.
inline bool is_last_round(pthread_key_t key, void* value) {
  const auto round = reinterpret_cast<uintptr_t>(value);
  if (round >= kLastDestructorRound) return true;
  pthread_setspecific(key, reinterpret_cast<void*>(round + 1));
  return false;
}

// CPUs by number, a bit for each. Numbers may have gaps: CPUs that are offline, or not for this process.
inline constexpr uint32_t kMaxCpus = 8192;
inline constexpr uint32_t kNoCpu = ~uint32_t{0};
struct Cpus {
  uint64_t words[kMaxCpus / 64] = {};
};
// Those that the calling thread may use; none, if the system does not tell.
Cpus own_cpus();
// How many CPUs these are, at least 1.
uint32_t cpu_count();
// The number of the index-th CPU of these, beginning again after the last; kNoCpu, if there are none.
uint32_t cpu_at(const Cpus& cpus, uint32_t index);
// From now on the calling thread runs only on these. False: there are none, or the system refuses.
bool stay_on(const Cpus& cpus);

// The kernel's number of the calling thread. Cost: a system call.
int thread_id();
// Has the thread with this number ended? False also if another thread of the process has got the number since.
bool has_ended(int thread_id);

struct Thread {
  unsigned long handle = 0;  // a pthread_t
};

// Runs entry(argument) in a new thread called `name` (at most 15 bytes are kept). REQUIRES: no lock is held that the
// program's heap could need, since pthread_create takes a little memory from it. Errors: EAGAIN, ENOSYS (no C library
// found).
base::Expected<Thread> start_thread(void (*entry)(void* argument), void* argument, const char* name);

// Waits until the thread has returned. Exactly once for each started thread, not from a child of fork.
void join_thread(Thread thread);

// How many threads were started that have not returned yet. A child of fork has none of them, and calls forget_started_threads().
uint32_t started_thread_count();
void forget_started_threads();

}  // namespace sys
