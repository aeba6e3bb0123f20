#include "spill/intercept/parking.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>

#include <new>

#include "base/mix.h"
#include "spill/thread.h"
#include "sys/kernel.h"
#include "sys/lock.h"

namespace spill {

// Waiters for objects whose addresses share a hash, in order of arrival.
struct alignas(64) Bucket {
  sys::Mutex mutex;
  std::atomic<uint32_t> count{0};
  Waiter* first = nullptr;
  Waiter** last = nullptr;  // where the next one goes; null: at `first`

  void push(Waiter& waiter) {
    waiter.next = nullptr;
    *(last != nullptr ? last : &first) = &waiter;
    last = &waiter.next;
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  // Removes the waiter that `link` points at.
  Waiter* take(Waiter** link) {
    Waiter* waiter = *link;
    *link = waiter->next;
    if (waiter->next == nullptr) last = link;
    count.store(count.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
    return waiter;
  }
};

namespace {

constexpr size_t kBucketCount = 256;
constinit Bucket buckets[kBucketCount];
constinit std::atomic<uint32_t> depth{0};

Bucket& bucket_of(const void* object) {
  return buckets[base::spread(reinterpret_cast<uint64_t>(object)) >> 56];
}

// Returns 0 or the kernel's error.
long sleep_on(std::atomic<uint32_t>& word, const Deadline& deadline) {
  long operation = FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG;
  if (deadline.clock == CLOCK_REALTIME) operation |= FUTEX_CLOCK_REALTIME;
  return sys::syscall(SYS_futex, &word, operation, 0, deadline.is_set ? &deadline.time : nullptr, nullptr,
                      FUTEX_BITSET_MATCH_ANY);
}

}  // namespace

// Steps 1 to 3 of park.
bool queue_waiter(Waiter& waiter, const void* object, uint32_t mask, bool (*must_wait)(void*),
                  void* context) {
  InRuntime inside;
  waiter.object = object;
  waiter.mask = mask;
  Bucket& bucket = bucket_of(object);
  sys::LockGuard guard(bucket.mutex);
  if (!must_wait(context)) return false;
  bucket.push(waiter);
  return true;
}

// Step 5. False if it was woken at the last moment.
bool leave_queue(Waiter& waiter) {
  InRuntime inside;
  Bucket& bucket = bucket_of(waiter.object);
  {
    sys::LockGuard guard(bucket.mutex);
    for (Waiter** link = &bucket.first; *link != nullptr; link = &(*link)->next) {
      if (*link != &waiter) continue;
      bucket.take(link);
      return true;
    }
  }
  // The waker may still be about to write the word.
  while (waiter.word.load(std::memory_order_acquire) == 0) sleep_on(waiter.word, Deadline::never());
  return false;
}

// Steps 4 and 5.
Parked sleep_waiter(Waiter& waiter, const Deadline& deadline, bool interruptible, bool cancellable) {
  clear_slots();
  Parked reason = Parked::kWoken;
  while (reason == Parked::kWoken && waiter.word.load(std::memory_order_acquire) == 0) {
    int type = PTHREAD_CANCEL_DEFERRED;
    if (cancellable) pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
    const long result = sleep_on(waiter.word, deadline);
    if (cancellable) pthread_setcanceltype(type, nullptr);
    // EINVAL: a time before the clock's first.
    if (result == -ETIMEDOUT || result == -EINVAL) reason = Parked::kTimedOut;
    if (result == -EINTR && interruptible) reason = Parked::kInterrupted;
  }
  if (reason == Parked::kWoken) return reason;
  return leave_queue(waiter) ? reason : Parked::kWoken;
}

void abandon_waiter(Waiter& waiter) {
  const void* object = waiter.object;
  if (!leave_queue(waiter)) unpark(object, 1);
}

uint32_t unpark(const void* object, uint32_t count, uint32_t mask) {
  InRuntime inside;
  Bucket& bucket = bucket_of(object);
  Waiter* taken = nullptr;
  Waiter** end = &taken;
  uint32_t woken = 0;
  {
    sys::LockGuard guard(bucket.mutex);
    for (Waiter** link = &bucket.first; *link != nullptr && woken < count;) {
      if ((*link)->object != object || ((*link)->mask & mask) == 0) {
        link = &(*link)->next;
        continue;
      }
      *end = bucket.take(link);
      end = &(*end)->next;
      ++woken;
    }
    *end = nullptr;
  }
  while (taken != nullptr) {
    Waiter* next = taken->next;
    std::atomic<uint32_t>* word = &taken->word;
    // Release: pairs with the acquire in sleep_waiter(). The waiter may be gone after this store; waking
    // an address that nobody waits on does nothing.
    word->store(1, std::memory_order_release);
    sys::futex_wake(*word, 1);
    taken = next;
  }
  return woken;
}

bool may_have_waiters(const void* object) {
  return bucket_of(object).count.load(std::memory_order_relaxed) != 0;
}

void forget_waiters() {
  for (Bucket& bucket : buckets) new (&bucket) Bucket();
  depth.fetch_add(1, std::memory_order_relaxed);
}

uint32_t fork_depth() { return depth.load(std::memory_order_relaxed); }

}  // namespace spill
