// Mutexes, conditions and their like in spilled memory, under contention from four threads.
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <netdb.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "spill/intercept/mutex.h"
#include "spill/intercept/parking.h"
#include "spill/testing/mirrored.h"
#include "sys/barrier.h"

extern "C" {
int __spill_timer_create(clockid_t, sigevent*, timer_t*);
int __spill_mq_notify(mqd_t, const sigevent*);
int __spill_getaddrinfo_a(int, gaicb**, int, sigevent*);
int __spill_aio_error(const aiocb*);
int __spill_aio_read(aiocb*);
int __spill_pthread_mutex_init(pthread_mutex_t*, const pthread_mutexattr_t*);
int __spill_pthread_mutex_destroy(pthread_mutex_t*);
int __spill_pthread_mutex_lock(pthread_mutex_t*);
int __spill_pthread_mutex_trylock(pthread_mutex_t*);
int __spill_pthread_mutex_timedlock(pthread_mutex_t*, const timespec*);
int __spill_pthread_mutex_clocklock(pthread_mutex_t*, clockid_t, const timespec*);
int __spill_pthread_mutex_unlock(pthread_mutex_t*);
int __spill_mtx_init(mtx_t*, int);
int __spill_mtx_trylock(mtx_t*);
int __spill_mtx_lock(mtx_t*);
int __spill_mtx_unlock(mtx_t*);
int __spill_pthread_cond_init(pthread_cond_t*, const pthread_condattr_t*);
int __spill_pthread_cond_wait(pthread_cond_t*, pthread_mutex_t*);
int __spill_pthread_cond_timedwait(pthread_cond_t*, pthread_mutex_t*, const timespec*);
int __spill_pthread_cond_clockwait(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);
int __spill_pthread_cond_signal(pthread_cond_t*);
int __spill_pthread_cond_broadcast(pthread_cond_t*);
int __spill_pthread_rwlock_init(pthread_rwlock_t*, const pthread_rwlockattr_t*);
int __spill_pthread_rwlock_rdlock(pthread_rwlock_t*);
int __spill_pthread_rwlock_wrlock(pthread_rwlock_t*);
int __spill_pthread_rwlock_tryrdlock(pthread_rwlock_t*);
int __spill_pthread_rwlock_trywrlock(pthread_rwlock_t*);
int __spill_pthread_rwlock_timedrdlock(pthread_rwlock_t*, const timespec*);
int __spill_pthread_rwlock_timedwrlock(pthread_rwlock_t*, const timespec*);
int __spill_pthread_rwlock_unlock(pthread_rwlock_t*);
int __spill_sem_init(sem_t*, int, unsigned);
int __spill_sem_wait(sem_t*);
int __spill_sem_trywait(sem_t*);
int __spill_sem_timedwait(sem_t*, const timespec*);
int __spill_sem_post(sem_t*);
int __spill_sem_getvalue(sem_t*, int*);
int __spill_pthread_barrier_init(pthread_barrier_t*, const pthread_barrierattr_t*, unsigned);
int __spill_pthread_barrier_wait(pthread_barrier_t*);
int __spill_pthread_once(pthread_once_t*, void (*)());
int __spill_pthread_spin_init(pthread_spinlock_t*, int);
int __spill_pthread_spin_lock(pthread_spinlock_t*);
int __spill_pthread_spin_unlock(pthread_spinlock_t*);
long __spill_syscall(long, ...);
long spillway_foreign_futex(long, long, long, long, long, long, long);
}

namespace {

class Pthread : public fake::SpillTest {
 protected:
  void SetUp() override {
    fake::start();
    ASSERT_TRUE(sys::register_barrier().has_value());
  }
};

// An object of zeros, or with a static initialiser's value, that crosses a page's edge if it can.
template <class T>
T* spilled(const T& value = {}) {
  constexpr size_t kBefore = sizeof(T) > 8 ? 8 : 0;
  char* address = fake::allocate(sizeof(T), 4096 - (kBefore != 0 ? kBefore : sizeof(T)));
  spill::copy(address, &value, sizeof(T));
  return reinterpret_cast<T*>(address);
}

timespec after_ms(clockid_t clock, long ms) {
  timespec now;
  clock_gettime(clock, &now);
  const long nanoseconds = now.tv_nsec + ms % 1000 * 1'000'000;
  return {now.tv_sec + ms / 1000 + nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
}
constexpr int64_t kHangMs = 60'000;  // with the wrong clock, or the wrong unit, a wait would be longer
int64_t now_ms() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

// Runs body(i) in `count` threads that may touch spilled memory, and checks that they hold nothing at the end.
void in_threads(int count, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&body, i] {
      fake::enter_thread();
      body(i);
      fake::expect_nothing_held();
    });
  for (auto& thread : threads) thread.join();
}

