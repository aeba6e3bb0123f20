// C++ on spilled memory: constructors before main and destructors after it that work on much data, exceptions that are
// kept, nested, thrown again and carried to other threads, coroutines that throw and are destroyed half way, objects
// of threads whose destructors free what is spilled, initialisation on first use, members and virtual functions by pointer.
// flags: -std=c++20 -pthread
// chaos: 2
// pages: 4K 16K
// expect: cache.evictions>=100
#include <atomic>
#include <coroutine>
#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>

#include "e2e.h"

// Before main and after it, larger than the memory.
struct Early {
  std::vector<std::vector<int>> rows;
  std::map<int, std::string> names;
  Early() {
    for (int i = 0; i < 500; ++i) {
      rows.emplace_back(1000);
      std::iota(rows.back().begin(), rows.back().end(), i);
      names[i * 7919 % 1000] = "a name that is too long for its string " + std::to_string(i);
    }
  }
  long sum() const {
    long total = 0;
    for (const auto& row : rows) total = std::accumulate(row.begin(), row.end(), total);
    for (const auto& [number, name] : names) total += number * long(name.size());
    return total;
  }
  ~Early() { printf("late %ld\n", sum()); }
};
static Early early;
static const long early_sum = early.sum();

struct Large : std::runtime_error {
  explicit Large(int n) : std::runtime_error("large " + std::to_string(n)), bytes(3000 + n, char(n)) {}
  virtual ~Large() = default;
  virtual int kind() const { return 1; }
  std::vector<char> bytes;
};
struct Larger : Large, std::nested_exception {
  using Large::Large;
  int kind() const override { return 2; }
  char more[9000] = {};
};

[[gnu::noinline]] static void fail(int n) {
  if (n % 3 == 0) throw Large(n);
  try {
    fail(n - 1);
  } catch (const Large& inner) {
    CHECK(inner.bytes.back() == char(n - 1));
    if (n % 3 == 1) std::throw_with_nested(Large(n));
    Larger larger(n);
    larger.more[n % 9000] = 5;
    throw larger;
  }
}
static int depth(const std::exception& e) {
  try {
    std::rethrow_if_nested(e);
  } catch (const Large& inner) {
    return 1 + depth(inner);
  }
  return 1;
}

static long exceptions() {
  std::vector<std::exception_ptr> kept;
  for (int n = 0; n < 300; ++n) {
    try {
      fail(n);
    } catch (Large& e) {
      CHECK(e.bytes.size() == size_t(3000 + n));
      kept.push_back(std::current_exception());
    }
  }
  long total = 0;
  auto look = [&](size_t from, long* sum) {
    for (size_t i = from; i < kept.size(); i += 2) {
      try {
        std::rethrow_exception(kept[i]);
      } catch (const Large& e) {
        CHECK(e.bytes[i] == char(i) && e.what() == "large " + std::to_string(i));
        *sum += e.kind() * 100 + depth(e);
      }
    }
  };
  long of_thread = 0;
  std::thread other(look, 0, &of_thread);
  look(1, &total);
  other.join();
  return total + of_thread;
}

