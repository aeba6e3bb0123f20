// Exceptions whose objects are spilled, thrown through frames with cleanups while pages come and go; and
// coroutines, whose frames are.
// flags: -std=c++20
// levels: O0 O2 thin
// expect: cache.evictions>=1000
#include <coroutine>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>
#include "e2e.h"

struct Failure : std::runtime_error {
  Failure(const std::string& what, int depth) : std::runtime_error(what), details(200, depth) {}
  std::vector<int> details;
};
static int cleaned = 0;
struct Cleanup {
  explicit Cleanup(int n) : text("cleanup with a long text number " + std::to_string(n)) {}
  ~Cleanup() { cleaned += static_cast<int>(text.size()) > 30; }
  std::string text;
};

__attribute__((noinline)) static int deep(int depth, int limit) {
  Cleanup cleanup(depth);
  std::vector<int> local(500, depth);
  HIDE(depth);
  if (depth == limit) throw Failure("thrown at depth " + std::to_string(depth), depth);
  int result = deep(depth + 1, limit) + local[depth % 500];
  HIDE(result);
  return result;
}

template <class T>
struct Generator {
  struct promise_type {
    T value;
    std::exception_ptr error;
    Generator get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(T v) {
      value = std::move(v);
      return {};
    }
    void return_void() {}
    void unhandled_exception() { error = std::current_exception(); }
  };
  Generator(std::coroutine_handle<promise_type> h) : handle(h) {}
  Generator(Generator&& other) : handle(std::exchange(other.handle, nullptr)) {}
  ~Generator() {
    if (handle) handle.destroy();
  }
  bool next() {
    handle.resume();
    if (handle.promise().error) std::rethrow_exception(handle.promise().error);
    return !handle.done();
  }
  std::coroutine_handle<promise_type> handle;
};

static Generator<std::string> count(int from, int to) {
  int filler[300];
  for (int& f : filler) f = from;
  for (int i = from; i < to; ++i) {
    filler[i % 300] += i;
    co_yield "coroutine value " + std::to_string(i + filler[(i + 1) % 300]);
    if (i == from + 12) throw Failure("coroutine failed", i);
  }
}

int main() {
  long sum = 0;
  for (int round = 0; round < 60; ++round) {
    try {
      sum += deep(0, 5 + round);
    } catch (const Failure& failure) {
      CHECK_SPILLED(failure.details.data());
      sum += failure.details[199] + static_cast<long>(std::string(failure.what()).size());
    }
    if (round % 10 == 0) push_out(2 << 20);
  }
  printf("%ld %d\n", sum, cleaned);

  std::vector<std::exception_ptr> kept;
  for (int i = 0; i < 800; ++i) {
    try {
      throw Failure("kept " + std::to_string(i), i);
    } catch (...) {
      kept.push_back(std::current_exception());
    }
  }
  push_out(3 << 20);
  for (int i = 0; i < 800; ++i) {
    try {
      std::rethrow_exception(kept[i]);
    } catch (const Failure& failure) {
      CHECK(failure.details[100] == i && failure.what() == "kept " + std::to_string(i));
    }
  }
  try {
    try {
      throw std::string("a string that is thrown and does not fit the short form");
    } catch (std::string& text) {
      text += ", twice";
      throw;
    }
  } catch (const std::string& text) {
    printf("%s\n", text.c_str());
  }

  std::vector<Generator<std::string>> generators;
  for (int i = 0; i < 700; ++i) generators.push_back(count(i, i + 20));
  if (runs_spilled()) CHECK_SPILLED(generators[0].handle.address());
  size_t bytes = 0;
  int failed = 0;
  for (int turn = 0; turn < 14; ++turn)
    for (auto& generator : generators) {
      try {
        if (!generator.handle.done() && generator.next()) bytes += generator.handle.promise().value.size();
      } catch (const Failure&) {
        ++failed;
      }
    }
  printf("%zu %d\n", bytes, failed);
  return 0;
}