pthread_mutexattr_t attributes_of(int type) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, type);
  return attributes;
}

TEST_F(Pthread, MutexExcludes) {
  for (int type : {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK}) {
    auto* mutex = spilled<pthread_mutex_t>();
    auto attributes = attributes_of(type);
    ASSERT_EQ(__spill_pthread_mutex_init(mutex, spilled(attributes)), 0);
    long counter = 0;
    in_threads(4, [&](int) {
      for (int i = 0; i < 30'000; ++i) {
        EXPECT_EQ(__spill_pthread_mutex_lock(mutex), 0);
        if (type == PTHREAD_MUTEX_RECURSIVE) EXPECT_EQ(__spill_pthread_mutex_lock(mutex), 0);
        ++counter;
        if (i % 1000 == 0) usleep(50);  // the others go to sleep
        if (type == PTHREAD_MUTEX_RECURSIVE) EXPECT_EQ(__spill_pthread_mutex_unlock(mutex), 0);
        EXPECT_EQ(__spill_pthread_mutex_unlock(mutex), 0);
      }
    });
    EXPECT_EQ(counter, 120'000);
    EXPECT_EQ(__spill_pthread_mutex_destroy(mutex), 0);
  }
}

TEST_F(Pthread, EverySleeperGetsTheMutex) {
  auto* mutex = spilled<pthread_mutex_t>();
  ASSERT_EQ(__spill_pthread_mutex_lock(mutex), 0);
  std::thread owner([&] {
    fake::enter_thread();
    usleep(100'000);  // all sleep by now
    EXPECT_EQ(__spill_pthread_mutex_unlock(mutex), 0);
  });
  in_threads(3, [&](int) {
    const timespec time = after_ms(CLOCK_REALTIME, kHangMs);
    EXPECT_EQ(__spill_pthread_mutex_timedlock(mutex, &time), 0);
    EXPECT_EQ(__spill_pthread_mutex_unlock(mutex), 0);
  });
  owner.join();
}

TEST_F(Pthread, MutexKinds) {
  auto* recursive = spilled<pthread_mutex_t>(PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP);
  auto* checking = spilled<pthread_mutex_t>(PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP);
  auto* normal = spilled<pthread_mutex_t>(PTHREAD_MUTEX_INITIALIZER);
  EXPECT_EQ(__spill_pthread_mutex_unlock(checking), EPERM);
  EXPECT_EQ(__spill_pthread_mutex_lock(checking), 0);
  EXPECT_EQ(__spill_pthread_mutex_lock(checking), EDEADLK);
  EXPECT_EQ(__spill_pthread_mutex_trylock(checking), EBUSY);
  EXPECT_EQ(__spill_pthread_mutex_destroy(checking), EBUSY);
  EXPECT_EQ(__spill_pthread_mutex_lock(recursive), 0);
  EXPECT_EQ(__spill_pthread_mutex_trylock(recursive), 0);
  EXPECT_EQ(__spill_pthread_mutex_lock(normal), 0);
  EXPECT_EQ(__spill_pthread_mutex_trylock(normal), EBUSY);
  in_threads(1, [&](int) {
    for (pthread_mutex_t* mutex : {recursive, checking, normal})
      EXPECT_EQ(__spill_pthread_mutex_trylock(mutex), EBUSY);
    for (pthread_mutex_t* mutex : {recursive, checking})
      EXPECT_EQ(__spill_pthread_mutex_unlock(mutex), EPERM);
  });
  EXPECT_EQ(__spill_pthread_mutex_unlock(recursive), 0);
  in_threads(1, [&](int) { EXPECT_EQ(__spill_pthread_mutex_trylock(recursive), EBUSY); });
  EXPECT_EQ(__spill_pthread_mutex_unlock(recursive), 0);
  EXPECT_EQ(__spill_pthread_mutex_unlock(recursive), EPERM);
  EXPECT_EQ(__spill_pthread_mutex_unlock(checking), 0);
  EXPECT_EQ(__spill_pthread_mutex_unlock(normal), 0);
  auto* standard = spilled<mtx_t>();
  EXPECT_EQ(__spill_mtx_init(standard, mtx_plain), thrd_success);
  EXPECT_EQ(__spill_mtx_lock(standard), thrd_success);
  EXPECT_EQ(__spill_mtx_trylock(standard), thrd_busy);
  EXPECT_EQ(__spill_mtx_unlock(standard), thrd_success);

  pthread_mutexattr_t attributes = attributes_of(PTHREAD_MUTEX_NORMAL);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  EXPECT_EQ(__spill_pthread_mutex_init(normal, &attributes), ENOTSUP);
  attributes = attributes_of(PTHREAD_MUTEX_NORMAL);
  pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
  EXPECT_EQ(__spill_pthread_mutex_init(normal, &attributes), ENOTSUP);
}

// Process-shared objects are like others: nobody shares spilled memory.
TEST_F(Pthread, ProcessSharedObjects) {
  auto* mutex = spilled<pthread_mutex_t>();
  pthread_mutexattr_t of_mutex;
  pthread_mutexattr_init(&of_mutex);
  pthread_mutexattr_settype(&of_mutex, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutexattr_setpshared(&of_mutex, PTHREAD_PROCESS_SHARED);
  EXPECT_EQ(__spill_pthread_mutex_init(mutex, &of_mutex), 0);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(__spill_pthread_mutex_lock(mutex), 0);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(__spill_pthread_mutex_unlock(mutex), 0);
  EXPECT_EQ(__spill_pthread_mutex_unlock(mutex), EPERM);

  auto* condition = spilled<pthread_cond_t>();
  pthread_condattr_t of_condition;
  pthread_condattr_init(&of_condition);
  pthread_condattr_setpshared(&of_condition, PTHREAD_PROCESS_SHARED);
  pthread_condattr_setclock(&of_condition, CLOCK_MONOTONIC);
  EXPECT_EQ(__spill_pthread_cond_init(condition, &of_condition), 0);
  EXPECT_EQ(__spill_pthread_mutex_lock(mutex), 0);
  const timespec time = after_ms(CLOCK_MONOTONIC, 10);
  EXPECT_EQ(__spill_pthread_cond_timedwait(condition, mutex, &time), ETIMEDOUT);
  EXPECT_EQ(__spill_pthread_mutex_unlock(mutex), 0);

  auto* lock = spilled<pthread_rwlock_t>();
  pthread_rwlockattr_t of_lock;
  pthread_rwlockattr_init(&of_lock);
  pthread_rwlockattr_setpshared(&of_lock, PTHREAD_PROCESS_SHARED);
  EXPECT_EQ(__spill_pthread_rwlock_init(lock, &of_lock), 0);

  auto* barrier = spilled<pthread_barrier_t>();
  pthread_barrierattr_t of_barrier;
  pthread_barrierattr_init(&of_barrier);
  pthread_barrierattr_setpshared(&of_barrier, PTHREAD_PROCESS_SHARED);
  EXPECT_EQ(__spill_pthread_barrier_init(barrier, &of_barrier, 1), 0);
  EXPECT_EQ(__spill_pthread_barrier_wait(barrier), PTHREAD_BARRIER_SERIAL_THREAD);

  auto* semaphore = spilled<sem_t>();
  EXPECT_EQ(__spill_sem_init(semaphore, 1, 1), 0);
  EXPECT_EQ(__spill_sem_trywait(semaphore), 0);
  EXPECT_EQ(__spill_sem_trywait(semaphore), -1);
}

// What the program's only thread writes is what the general way and the C library expect to find.
TEST_F(Pthread, MutexesOfTheOnlyThread) {
  spill::begin_alone(static_cast<uint32_t>(syscall(SYS_gettid)));
  char* inside = fake::allocate(sizeof(pthread_mutex_t), 64);
  const pthread_mutex_t initial[] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
                                     PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP};
  for (const pthread_mutex_t& value : initial) {
    const bool recursive = value.__data.__kind == PTHREAD_MUTEX_RECURSIVE_NP;
    pthread_mutex_t plain = value;
    spill::copy(inside, &value, sizeof value);
    for (pthread_mutex_t* mutex :
         {spilled<pthread_mutex_t>(value), reinterpret_cast<pthread_mutex_t*>(inside), &plain}) {
      EXPECT_EQ(__spill_pthread_mutex_lock(mutex), 0);
      EXPECT_EQ(__spill_pthread_mutex_trylock(mutex), recursive ? 0 : EBUSY);
      if (recursive) {
        EXPECT_EQ(__spill_pthread_mutex_lock(mutex), 0);
        EXPECT_EQ(__spill_pthread_mutex_unlock(mutex), 0);
        EXPECT_EQ(__spill_pthread_mutex_unlock(mutex), 0);
      }
      in_threads(1, [&](int) { EXPECT_EQ(__spill_pthread_mutex_trylock(mutex), EBUSY); });
      EXPECT_EQ(__spill_pthread_mutex_unlock(mutex), 0);
      in_threads(1, [&](int) {
        EXPECT_EQ(__spill_pthread_mutex_trylock(mutex), 0);
        spill::note_threads();
        EXPECT_EQ(__spill_pthread_mutex_unlock(mutex), 0);
      });
      spill::begin_alone(static_cast<uint32_t>(syscall(SYS_gettid)));
      if (mutex == &plain) continue;
      // Locked while alone, unlocked in the general way.
      EXPECT_EQ(__spill_pthread_mutex_lock(mutex), 0);
      spill::note_threads();
      EXPECT_EQ(__spill_pthread_mutex_unlock(mutex), 0);
      EXPECT_EQ(__spill_pthread_mutex_destroy(mutex), 0);
      spill::begin_alone(static_cast<uint32_t>(syscall(SYS_gettid)));
    }
    EXPECT_EQ(__spill_pthread_mutex_lock(&plain), 0);
    EXPECT_EQ(pthread_mutex_trylock(&plain), recursive ? 0 : EBUSY);
    if (recursive) EXPECT_EQ(pthread_mutex_unlock(&plain), 0);
    EXPECT_EQ(pthread_mutex_unlock(&plain), 0);
    pthread_mutex_t same = value;
    EXPECT_EQ(memcmp(&plain, &same, sizeof same), 0);
  }
  spill::note_threads();
  fake::expect_nothing_held();
}

// The thread sanitizer does not know that a mutex is held that the first thread took while it was alone.
__attribute__((no_sanitize("thread"))) void add_one(volatile uint64_t& count) { count = count + 1; }

// Threads whose creation nobody saw lock mutexes while the first one changes them as if alone.
TEST_F(Pthread, ThreadsThatWereNotSeenEndTheTimeAlone) {
  auto* inside = reinterpret_cast<pthread_mutex_t*>(fake::allocate(sizeof(pthread_mutex_t), 64));
  pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
  spill::copy(inside, &plain, sizeof plain);
  constexpr uint64_t kRounds = 500, kTimes = 50;
  volatile uint64_t counts[2] = {0, 0};
  const auto work = [&] {
    for (uint64_t i = 0; i < kTimes; ++i) {
      EXPECT_EQ(__spill_pthread_mutex_lock(inside), 0);
      add_one(counts[0]);
      EXPECT_EQ(__spill_pthread_mutex_unlock(inside), 0);
      EXPECT_EQ(__spill_pthread_mutex_lock(&plain), 0);
      add_one(counts[1]);
      EXPECT_EQ(__spill_pthread_mutex_unlock(&plain), 0);
    }
  };
  for (uint64_t round = 0; round < kRounds; ++round) {
    std::atomic<bool> begins{false};
    spill::begin_alone(static_cast<uint32_t>(syscall(SYS_gettid)));
    std::thread other([&] {
      fake::enter_thread();
      while (!begins.load()) {
      }
      work();
    });
    begins = true;
    work();
    other.join();
    EXPECT_EQ(spill::only_thread(), 0u);
  }
  EXPECT_EQ(counts[0], 2 * kRounds * kTimes);
  EXPECT_EQ(counts[1], 2 * kRounds * kTimes);
}

// A thread of the library may call the program soon: it makes no difference that the call failed here.
TEST_F(Pthread, CallsThatMakeThreadsEndBeingTheOnlyOne) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[1]);
  aiocb block = {};  // may wait, so it is served by a thread
  block.aio_fildes = ends[0];
  block.aio_sigevent.sigev_notify = SIGEV_NONE;
  gaicb request = {};
  request.ar_name = "127.0.0.1";
  gaicb* requests[] = {&request};
  timer_t timer;
  sigevent none = {};
  none.sigev_notify = SIGEV_NONE;
  const std::function<int()> calls[] = {
      [&] { return __spill_timer_create(CLOCK_MONOTONIC, spilled(none), &timer); },
      [&] { return __spill_mq_notify(-1, spilled(none)); },
      [&] { return __spill_getaddrinfo_a(GAI_WAIT, requests, 1, nullptr); },
      [&] { return __spill_aio_read(&block); },
  };
  for (const auto& call : calls) {
    spill::begin_alone(static_cast<uint32_t>(syscall(SYS_gettid)));
    call();
    EXPECT_EQ(spill::only_thread(), 0u) << "call " << &call - calls;
  }
  spill::note_threads();
  while (__spill_aio_error(&block) == EINPROGRESS) usleep(100);
  freeaddrinfo(request.ar_result);
  close(ends[0]);
  timer_delete(timer);
}