struct Task {
  struct promise_type {
    std::exception_ptr failure;
    std::optional<std::string> value;
    Task get_return_object() { return Task{std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(std::string text) {
      return value = std::move(text), std::suspend_always{};
    }
    void return_void() { value.reset(); }
    void unhandled_exception() { failure = std::current_exception(); }
  };
  explicit Task(std::coroutine_handle<promise_type> h) : handle(h) {}
  Task(Task&& other) noexcept : handle(std::exchange(other.handle, {})) {}
  ~Task() {
    if (handle) handle.destroy();
  }
  std::coroutine_handle<promise_type> handle;
};
static int destroyed = 0;
struct Counted {
  std::vector<int> data = std::vector<int>(500, 7);
  ~Counted() { destroyed += data[499] == 7; }
};
static Task work(int n, std::string text) {
  Counted counted;
  char frame[2500];
  for (size_t i = 0; i < sizeof frame; ++i) frame[i] = char(i * n);
  for (int i = 0; i < n % 7; ++i) {
    frame[i * 300] += 1;
    co_yield text + std::to_string(i + frame[i * 300]);
  }
  if (n % 5 == 0) throw Large(n);
}
static long coroutines() {
  std::vector<Task> tasks;
  for (int n = 0; n < 400; ++n) tasks.push_back(work(n, "the text of coroutine " + std::to_string(n)));
  long total = 0;
  int failed = 0;
  for (int round = 0; round < 5; ++round) {
    for (Task& task : tasks) {
      if (task.handle.done()) continue;
      task.handle.resume();
      auto& promise = task.handle.promise();
      if (promise.value) total += long(promise.value->size()) + promise.value->back();
      try {
        if (promise.failure) std::rethrow_exception(promise.failure);
      } catch (const Large& e) {
        failed += e.bytes.back() == e.bytes.front();
      }
    }
  }
  tasks.clear();
  return total * 1000 + failed + destroyed;
}

static std::atomic<long> freed{0};
struct OfThread {
  std::vector<std::unique_ptr<std::string>> texts;
  ~OfThread() {
    for (const auto& text : texts) freed += long(text->size());
  }
};
thread_local OfThread of_thread;
static const std::vector<int>& first_use(int n) {
  static const std::vector<int> table(200000, n * 0 + 3);
  return table;
}
static void threads() {
  std::vector<std::thread> all;
  for (int t = 0; t < 6; ++t)
    all.emplace_back([t] {
      for (int i = 0; i < 800; ++i)
        of_thread.texts.push_back(
            std::make_unique<std::string>("text of a thread " + std::string(i % 100, 'x')));
      CHECK(first_use(t)[199999] == 3);
    });
  for (auto& thread : all) thread.join();
}

struct Base {
  virtual long f(int) const = 0;
  virtual ~Base() = default;
  long member = 3;
};
struct Left : virtual Base {
  long f(int n) const override { return member + n; }
};
struct Right : virtual Base {
  long extra[300] = {};
};
struct Both final : Left, Right {
  long f(int n) const override { return Left::f(n) * 2 + extra[n % 300]; }
};
static long pointers() {
  std::vector<std::unique_ptr<Base>> objects;
  for (int i = 0; i < 600; ++i)
    if (i % 2)
      objects.push_back(std::make_unique<Both>());
    else
      objects.push_back(std::make_unique<Left>());
  long (Base::*function)(int) const = &Base::f;
  long Base::* member = &Base::member;
  std::function<long(int)> kept = [copy = std::vector<long>(4000, 2)](int i) { return copy[i % 4000]; };
  std::variant<int, std::vector<long>, std::string> changing = std::vector<long>(3000, 4);
  long total = std::get<1>(changing)[2999];
  for (int i = 0; i < 600; ++i) {
    objects[i].get()->*member += i;
    total += (objects[i].get()->*function)(i) + kept(i);
    if (auto* both = dynamic_cast<Both*>(objects[i].get())) total += both->extra[i % 300]++;
    if (typeid(*objects[i]) == typeid(Left)) ++total;
  }
  return total;
}

// A byte of an object is copied to another one, whose neighbours lie across a page's edge; not optimised, both have the same base.
struct Flag {
  char value;
};
struct Record {
  Flag first;
  char between[1002];
  Flag last;
  int number;

  [[gnu::noinline]] int take(int n) {
    last = first;
    number += n;
    first.value ^= 64;
    return first.value;
  }
};
static unsigned long members() {
  constexpr size_t kPage = 4096, kBytes = 3 * kPage;
  char* memory = static_cast<char*>(aligned_alloc(kPage, kBytes));
  CHECK_SPILLED(memory);
  unsigned long total = 0;
  for (size_t at = kPage - sizeof(Record); at < 2 * kPage; at += 4) {
    memset(memory, 9, kBytes);
    Record* record = reinterpret_cast<Record*>(memory + at);
    HIDE(record);
    record->first.value = char(at / 4 % 50);
    record->number = int(at);
    if (at % kPage == 8) push_out(2000000);
    total = total * 31 + static_cast<unsigned long>(record->take(3));
    CHECK(record->last.value == char(at / 4 % 50) && record->first.value == char(at / 4 % 50 + 64));
    CHECK(record->number == int(at) + 3 && memory[at - 1] == 9 && record->between[0] == 9);
  }
  free(memory);
  return total;
}

int main() {
  printf("early %ld\n", early_sum);
  printf("exceptions %ld\n", exceptions());
  printf("coroutines %ld\n", coroutines());
  threads();
  printf("threads %ld\n", freed.load());
  printf("pointers %ld\n", pointers());
  printf("members %lu\n", members());
}
