// Mutexes. One in spilled memory keeps the C library's layout, so that its static initialisers work:
//
//   offset 0  lock    0 free, 1 locked, 2 locked and perhaps waited for (parking.h)
//          4  count   of the owner's locks beyond the first (recursive)
//          8  owner   kernel thread id (recursive, error-checking)
//         16  kind    0 normal, 1 recursive, 2 error-checking, 3 adaptive = normal
//
// Robust, priority-inheriting and priority-protecting ones are refused at initialisation. Process-shared ones are treated like all
// others, here and in the other files: spilled memory is private, so nobody shares it.
// Uncontended, locking costs a hold and a compare-and-swap.
#include "spill/intercept/mutex.h"

#include <errno.h>
#include <threads.h>

#include "spill/intercept/parking.h"
#include "spill/next.h"
#include "spill/thread.h"
#include "sys/barrier.h"
#include "sys/kernel.h"

namespace spill {

constinit std::atomic<uint32_t> only_thread_id{0};

namespace {

constinit std::atomic<void*> only_thread_pointer{nullptr};  // its thread pointer
constinit std::atomic<bool> alone_ends{false};
constinit std::atomic<bool> changes_alone{false};

constexpr size_t kLock = 0, kCount = 4, kOwner = 8, kKind = 16;
constexpr size_t kWordsBytes = 20;
constexpr uint32_t kFree = 0, kLocked = 1, kContended = 2;
constexpr uint32_t kKindMask = 3;
constexpr uint32_t kRecursive = 1, kErrorChecking = 2;
constexpr int kSpins = 40;

// Checks a recursive or error-checking mutex before it is locked: 0 to go on, else the result + 1.
int lock_again(const Words& words, uint32_t kind, bool tries) {
  // Only the owner itself can find its own id there.
  if (words[kOwner].load(std::memory_order_relaxed) != own_thread_id()) return 0;
  if (kind == kErrorChecking) return (tries ? EBUSY : EDEADLK) + 1;
  const uint32_t count = words[kCount].load(std::memory_order_relaxed);
  if (count == ~uint32_t{0}) return EAGAIN + 1;
  words[kCount].store(count + 1, std::memory_order_relaxed);
  return 1;
}

void set_owner(const Words& words, uint32_t kind) {
  if (kind == kRecursive || kind == kErrorChecking)
    words[kOwner].store(own_thread_id(), std::memory_order_relaxed);
}

bool take_if_free(const Words& words) {
  uint32_t expected = kFree;
  // Acquire: pairs with the release in unlock_spilled().
  return words[kLock].compare_exchange_strong(expected, kLocked, std::memory_order_acquire);
}

// Takes the lock as one that others may wait for, since this thread did.
bool take_contended(pthread_mutex_t* mutex) {
  const Words words(mutex, kWordsBytes);
  if (words[kLock].exchange(kContended, std::memory_order_acquire) != kFree) return false;
  set_owner(words, words[kKind].load(std::memory_order_relaxed) & kKindMask);
  return true;
}

__attribute__((noinline)) int lock_slowly(pthread_mutex_t* mutex, const Deadline& deadline) {
  while (!take_contended(mutex)) {
    const Parked parked = park(
        mutex,
        [mutex] { return Words(mutex, kWordsBytes)[kLock].load(std::memory_order_relaxed) == kContended; },
        deadline);
    if (parked == Parked::kTimedOut) return ETIMEDOUT;
  }
  return 0;
}

enum class Patience { kNone, kSome };

int lock_spilled(pthread_mutex_t* mutex, Patience patience, const Deadline& deadline) {
  {
    const Words words(mutex, kWordsBytes);
    const uint32_t kind = words[kKind].load(std::memory_order_relaxed) & kKindMask;
    if (kind == kRecursive || kind == kErrorChecking)
      if (const int answer = lock_again(words, kind, patience == Patience::kNone); answer != 0)
        return answer - 1;
    for (int i = 0; i < kSpins; ++i) {
      if (take_if_free(words)) {
        set_owner(words, kind);
        return 0;
      }
      if (patience == Patience::kNone) return EBUSY;
      if (words[kLock].load(std::memory_order_relaxed) == kContended) break;
      __builtin_ia32_pause();
    }
  }
  if (!deadline.is_valid()) return EINVAL;
  return lock_slowly(mutex, deadline);
}

int unlock_spilled(pthread_mutex_t* mutex) {
  uint32_t before;
  {
    const Words words(mutex, kWordsBytes);
    const uint32_t kind = words[kKind].load(std::memory_order_relaxed) & kKindMask;
    if (kind == kRecursive || kind == kErrorChecking) {
      if (words[kOwner].load(std::memory_order_relaxed) != own_thread_id()) return EPERM;
      if (const uint32_t count = words[kCount].load(std::memory_order_relaxed); count > 0) {
        words[kCount].store(count - 1, std::memory_order_relaxed);
        return 0;
      }
      words[kOwner].store(0, std::memory_order_relaxed);
    }
    before = words[kLock].exchange(kFree, std::memory_order_release);
  }
  if (before == kContended) unpark(mutex, 1);
  return 0;
}

// A mutex's words as changed by the program's only thread, with which nobody competes. Plain mutexes are the C
// library's, so the code here writes what the library would have written. Both functions do nothing and return
// false if the general way is needed. A handler that interrupts them leaves the mutex as it found it; it sees the
// lock taken first and released last.
struct AloneWords {
  uint32_t lock, count, owner, users, kind;
};
static_assert(offsetof(pthread_mutex_t, __data.__lock) == offsetof(AloneWords, lock) &&
              kLock == offsetof(AloneWords, lock));
static_assert(offsetof(pthread_mutex_t, __data.__count) == offsetof(AloneWords, count) &&
              kCount == offsetof(AloneWords, count));
static_assert(offsetof(pthread_mutex_t, __data.__owner) == offsetof(AloneWords, owner) &&
              kOwner == offsetof(AloneWords, owner));
static_assert(offsetof(pthread_mutex_t, __data.__nusers) == offsetof(AloneWords, users));
static_assert(offsetof(pthread_mutex_t, __data.__kind) == offsetof(AloneWords, kind) &&
              kKind == offsetof(AloneWords, kind));

// How plain and spilled mutexes differ: plain ones count users, and the first lock of a recursive plain one counts.
constexpr uint32_t kPlainFirst = 1, kSpilledFirst = 0;

bool lock_words_alone(AloneWords& words, uint32_t me, uint32_t first) {
  if (words.kind > kRecursive) return false;
  if (words.lock != kFree) {
    if (words.kind != kRecursive || words.owner != me || words.count == ~uint32_t{0}) return false;
    ++words.count;
    return true;
  }
  words.lock = kLocked;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  words.owner = me;
  words.users += first;
  if (words.kind == kRecursive) words.count = first;
  return true;
}

bool unlock_words_alone(AloneWords& words, uint32_t me, uint32_t first) {
  if (words.kind > kRecursive || words.lock != kLocked || words.owner != me) return false;
  if (words.kind == kRecursive) {
    if (words.count != first) {
      --words.count;
      return true;
    }
    words.count = 0;
  }
  words.users -= first;
  words.owner = 0;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  words.lock = kFree;
  return true;
}

bool is_only_thread() {
  return only_thread_pointer.load(std::memory_order_relaxed) == __builtin_thread_pointer();
}

template <class F>
bool change_alone(pthread_mutex_t* mutex, F&& change) {
  const uint32_t me = only_thread();
  if (me == 0) return false;
  if (!is_only_thread()) {
    note_threads();
    return false;
  }
  // A handler that interrupts a change leaves it under way.
  const bool outer = changes_alone.load(std::memory_order_relaxed);
  changes_alone.store(true, std::memory_order_relaxed);
  // note_threads' barrier pairs with the order of this store and the load.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  bool done = false;
  if (!alone_ends.load(std::memory_order_relaxed)) {
    if (is_c_library_object(mutex)) {
      done = change(*reinterpret_cast<AloneWords*>(mutex), me, kPlainFirst);
    } else if (is_in_page(mutex, sizeof(AloneWords))) {
      done = change(*reinterpret_cast<AloneWords*>(hold(mutex, kHoldA)), me, kSpilledFirst);
      release(kHoldA);
    }
  }
  // Release: whoever waits in note_threads sees the mutex as it is left here.
  changes_alone.store(outer, std::memory_order_release);
  return done;
}

bool is_supported(const pthread_mutexattr_t* attributes) {
  int robust = 0, protocol = 0;
  pthread_mutexattr_getrobust(attributes, &robust);
  pthread_mutexattr_getprotocol(attributes, &protocol);
  return robust == PTHREAD_MUTEX_STALLED && protocol == PTHREAD_PRIO_NONE;
}

}  // namespace

void begin_alone(uint32_t thread_id) {
  alone_ends.store(false, std::memory_order_relaxed);
  only_thread_pointer.store(__builtin_thread_pointer(), std::memory_order_relaxed);
  only_thread_id.store(thread_id, std::memory_order_release);
}

void note_threads() {
  if (only_thread() == 0) return;
  if (!is_only_thread()) {
    alone_ends.store(true, std::memory_order_relaxed);
    sys::process_barrier();
    while (changes_alone.load(std::memory_order_acquire)) sys::syscall(SYS_sched_yield);
  }
  only_thread_id.store(0, std::memory_order_relaxed);
}

namespace {

int lock_any(pthread_mutex_t* mutex) {
  if (change_alone(mutex, lock_words_alone)) return 0;
  if (is_c_library_object(mutex))
    return lock_or_wait(LIBC_VERSION(pthread_mutex_trylock, "GLIBC_2.34"),
                        LIBC_VERSION(pthread_mutex_lock, "GLIBC_2.2.5"), mutex);
  return lock_spilled(mutex, Patience::kSome, Deadline::never());
}

int unlock_any(pthread_mutex_t* mutex) {
  if (change_alone(mutex, unlock_words_alone)) return 0;
  if (is_c_library_object(mutex)) return LIBC_VERSION(pthread_mutex_unlock, "GLIBC_2.2.5")(mutex);
  return unlock_spilled(mutex);
}

int try_any(pthread_mutex_t* mutex) {
  if (is_c_library_object(mutex)) return LIBC_VERSION(pthread_mutex_trylock, "GLIBC_2.34")(mutex);
  return lock_spilled(mutex, Patience::kNone, Deadline::never());
}

int timed_any(pthread_mutex_t* mutex, const timespec* time) {
  if (is_c_library_object(mutex)) {
    const PlainIn<timespec> plain_time(time);
    clear_slots();
    return LIBC_VERSION(pthread_mutex_timedlock, "GLIBC_2.34")(mutex, plain_time);
  }
  return lock_spilled(mutex, Patience::kSome, Deadline::at(CLOCK_REALTIME, load(time)));
}

int clocked_any(pthread_mutex_t* mutex, clockid_t clock, const timespec* time) {
  if (is_c_library_object(mutex)) {
    const PlainIn<timespec> plain_time(time);
    clear_slots();
    return LIBC_VERSION(pthread_mutex_clocklock, "GLIBC_2.34")(mutex, clock, plain_time);
  }
  return lock_spilled(mutex, Patience::kSome, Deadline::at(clock, load(time)));
}

}  // namespace

int lock_mutex(pthread_mutex_t* mutex) { return noted_lock(lock_any(mutex)); }
int unlock_mutex(pthread_mutex_t* mutex) { return noted_unlock(unlock_any(mutex)); }

SPILL_EXPORT int __spill_pthread_mutex_lock(pthread_mutex_t* mutex) { return lock_mutex(mutex); }
SPILL_EXPORT int __spill_pthread_mutex_unlock(pthread_mutex_t* mutex) { return unlock_mutex(mutex); }
SPILL_EXPORT int __spill_pthread_mutex_trylock(pthread_mutex_t* mutex) { return noted_lock(try_any(mutex)); }
SPILL_EXPORT int __spill_pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* time) {
  return noted_lock(timed_any(mutex, time));
}
SPILL_EXPORT int __spill_pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock,
                                                 const timespec* time) {
  return noted_lock(clocked_any(mutex, clock, time));
}