TEST_F(Pthread, MutexTimesOut) {
  auto* mutex = spilled<pthread_mutex_t>();
  EXPECT_EQ(__spill_pthread_mutex_lock(mutex), 0);
  in_threads(2, [&](int i) {
    const int64_t begin = now_ms();
    const timespec time = after_ms(i == 0 ? CLOCK_REALTIME : CLOCK_MONOTONIC, 60);
    EXPECT_EQ(i == 0 ? __spill_pthread_mutex_timedlock(mutex, spilled(time))
                     : __spill_pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &time),
              ETIMEDOUT);
    EXPECT_GE(now_ms() - begin, 55);
    EXPECT_LT(now_ms() - begin, kHangMs);
    const timespec before_all = {-5, 0}, impossible = {5, 1'000'000'000};
    EXPECT_EQ(__spill_pthread_mutex_timedlock(mutex, &before_all), ETIMEDOUT);
    EXPECT_EQ(__spill_pthread_mutex_timedlock(mutex, &impossible), EINVAL);
  });
  EXPECT_EQ(__spill_pthread_mutex_unlock(mutex), 0);
  const timespec time = after_ms(CLOCK_REALTIME, 60);
  EXPECT_EQ(__spill_pthread_mutex_timedlock(mutex, &time), 0);
}

