// The cases of `spillway bench tasks` (cases.h) on the project's own tasks.
#include <vector>

#include "base/check.h"
#include "cases.h"
#include "task/scheduler.h"
#include "task/sync.h"

namespace {

using cases::Run;

// A task that calls `f`, which outlives it.
template <class F>
task::TaskParameters calls(F& f, task::Worker* worker = nullptr) {
  return {.name = "bench",
          .entry = [](void* function) { (*static_cast<F*>(function))(); },
          .argument = &f,
          .worker = worker};
}

template <class F>
task::Task& start(F& f, task::Worker* worker = nullptr) {
  auto task = task::spawn(calls(f, worker));
  CHECK(task.has_value());
  return **task;
}

// Calls body(scheduler) as a task of the first worker.
template <class F>
void in_tasks(uint32_t worker_count, F body) {
  if (worker_count == 1) cases::stay_on_cpu(0);
  task::Scheduler scheduler;
  auto opened = scheduler.open({.worker_count = worker_count, .pinned = true});
  CHECK(opened.has_value());
  auto main_task = [&] { body(scheduler); };
  auto ran = scheduler.run(calls(main_task));
  CHECK(ran.has_value());
  scheduler.close();
}

void measure_switch(Run& run) {
  in_tasks(1, [&](task::Scheduler&) {
    auto yields = [&] {
      for (uint64_t left = run.count / 2; left > 0; --left) {
        task::yield();
        ++run.operations;
      }
    };
    run.watch.start();
    task::Task& one = start(yields);
    task::Task& other = start(yields);
    task::join(one);
    task::join(other);
    run.watch.stop();
  });
}

void measure_spawn(Run& run) {
  in_tasks(1, [&](task::Scheduler&) {
    auto nothing = [&] { ++run.operations; };
    run.watch.start();
    for (uint64_t left = run.count; left > 0; --left) task::join(start(nothing));
    run.watch.stop();
  });
}

template <class Semaphore>
void measure_notify(Run& run, uint32_t worker_count) {
  in_tasks(worker_count, [&](task::Scheduler& scheduler) {
    Semaphore there(0);
    Semaphore back(0);
    uint64_t answers = 0;
    auto answer = [&] {
      for (uint64_t left = run.count / 2; left > 0; --left) {
        CHECK(there.acquire() == task::Woken::kNotified);
        ++answers;
        back.release();
      }
    };
    task::Task& other = start(answer, &scheduler.worker(worker_count - 1));
    run.watch.start();
    for (uint64_t left = run.count / 2; left > 0; --left) {
      there.release();
      CHECK(back.acquire() == task::Woken::kNotified);
      ++run.operations;
    }
    run.watch.stop();
    task::join(other);
    run.operations += answers;
  });
}

template <class Mutex>
void measure_mutex(Run& run) {
  in_tasks(1, [&](task::Scheduler&) {
    Mutex mutex;
    run.watch.start();
    for (uint64_t left = run.count; left > 0; --left) {
      mutex.lock();
      ++run.operations;
      mutex.unlock();
    }
    run.watch.stop();
  });
}

void measure_alive(Run& run) {
  in_tasks(1, [&](task::Scheduler&) {
    task::IntraSemaphore end(0);
    std::vector<task::Task*> tasks(run.count);
    uint64_t begun = 0;
    auto wait = [&] {
      ++begun;
      CHECK(end.acquire() == task::Woken::kNotified);
      ++run.operations;
    };
    cases::measure_alive(
        run,
        [&] {
          for (task::Task*& task : tasks) task = &start(wait);
          while (begun < run.count) task::yield();
        },
        [&] {
          end.release(static_cast<uint32_t>(run.count));
          for (task::Task* task : tasks) task::join(*task);
        });
  });
}

constexpr cases::Case kCases[] = {
    {"switch", measure_switch},
    {"spawn", measure_spawn},
    {"notify_local", [](Run& run) { measure_notify<task::IntraSemaphore>(run, 1); }},
    {"notify_remote", [](Run& run) { measure_notify<task::InterSemaphore>(run, 2); }},
    {"mutex", measure_mutex<task::InterMutex>},
    {"mutex_local", measure_mutex<task::IntraMutex>},
    {"alive", measure_alive},
};

}  // namespace

int main(int argc, char** argv) { return cases::run_words(argc, argv, kCases); }
