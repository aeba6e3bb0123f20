#include "spill/last_thread.h"

#include <pthread.h>
#include <stdlib.h>

#include <atomic>
#include <cstdint>

#include "base/check.h"
#include "spill/intercept/mutex.h"
#include "spill/thread.h"
#include "sys/threads.h"

namespace spill {
namespace {

constinit std::atomic<uint32_t> counted{0};
constinit std::atomic<bool> has_endless_thread{false};
constinit pthread_key_t key = 0;

void leave_thread(void* round) {
  if (!sys::is_last_round(key, round)) return;
  this_thread_returned();
  if (counted.fetch_sub(1, std::memory_order_acq_rel) == 1) exit(0);
}

}  // namespace

void count_first_thread() {
  CHECK_EQ(pthread_key_create(&key, leave_thread), 0);
  if (counted.fetch_add(1, std::memory_order_relaxed) == 0)
    begin_alone(this_thread().thread_id.load(std::memory_order_relaxed));
  enter_counted_thread();
}

void count_thread() {
  note_threads();
  counted.fetch_add(1, std::memory_order_relaxed);
}

void uncount_thread() { counted.fetch_sub(1, std::memory_order_relaxed); }

void enter_counted_thread() { pthread_setspecific(key, reinterpret_cast<void*>(1)); }

void count_endless_thread() {
  if (!has_endless_thread.exchange(true, std::memory_order_relaxed))
    counted.fetch_add(1, std::memory_order_relaxed);
}

void count_only_this_thread() {
  note_fork();
  has_endless_thread.store(false, std::memory_order_relaxed);
  counted.store(1, std::memory_order_relaxed);
}

// Relaxed: whoever started another thread has counted it.
bool is_only_thread() { return counted.load(std::memory_order_relaxed) <= 1; }

}  // namespace spill