// Whoever changes the object after the last look at it finds the waiter in the queue.
TEST_F(Pthread, AWakeUpBetweenTheLastLookAndTheQueueIsNotLost) {
  struct {
    std::atomic<bool> woken{false};
    std::thread waker;
  } context;
  static int object;
  spill::Waiter waiter;
  const auto must_wait = [](void* c) {
    auto& shared = *static_cast<decltype(context)*>(c);
    shared.waker = std::thread([&shared] {
      fake::enter_thread();
      spill::unpark(&object, 1);
      shared.woken = true;
    });
    // Long enough for a waker that nothing delays.
    for (int i = 0; i < 100 && !shared.woken; ++i) usleep(1000);
    return true;
  };
  ASSERT_TRUE(spill::queue_waiter(waiter, &object, ~uint32_t{0}, must_wait, &context));
  const auto deadline = spill::Deadline::at(CLOCK_MONOTONIC, after_ms(CLOCK_MONOTONIC, kHangMs));
  EXPECT_EQ(spill::sleep_waiter(waiter, deadline, false), spill::Parked::kWoken);
  context.waker.join();
}

TEST_F(Pthread, OnlyWhoWaitsForAnObjectIsWoken) {
  static char objects[4000];  // more than there are queues
  spill::Waiter waiter;
  const auto must_wait = [](void*) { return true; };
  ASSERT_TRUE(spill::queue_waiter(waiter, &objects[0], 1, must_wait, nullptr));
  for (size_t i = 1; i < sizeof objects; ++i) EXPECT_EQ(spill::unpark(&objects[i], 1), 0u);
  EXPECT_EQ(spill::unpark(&objects[0], 1, 2), 0u);
  const auto past = spill::Deadline::at(CLOCK_MONOTONIC, after_ms(CLOCK_MONOTONIC, 0));
  EXPECT_EQ(spill::sleep_waiter(waiter, past, false), spill::Parked::kTimedOut);
  EXPECT_EQ(spill::unpark(&objects[0], 1), 0u);  // gone

  spill::Waiter second;
  ASSERT_TRUE(spill::queue_waiter(second, &objects[0], 1, must_wait, nullptr));
  EXPECT_EQ(spill::unpark(&objects[0], 5), 1u);
  EXPECT_EQ(spill::sleep_waiter(second, spill::Deadline::never(), false), spill::Parked::kWoken);
}

