// The cases of `spillway bench tasks` (cases.h) on threads of the C library, with its semaphores and mutexes.
#include <pthread.h>
#include <semaphore.h>

#include <atomic>
#include <vector>

#include "cases.h"

namespace {

using cases::Run;

// A thread that calls `f`, which outlives it.
template <class F>
pthread_t start(F& f) {
  pthread_t thread;
  auto* const entry = +[](void* function) -> void* {
    (*static_cast<F*>(function))();
    return nullptr;
  };
  errno = pthread_create(&thread, nullptr, entry, &f);
  if (errno != 0) cases::fail("pthread_create");
  return thread;
}

void join(pthread_t thread) { pthread_join(thread, nullptr); }

class Semaphore {
 public:
  Semaphore() { sem_init(&semaphore_, 0, 0); }
  void release() { sem_post(&semaphore_); }
  void acquire() {
    while (sem_wait(&semaphore_) != 0 && errno == EINTR) {
    }
  }

 private:
  sem_t semaphore_;
};

void measure_switch(Run& run) {
  cases::stay_on_cpu(0);
  std::atomic<uint64_t> operations{0};
  auto yields = [&] {
    for (uint64_t left = run.count / 2; left > 0; --left) sched_yield();
    operations += run.count / 2;
  };
  run.watch.start();
  const pthread_t one = start(yields);
  const pthread_t other = start(yields);
  join(one);
  join(other);
  run.watch.stop();
  run.operations = operations;
}

void measure_spawn(Run& run) {
  cases::stay_on_cpu(0);
  auto nothing = [&] { ++run.operations; };
  run.watch.start();
  for (uint64_t left = run.count; left > 0; --left) join(start(nothing));
  run.watch.stop();
}

void measure_notify(Run& run, int other_cpu) {
  Semaphore there;
  Semaphore back;
  uint64_t answers = 0;
  auto answer = [&] {
    cases::stay_on_cpu(other_cpu);
    for (uint64_t left = run.count / 2; left > 0; --left) {
      there.acquire();
      ++answers;
      back.release();
    }
  };
  const pthread_t other = start(answer);
  cases::stay_on_cpu(0);
  run.watch.start();
  for (uint64_t left = run.count / 2; left > 0; --left) {
    there.release();
    back.acquire();
    ++run.operations;
  }
  run.watch.stop();
  join(other);
  run.operations += answers;
}

void measure_mutex(Run& run) {
  cases::stay_on_cpu(0);
  // The C library spares itself atomic operations while there has been one thread only.
  auto nothing = [] {};
  join(start(nothing));
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  run.watch.start();
  for (uint64_t left = run.count; left > 0; --left) {
    pthread_mutex_lock(&mutex);
    ++run.operations;
    pthread_mutex_unlock(&mutex);
  }
  run.watch.stop();
}

// A thread has a stack in the kernel, too.
uint64_t kernel_stack_bytes() { return cases::bytes_of("/proc/meminfo", "KernelStack:"); }

void measure_alive(Run& run) {
  cases::stay_on_cpu(0);
  Semaphore begun;
  Semaphore end;
  std::atomic<uint64_t> operations{0};
  auto wait = [&] {
    begun.release();
    end.acquire();
    ++operations;
  };
  std::vector<pthread_t> threads(run.count);
  const uint64_t kernel_bytes = kernel_stack_bytes();
  uint64_t more_kernel_bytes = 0;
  cases::measure_alive(
      run,
      [&] {
        for (pthread_t& thread : threads) thread = start(wait);
        for (uint64_t left = run.count; left > 0; --left) begun.acquire();
      },
      [&] {
        more_kernel_bytes = kernel_stack_bytes() - kernel_bytes;
        for (uint64_t left = run.count; left > 0; --left) end.release();
        for (const pthread_t thread : threads) join(thread);
      });
  run.bytes += more_kernel_bytes;
  run.operations = operations;
}

constexpr cases::Case kCases[] = {
    {"switch", measure_switch},
    {"spawn", measure_spawn},
    {"notify_local", [](Run& run) { measure_notify(run, 0); }},
    {"notify_remote", [](Run& run) { measure_notify(run, 1); }},
    {"mutex", measure_mutex},
    {"mutex_local", measure_mutex},
    {"alive", measure_alive},
};

}  // namespace

int main(int argc, char** argv) { return cases::run_words(argc, argv, kCases); }
