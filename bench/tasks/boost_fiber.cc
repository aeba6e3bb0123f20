// The cases of `spillway bench tasks` (cases.h) on Boost.Fiber. It has one kind of mutex, and no semaphore.
#include <boost/fiber/all.hpp>
#include <chrono>
#include <thread>
#include <vector>

#include "cases.h"

namespace {

using boost::fibers::fiber;
using boost::fibers::launch;
using cases::Run;

// Of what Boost.Fiber has, the quickest in these cases.
class Semaphore {
 public:
  void release(uint64_t count = 1) {
    {
      std::unique_lock lock(mutex_);
      permits_ += count;
    }
    if (count == 1)
      condition_.notify_one();
    else
      condition_.notify_all();
  }
  void acquire() {
    std::unique_lock lock(mutex_);
    while (permits_ == 0) condition_.wait(lock);
    --permits_;
  }

 private:
  boost::fibers::mutex mutex_;
  boost::fibers::condition_variable condition_;
  uint64_t permits_ = 0;
};

// Boost's default, but for threads that have nothing to do: they look again at once, as ours do for a while, instead of sleeping.
class Awake final : public boost::fibers::algo::round_robin {
 public:
  void suspend_until(const std::chrono::steady_clock::time_point&) noexcept override {
    __builtin_ia32_pause();
  }
  void notify() noexcept override {}
};

void measure_switch(Run& run) {
  cases::stay_on_cpu(0);
  auto yields = [&] {
    for (uint64_t left = run.count / 2; left > 0; --left) {
      boost::this_fiber::yield();
      ++run.operations;
    }
  };
  run.watch.start();
  fiber one(launch::post, yields);
  fiber other(launch::post, yields);
  one.join();
  other.join();
  run.watch.stop();
}

void measure_spawn(Run& run) {
  cases::stay_on_cpu(0);
  boost::fibers::pooled_fixedsize_stack stacks;  // reused, as ours are
  run.watch.start();
  for (uint64_t left = run.count; left > 0; --left)
    fiber(launch::post, std::allocator_arg, stacks, [&] { ++run.operations; }).join();
  run.watch.stop();
}

// The one that answers runs as run_other(f) makes it run, until the function that this returns has returned.
template <class RunOther>
void measure_notify(Run& run, RunOther run_other) {
  Semaphore there;
  Semaphore back;
  uint64_t answers = 0;
  auto other = run_other([&] {
    for (uint64_t left = run.count / 2; left > 0; --left) {
      there.acquire();
      ++answers;
      back.release();
    }
  });
  run.watch.start();
  for (uint64_t left = run.count / 2; left > 0; --left) {
    there.release();
    back.acquire();
    ++run.operations;
  }
  run.watch.stop();
  other.join();
  run.operations += answers;
}

void measure_notify_local(Run& run) {
  cases::stay_on_cpu(0);
  measure_notify(run, [](auto f) { return fiber(launch::post, f); });
}

void measure_notify_remote(Run& run) {
  measure_notify(run, [](auto f) {
    std::thread other([f] {
      cases::stay_on_cpu(1);
      boost::fibers::use_scheduling_algorithm<Awake>();
      f();
    });
    cases::stay_on_cpu(0);
    boost::fibers::use_scheduling_algorithm<Awake>();
    return other;
  });
}

void measure_mutex(Run& run) {
  cases::stay_on_cpu(0);
  fiber([&] {
    boost::fibers::mutex mutex;
    run.watch.start();
    for (uint64_t left = run.count; left > 0; --left) {
      mutex.lock();
      ++run.operations;
      mutex.unlock();
    }
    run.watch.stop();
  }).join();
}

void measure_alive(Run& run) {
  cases::stay_on_cpu(0);
  Semaphore end;
  std::vector<fiber> tasks(run.count);
  uint64_t begun = 0;
  cases::measure_alive(
      run,
      [&] {
        for (fiber& task : tasks)
          task = fiber(launch::post, [&] {
            ++begun;
            end.acquire();
            ++run.operations;
          });
        while (begun < run.count) boost::this_fiber::yield();
      },
      [&] {
        end.release(run.count);
        for (fiber& task : tasks) task.join();
      });
}

constexpr cases::Case kCases[] = {
    {"switch", measure_switch},
    {"spawn", measure_spawn},
    {"notify_local", measure_notify_local},
    {"notify_remote", measure_notify_remote},
    {"mutex", measure_mutex},
    {"mutex_local", measure_mutex},
    {"alive", measure_alive},
};

}  // namespace

int main(int argc, char** argv) { return cases::run_words(argc, argv, kCases); }
