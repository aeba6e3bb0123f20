// Locking a mutex that may be spilled, for the condition variables (intercept_mutex.cc).
#pragma once
#include <pthread.h>

namespace spill {

int lock_mutex(pthread_mutex_t* mutex);
int unlock_mutex(pthread_mutex_t* mutex);

}  // namespace spill