SPILL_EXPORT int __spill_pthread_mutex_init(pthread_mutex_t* mutex, const pthread_mutexattr_t* attributes) {
  const PlainIn<pthread_mutexattr_t> plain_attributes(attributes);
  const auto init = LIBC_VERSION(pthread_mutex_init, "GLIBC_2.2.5");
  if (is_c_library_object(mutex)) return init(mutex, plain_attributes);
  if (attributes != nullptr && !is_supported(plain_attributes)) return ENOTSUP;
  pthread_mutex_t fresh;
  const int result = init(&fresh, plain_attributes);
  if (result == 0) copy(mutex, &fresh, sizeof fresh);
  return result;
}

SPILL_EXPORT int __spill_pthread_mutex_destroy(pthread_mutex_t* mutex) {
  if (is_c_library_object(mutex)) return LIBC_VERSION(pthread_mutex_destroy, "GLIBC_2.2.5")(mutex);
  return Words(mutex, kWordsBytes)[kLock].load(std::memory_order_relaxed) == kFree ? 0 : EBUSY;
}

// The C standard's names: the same objects, other results.
SPILL_EXPORT int __spill_mtx_init(mtx_t* mutex, int type) {
  PlainObject<mtx_t> plain_mutex(mutex);
  return mtx_init(plain_mutex, type);
}
SPILL_EXPORT int __spill_mtx_lock(mtx_t* mutex) {
  return lock_mutex(reinterpret_cast<pthread_mutex_t*>(mutex)) == 0 ? thrd_success : thrd_error;
}
SPILL_EXPORT int __spill_mtx_trylock(mtx_t* mutex) {
  const int result = __spill_pthread_mutex_trylock(reinterpret_cast<pthread_mutex_t*>(mutex));
  return result == 0 ? thrd_success : result == EBUSY ? thrd_busy : thrd_error;
}
SPILL_EXPORT int __spill_mtx_timedlock(mtx_t* mutex, const timespec* time) {
  const int result = __spill_pthread_mutex_timedlock(reinterpret_cast<pthread_mutex_t*>(mutex), time);
  return result == 0 ? thrd_success : result == ETIMEDOUT ? thrd_timedout : thrd_error;
}
SPILL_EXPORT int __spill_mtx_unlock(mtx_t* mutex) {
  return unlock_mutex(reinterpret_cast<pthread_mutex_t*>(mutex)) == 0 ? thrd_success : thrd_error;
}
SPILL_EXPORT void __spill_mtx_destroy(mtx_t* mutex) {
  __spill_pthread_mutex_destroy(reinterpret_cast<pthread_mutex_t*>(mutex));
}

}  // namespace spill
