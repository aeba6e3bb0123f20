// Threads that meet in spilled memory: mutexes, condition variables, atomics, futures, once flags and
// thread-local objects, all of them spilled or beside spilled data.
// flags: -pthread
// memory: 1500K
// pages: 4K 8K
// expect: cache.evictions>=1000
#include <atomic>
#include <condition_variable>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>
#include "e2e.h"

template <class T>
class Queue {
 public:
  void push(T value) {
    std::unique_lock lock(mutex_);
    not_full_.wait(lock, [&] { return values_.size() < 50; });
    values_.push_back(std::move(value));
    not_empty_.notify_one();
  }
  T pop() {
    std::unique_lock lock(mutex_);
    not_empty_.wait(lock, [&] { return !values_.empty(); });
    T value = std::move(values_.front());
    values_.pop_front();
    not_full_.notify_one();
    return value;
  }

 private:
  std::mutex mutex_;
  std::condition_variable not_empty_, not_full_;
  std::deque<T> values_;
};

struct Table {
  std::shared_mutex mutex;
  std::map<int, std::string> rows;
  std::atomic<long> reads{0};
  char filler[5000];
};

int main() {
  auto queue = std::make_unique<Queue<std::vector<int>>>();
  CHECK_SPILLED(queue.get());
  std::atomic<long> received{0};
  constexpr int kMessages = 1500;
  std::vector<std::thread> threads;
  for (int producer = 0; producer < 3; ++producer)
    threads.emplace_back([&, producer] {
      for (int i = 0; i < kMessages; ++i) queue->push(std::vector<int>(300, producer * kMessages + i));
    });
  for (int consumer = 0; consumer < 3; ++consumer)
    threads.emplace_back([&] {
      for (int i = 0; i < kMessages; ++i) {
        std::vector<int> message = queue->pop();
        for (int value : message) CHECK(value == message[0]);
        received += message[0];
      }
    });
  for (auto& thread : threads) thread.join();
  threads.clear();
  printf("%ld\n", received.load());

  auto table = std::make_unique<Table>();
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 1500; ++i) {
        if (i % 5 == 0) {
          std::unique_lock lock(table->mutex);
          table->rows[i * 6 + t] = "row number " + std::to_string(i) + " with a string on the heap";
        } else {
          std::shared_lock lock(table->mutex);
          auto at = table->rows.find((i - i % 5) * 6 + t);
          CHECK(at != table->rows.end() && at->second.size() > 20);
          ++table->reads;
        }
      }
    });
  for (auto& thread : threads) thread.join();
  threads.clear();
  printf("%zu rows %ld reads\n", table->rows.size(), table->reads.load());

  std::vector<std::future<std::string>> futures;
  for (int i = 0; i < 20; ++i)
    futures.push_back(std::async(std::launch::async, [i] {
      std::vector<std::string> parts(500, "part " + std::to_string(i) + " of the answer");
      if (i % 7 == 3) throw std::runtime_error("no answer to " + std::to_string(i));
      return parts[499];
    }));
  for (auto& future : futures) {
    try {
      printf("%s\n", future.get().c_str());
    } catch (const std::exception& error) {
      printf("%s\n", error.what());
    }
  }
  auto once = std::make_unique<std::once_flag>();
  std::atomic<int> calls{0};
  for (int t = 0; t < 8; ++t) threads.emplace_back([&] { std::call_once(*once, [&] { ++calls; }); });
  for (auto& thread : threads) thread.join();
  CHECK(calls == 1);
  auto timed = std::make_unique<std::timed_mutex>();
  timed->lock();
  std::thread([&] { CHECK(!timed->try_lock_for(std::chrono::milliseconds(30))); }).join();
  timed->unlock();
  auto condition = std::make_unique<std::condition_variable>();
  auto mutex = std::make_unique<std::mutex>();
  std::unique_lock lock(*mutex);
  CHECK(condition->wait_for(lock, std::chrono::milliseconds(30)) == std::cv_status::timeout);
  // Contended for long, while other pages come and go.
  auto counter = std::make_unique<std::pair<std::mutex, long>>();
  threads.clear();
  lock.unlock();
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        if (i % 300 == t) push_out(1 << 20);
        std::lock_guard guard(counter->first);
        ++counter->second;
      }
    });
  for (auto& thread : threads) thread.join();
  printf("%ld\n", counter->second);
  return 0;
}