// Two threads hand a turn to each other; every combination of where condition and mutex lie.
TEST_F(Pthread, ConditionPingPong) {
  static pthread_cond_t plain_condition = PTHREAD_COND_INITIALIZER;
  static pthread_mutex_t plain_mutex = PTHREAD_MUTEX_INITIALIZER;
  for (int where = 0; where < 4; ++where) {
    pthread_cond_t* condition =
        (where & 1) != 0 ? spilled<pthread_cond_t>(PTHREAD_COND_INITIALIZER) : &plain_condition;
    pthread_mutex_t* mutex = (where & 2) != 0 ? spilled<pthread_mutex_t>() : &plain_mutex;
    int turn = 0;
    in_threads(2, [&](int self) {
      for (int i = 0; i < 5'000; ++i) {
        __spill_pthread_mutex_lock(mutex);
        while (turn != self) EXPECT_EQ(__spill_pthread_cond_wait(condition, mutex), 0);
        turn = 1 - self;
        if (i % 2 == 0) {
          __spill_pthread_cond_signal(condition);
          __spill_pthread_mutex_unlock(mutex);
        } else {
          __spill_pthread_mutex_unlock(mutex);
          __spill_pthread_cond_signal(condition);
        }
      }
    });
  }
}

TEST_F(Pthread, ConditionQueue) {
  auto* ready = spilled<pthread_cond_t>();
  auto* room = spilled<pthread_cond_t>();
  auto* mutex = spilled<pthread_mutex_t>();
  int items = 0, taken = 0;
  bool closed = false;
  in_threads(4, [&](int self) {
    if (self == 0) {
      for (int i = 0; i < 20'000; ++i) {
        __spill_pthread_mutex_lock(mutex);
        while (items == 5) __spill_pthread_cond_wait(room, mutex);
        ++items;
        __spill_pthread_mutex_unlock(mutex);
        __spill_pthread_cond_signal(ready);
      }
      __spill_pthread_mutex_lock(mutex);
      closed = true;
      __spill_pthread_mutex_unlock(mutex);
      __spill_pthread_cond_broadcast(ready);
      return;
    }
    __spill_pthread_mutex_lock(mutex);
    for (;;) {
      while (items == 0 && !closed) __spill_pthread_cond_wait(ready, mutex);
      if (items == 0) break;
      --items, ++taken;
      __spill_pthread_cond_signal(room);
    }
    __spill_pthread_mutex_unlock(mutex);
  });
  EXPECT_EQ(taken, 20'000);
}

TEST_F(Pthread, ConditionTimesOutByItsClock) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  auto* mutex = spilled<pthread_mutex_t>();
  auto* condition = spilled<pthread_cond_t>();
  EXPECT_EQ(__spill_pthread_mutex_lock(mutex), 0);
  for (clockid_t clock : {CLOCK_REALTIME, CLOCK_MONOTONIC}) {
    EXPECT_EQ(__spill_pthread_cond_init(condition, clock == CLOCK_MONOTONIC ? &attributes : nullptr), 0);
    const int64_t begin = now_ms();
    const timespec time = after_ms(clock, 50);
    EXPECT_EQ(__spill_pthread_cond_timedwait(condition, mutex, spilled(time)), ETIMEDOUT);
    EXPECT_GE(now_ms() - begin, 45);
    EXPECT_LT(now_ms() - begin, kHangMs);
    EXPECT_EQ(__spill_pthread_mutex_trylock(mutex), EBUSY);  // locked again
  }
  const timespec time = after_ms(CLOCK_MONOTONIC, 10);
  EXPECT_EQ(__spill_pthread_cond_clockwait(condition, mutex, CLOCK_MONOTONIC, &time), ETIMEDOUT);
  EXPECT_EQ(__spill_pthread_cond_signal(condition), 0);
  EXPECT_EQ(__spill_pthread_mutex_unlock(mutex), 0);
}

