// Locking a mutex that may be spilled, for the condition variables (mutex.cc), and what all kinds of locks share.
#pragma once
#include <errno.h>
#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "spill/thread.h"

namespace spill {

// The kernel's id of the program's thread as long as it is the only one that runs the program's code; 0
// before the runtime has started, for good once the program has made another, and in a child of fork.
// Mutexes do without locked instructions while it is set, which are most of their cost. Threads are seen
// where they are made (pthread_create, thrd_create, clone, callback.cc); one that got past that is
// seen when it comes for its first mutex:
//
//   1 the other thread says that the time alone ends, issues a barrier, and waits until nothing is under way
//   2 the only thread says that a change is under way, and then asks whether the time alone ends
//
// One of the two sees what the other said.
extern std::atomic<uint32_t> only_thread_id;

// The calling thread is the only one. REQUIRES: no other has come yet.
void begin_alone(uint32_t thread_id);
// Before the program makes a thread, or has the C library make one that calls it. Any thread.
void note_threads();
// In a child of fork, whatever was under way in the parent.
inline void note_fork() { only_thread_id.store(0, std::memory_order_relaxed); }
inline uint32_t only_thread() { return only_thread_id.load(std::memory_order_relaxed); }

// The kernel's id of the calling thread, by which locks know their owner.
inline uint32_t own_thread_id() { return this_thread().thread_id.load(std::memory_order_relaxed); }

// The results of what locks, tries to or unlocks, noted: with a lock a task of a loop is not suspended (loop.h).
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
