// Locking a mutex that may be spilled, for the condition variables (intercept_mutex.cc).
#pragma once
#include <pthread.h>

#include <atomic>
#include <cstdint>

namespace spill {

// The kernel's id of the program's thread as long as it is the only one that runs the program's code; 0
// before the runtime has started, for good once the program has made another, and in a child of fork.
// Mutexes do without locked instructions while it is set, which are most of their cost. Threads are seen where
// they are made: pthread_create, thrd_create, clone, and what calls the program in threads of its own
// (intercept_callback.cc), whoever calls it.
extern std::atomic<uint32_t> only_thread_id;

// Before the program makes a thread, or has the C library make one that calls it.
inline void note_threads() { only_thread_id.store(0, std::memory_order_relaxed); }
// Relaxed: only this thread itself has seen another value.
inline uint32_t only_thread() { return only_thread_id.load(std::memory_order_relaxed); }

int lock_mutex(pthread_mutex_t* mutex);
int unlock_mutex(pthread_mutex_t* mutex);

}  // namespace spill
