// Locking a mutex that may be spilled, for the condition variables (mutex.cc), and what all kinds of locks share.
#pragma once
#include <errno.h>
#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "spill/thread.h"

namespace spill {

// While the program has a single thread, this is the kernel's id of that thread. It is 0 before the runtime has started, in a
// child of fork, and forever once the program has created another thread. As long as it is set, mutexes do without locked
// instructions, which are most of their cost.
//
// New threads are noticed where they are created (pthread_create, thrd_create, clone, callback.cc). One that was created
// elsewhere is noticed when it locks its first mutex; the only thread may be changing a mutex at that moment:
//
//   1 the other thread sets a flag that the time alone ends, issues a barrier, and waits until no change is under way
//   2 the only thread sets a flag that a change is under way, and then reads whether the time alone ends
//
// At least one of the two sees the other's flag.
extern std::atomic<uint32_t> only_thread_id;

// The calling thread is the only one. REQUIRES: no other thread has run yet.
void begin_alone(uint32_t thread_id);
// To be called before the program creates a thread, or has the C library create one that calls the program. Any thread.
void note_threads();
// In a child of fork, no matter what was under way in the parent.
inline void note_fork() { only_thread_id.store(0, std::memory_order_relaxed); }
inline uint32_t only_thread() { return only_thread_id.load(std::memory_order_relaxed); }

// The kernel's id of the calling thread, by which locks know their owner.
inline uint32_t own_thread_id() { return this_thread().thread_id.load(std::memory_order_relaxed); }

// Pass on the result of a call that locks, tries to lock, or unlocks, and note it: a loop's task is not suspended while it has a lock (loop.h).
inline int noted_lock(int result) {
  if (result == 0 || result == EOWNERDEAD) begin_busy();
  return result;
}
inline int noted_unlock(int result) {
  if (result == 0) end_busy();
  return result;
}

int lock_mutex(pthread_mutex_t* mutex);
int unlock_mutex(pthread_mutex_t* mutex);

}  // namespace spill
