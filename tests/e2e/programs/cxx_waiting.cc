// What waits by the C++ library's own functions and by its headers, on objects that are spilled: futures, tasks, and
// what C++20 has. The C++ library's shared part waits and wakes by system calls that spillcc did not compile. Pages come
// and go meanwhile.
// flags: -pthread -std=c++20
// memory: 1500K
// pages: 4K
// chaos: 1
// expect: cache.evictions>=1000
#include <sys/resource.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <future>
#include <latch>
#include <memory>
#include <semaphore>
#include <shared_mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "e2e.h"

using namespace std::chrono_literals;

static const char* name(std::future_status status) {
  return status == std::future_status::timeout ? "timeout"
         : status == std::future_status::ready ? "ready"
                                               : "deferred";
}

// The processor's time of the thread, in milliseconds.
static long thread_time_ms() {
  rusage usage;
  CHECK(getrusage(RUSAGE_THREAD, &usage) == 0);
  return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
         (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
}

// Does something else for so long, in other memory.
static void be_busy(std::chrono::milliseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  do {
    push_out(1 << 20);
    std::this_thread::sleep_for(1ms);
  } while (std::chrono::steady_clock::now() < until);
}

// What a waiter looks at before it waits: it may be mapped for the C++ library then.
static void wait_until_times() {
  auto promise = std::make_unique<std::promise<int>>();
  auto future = promise->get_future();
  printf("%s\n", name(future.wait_for(20ms)));
  printf("%s\n", name(future.wait_until(std::chrono::steady_clock::now() + 20ms)));
  printf("%s\n", name(future.wait_until(std::chrono::system_clock::now() + 20ms)));
  printf("%s\n", name(future.wait_for(0s)));
  const auto begin = std::chrono::steady_clock::now();
  printf("%s\n", name(future.wait_for(60ms)));
  CHECK(std::chrono::steady_clock::now() - begin >= 60ms);
  std::thread other([&] {
    be_busy(50ms);
    promise->set_value(1);
  });
  printf("%s\n", name(future.wait_for(100s)));
  other.join();
  printf("%d\n", future.get());
}

// A waiter sleeps: it takes no processor while another thread works for long.
static void wait_asleep() {
  auto future = std::async(std::launch::async, [] {
    be_busy(300ms);
    return 2;
  });
  const long before = thread_time_ms();
  printf("%d\n", future.get());
  const long took = thread_time_ms() - before;
  if (took >= 80) printf("waiting took %ld ms of the processor\n", took);
}

static void wait_together() {
  auto promise = std::make_unique<std::promise<std::vector<int>>>();
  std::shared_future<std::vector<int>> future = promise->get_future();
  std::atomic<int> sum{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, future, t] {
      if (t % 2 == 0) CHECK(future.wait_for(100s) == std::future_status::ready);
      sum += future.get()[t];
    });
  be_busy(60ms);
  promise->set_value({1, 2, 3, 4, 5, 6});
  for (auto& thread : threads) thread.join();
  printf("%d\n", sum.load());
}

// The C++ library itself tells the waiters when a thread ends.
static void wait_for_the_end() {
  auto task = std::make_unique<std::packaged_task<int(int)>>([](int value) {
    be_busy(30ms);
    return value + 1;
  });
  auto result = task->get_future();
  std::thread worker([&] { task->make_ready_at_thread_exit(6); });
  CHECK(result.wait_for(100s) == std::future_status::ready);
  printf("%d\n", result.get());
  worker.join();

  auto promise = std::make_unique<std::promise<int>>();
  auto future = promise->get_future();
  std::atomic<bool> may_end{false};
  std::thread other([&] {
    promise->set_value_at_thread_exit(8);
    while (!may_end) be_busy(1ms);
    be_busy(60ms);
  });
  printf("%s\n", name(future.wait_for(10ms)));
  may_end = true;
  printf("%d\n", future.get());
  other.join();

  struct Last {
    std::mutex mutex;
    std::condition_variable condition;
    bool done = false;
  };
  auto last = std::make_unique<Last>();
  std::unique_lock lock(last->mutex);
  std::thread third([&] {
    std::unique_lock mine(last->mutex);
    last->done = true;
    std::notify_all_at_thread_exit(last->condition, std::move(mine));
    be_busy(30ms);
  });
  CHECK(last->condition.wait_for(lock, 100s, [&] { return last->done; }));
  lock.unlock();
  third.join();
}

static void wait_as_in_2020() {
  struct Meeting {
    std::latch latch{3};
    std::barrier<> barrier{3};
    std::counting_semaphore<4> semaphore{0};
    std::binary_semaphore nobody{0};
    std::atomic<int> round{0};
    std::atomic<long> wide{0};
    std::atomic_flag flag;
    std::shared_timed_mutex shared;
    std::mutex mutex;
    std::condition_variable_any any;
    std::once_flag once;
    int counter = 0;
  };
  auto meeting = std::make_unique<Meeting>();
  CHECK_SPILLED(meeting.get());
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      meeting->latch.arrive_and_wait();
      for (int i = 0; i < 6; ++i) {
        if (i % 6 == t) be_busy(3ms);
        meeting->barrier.arrive_and_wait();
        CHECK(meeting->round.load() / 3 == i);
        meeting->barrier.arrive_and_wait();
        ++meeting->round;
      }
      std::call_once(meeting->once, [&] {
        be_busy(20ms);
        ++meeting->counter;
      });
      CHECK(meeting->counter == 1);
      meeting->semaphore.acquire();
      meeting->flag.wait(false);
      meeting->wide.wait(0);
      std::shared_lock lock(meeting->shared);
      CHECK(meeting->counter == 1);
    });
  CHECK(!meeting->nobody.try_acquire_for(20ms));
  be_busy(40ms);
  meeting->semaphore.release(3);
  {
    std::unique_lock lock(meeting->shared);
    std::thread([&] {
      CHECK(!meeting->shared.try_lock_for(20ms) && !meeting->shared.try_lock_shared_for(20ms));
    }).join();
    meeting->flag.test_and_set();
    meeting->flag.notify_all();
    be_busy(20ms);
    meeting->wide = 1;
    meeting->wide.notify_all();
    be_busy(20ms);
  }
  for (auto& thread : threads) thread.join();
  printf("%d rounds\n", meeting->round.load() / 3);

  std::jthread stopped([&](std::stop_token token) {
    std::unique_lock lock(meeting->mutex);
    CHECK(!meeting->any.wait(lock, token, [] { return false; }));
  });
  be_busy(20ms);
  stopped.request_stop();
  stopped.join();
  std::unique_lock lock(meeting->mutex);
  CHECK(meeting->any.wait_for(lock, 20ms) == std::cv_status::timeout);
}

int main() {
  wait_until_times();
  wait_asleep();
  wait_together();
  wait_for_the_end();
  wait_as_in_2020();
  return 0;
}