// When timeouts and wake-ups race, neither may be lost.
TEST_F(Pthread, ConditionWakeupsAndTimeoutsRace) {
  auto* mutex = spilled<pthread_mutex_t>();
  auto* condition = spilled<pthread_cond_t>();
  int tokens = 0, got = 0;
  in_threads(4, [&](int self) {
    for (int i = 0; i < 3'000; ++i) {
      __spill_pthread_mutex_lock(mutex);
      if (self == 0) {
        ++tokens;
        __spill_pthread_cond_signal(condition);
      } else if (tokens == 0) {
        timespec time = after_ms(CLOCK_REALTIME, 0);
        time.tv_nsec = std::min(time.tv_nsec + 20'000, 999'999'999L);
        __spill_pthread_cond_timedwait(condition, mutex, &time);
      }
      if (self != 0 && tokens > 0) --tokens, ++got;
      __spill_pthread_mutex_unlock(mutex);
    }
  });
  EXPECT_EQ(tokens + got, 3'000);
}

TEST_F(Pthread, ReadersAndWriters) {
  auto* lock = spilled<pthread_rwlock_t>(PTHREAD_RWLOCK_INITIALIZER);
  long a = 0, b = 0;
  in_threads(4, [&](int self) {
    for (int i = 0; i < 20'000; ++i) {
      if ((i + self) % 4 == 0) {
        EXPECT_EQ(__spill_pthread_rwlock_wrlock(lock), 0);
        ++a;
        if (i % 512 == 0) usleep(20);
        ++b;
      } else {
        EXPECT_EQ(__spill_pthread_rwlock_rdlock(lock), 0);
        EXPECT_EQ(a, b);
      }
      EXPECT_EQ(__spill_pthread_rwlock_unlock(lock), 0);
    }
  });
  EXPECT_EQ(a, 20'000);
  EXPECT_EQ(__spill_pthread_rwlock_rdlock(lock), 0);
  EXPECT_EQ(__spill_pthread_rwlock_tryrdlock(lock), 0);
  EXPECT_EQ(__spill_pthread_rwlock_trywrlock(lock), EBUSY);
  const timespec time = after_ms(CLOCK_REALTIME, 20);
  EXPECT_EQ(__spill_pthread_rwlock_timedwrlock(lock, &time), ETIMEDOUT);
  EXPECT_EQ(__spill_pthread_rwlock_unlock(lock), 0);
  EXPECT_EQ(__spill_pthread_rwlock_unlock(lock), 0);
  EXPECT_EQ(__spill_pthread_rwlock_trywrlock(lock), 0);
  EXPECT_EQ(__spill_pthread_rwlock_tryrdlock(lock), EBUSY);
  EXPECT_EQ(__spill_pthread_rwlock_trywrlock(lock), EBUSY);
  // Its owner would wait for itself; others wait.
  const timespec later = after_ms(CLOCK_REALTIME, kHangMs);
  EXPECT_EQ(__spill_pthread_rwlock_timedwrlock(lock, &later), EDEADLK);
  EXPECT_EQ(__spill_pthread_rwlock_timedrdlock(lock, &later), EDEADLK);
  in_threads(1, [&](int) {
    const timespec soon = after_ms(CLOCK_REALTIME, 20);
    EXPECT_EQ(__spill_pthread_rwlock_timedrdlock(lock, &soon), ETIMEDOUT);
  });
  EXPECT_EQ(__spill_pthread_rwlock_unlock(lock), 0);
  EXPECT_EQ(__spill_pthread_rwlock_rdlock(lock), 0);
  EXPECT_EQ(__spill_pthread_rwlock_timedwrlock(lock, &time), ETIMEDOUT);
  EXPECT_EQ(__spill_pthread_rwlock_unlock(lock), 0);
}

TEST_F(Pthread, Semaphores) {
  auto* empty = spilled<sem_t>();
  auto* full = spilled<sem_t>();
  EXPECT_EQ(__spill_sem_init(empty, 0, 3), 0);
  EXPECT_EQ(__spill_sem_init(full, 0, 0), 0);
  std::atomic<int> inside{0}, most{0};
  in_threads(4, [&](int self) {
    for (int i = 0; i < 4'000; ++i) {
      EXPECT_EQ(__spill_sem_wait(self < 2 ? empty : full), 0);
      const int now = self < 2 ? ++inside : inside--;
      if (now > most) most = now;
      EXPECT_EQ(__spill_sem_post(self < 2 ? full : empty), 0);
    }
  });
  EXPECT_EQ(inside, 0);
  EXPECT_LE(most, 3);
  int* value = spilled<int>();
  EXPECT_EQ(__spill_sem_getvalue(empty, value), 0);
  EXPECT_EQ(*reinterpret_cast<int*>(spill::hold(value, spill::kHoldA)), 3);
  spill::release(spill::kHoldA);
  EXPECT_EQ(__spill_sem_trywait(full), -1);
  EXPECT_EQ(errno, EAGAIN);
  const timespec time = after_ms(CLOCK_REALTIME, 20);
  EXPECT_EQ(__spill_sem_timedwait(full, &time), -1);
  EXPECT_EQ(errno, ETIMEDOUT);
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  sigaction(SIGUSR1, &action, nullptr);
  const pthread_t waiter = pthread_self();
  std::atomic<bool> has_waited{false};
  // Repeatedly: the first may come before anybody waits.
  std::thread interrupter([&] {
    while (!has_waited) {
      usleep(10'000);
      pthread_kill(waiter, SIGUSR1);
    }
  });
  EXPECT_EQ(__spill_sem_wait(full), -1);
  EXPECT_EQ(errno, EINTR);
  has_waited = true;
  interrupter.join();
}

TEST_F(Pthread, Barriers) {
  auto* barrier = spilled<pthread_barrier_t>();
  EXPECT_EQ(__spill_pthread_barrier_init(barrier, nullptr, 4), 0);
  std::atomic<int> arrived{0}, serial{0};
  in_threads(4, [&](int) {
    for (int round = 1; round <= 1'000; ++round) {
      ++arrived;
      const int result = __spill_pthread_barrier_wait(barrier);
      EXPECT_GE(arrived, 4 * round);
      if (result == PTHREAD_BARRIER_SERIAL_THREAD) ++serial;
      __spill_pthread_barrier_wait(barrier);
      EXPECT_LT(arrived, 4 * (round + 1) + 1);
    }
  });
  EXPECT_EQ(serial, 1'000);
}

std::atomic<int> once_count{0};

TEST_F(Pthread, OnceEvenAfterAnException) {
  for (int round = 0; round < 50; ++round) {
    auto* control = spilled<pthread_once_t>(PTHREAD_ONCE_INIT);
    once_count = 0;
    in_threads(4, [&](int) {
      __spill_pthread_once(control, [] {
        usleep(200);
        ++once_count;
      });
      EXPECT_EQ(once_count, 1);
    });
  }
  auto* control = spilled<pthread_once_t>(PTHREAD_ONCE_INIT);
  EXPECT_THROW(__spill_pthread_once(control, [] { throw 1; }), int);
  EXPECT_EQ(__spill_pthread_once(control, [] { once_count = 100; }), 0);
  EXPECT_EQ(once_count, 100);
}

TEST_F(Pthread, SpinLocksExclude) {
  auto* lock = spilled<int>();
  EXPECT_EQ(__spill_pthread_spin_init(lock, 0), 0);
  long counter = 0;
  in_threads(4, [&](int) {
    for (int i = 0; i < 5'000; ++i) {
      __spill_pthread_spin_lock(lock);
      ++counter;
      __spill_pthread_spin_unlock(lock);
    }
  });
  EXPECT_EQ(counter, 20'000);
}

TEST_F(Pthread, FutexByNumber) {
  auto* word = spilled<uint32_t>();
  EXPECT_EQ(__spill_syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 1, nullptr, nullptr, 0), -1);
  EXPECT_EQ(errno, EAGAIN);
  const timespec soon = {0, 20'000'000};
  EXPECT_EQ(__spill_syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0, &soon, nullptr, 0), -1);
  EXPECT_EQ(errno, ETIMEDOUT);
  EXPECT_EQ(__spill_syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 10, nullptr, nullptr, 0), 0);
  const timespec never = {LONG_MAX, 999'999'999};  // beyond the last time of the clock
  std::atomic<int> woken{0};
  in_threads(3, [&](int self) {
    if (self == 0) {
      while (woken < 2) {
        __spill_syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
        usleep(100);
      }
      return;
    }
    EXPECT_EQ(
        __spill_syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0, self == 1 ? &never : nullptr, nullptr, 0), 0);
    ++woken;
  });
  EXPECT_EQ(__spill_syscall(SYS_getpid), getpid());
  // A library's wait, on a word of its own.
  const uint32_t plain_word = 0;
  const auto wait_for_plain_word = [&] {
    return spillway_foreign_futex(SYS_futex, reinterpret_cast<long>(&plain_word), FUTEX_WAIT_PRIVATE, 1, 0, 0,
                                  0);
  };
  EXPECT_TRUE(fake::lets_go([&] { EXPECT_EQ(wait_for_plain_word(), -1); }));
  EXPECT_EQ(errno, EAGAIN);
}

}  // namespace
