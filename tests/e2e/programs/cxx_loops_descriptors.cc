// A loop of tasks (spillway/task.h) where descriptors are few: it has fewer workers than were asked for, but not one alone.
// flags: -std=c++17 -pthread
// levels: O2
// memory: 8M
// chaos: 0
// evictions: none, it is about threads
// storage: memory:16M
#include "../../../include/spillway/task.h"

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>

#include "e2e.h"

namespace {

using Clock = std::chrono::steady_clock;

thread_local bool is_counted = false;

// On how many threads a loop runs that asks for 32 workers. Iterations wait until there are two, or for 20 seconds.
int count_threads() {
  std::atomic<int> threads{0};
  spillway::LoopOptions options;
  options.workers = options.tasks = 32;
  const auto end = Clock::now() + std::chrono::seconds(20);
  spillway::parallel_for(0, 64, options, [&](int) {
    if (!is_counted) ++threads;
    is_counted = true;
    while (__spillway_run_loop != nullptr && threads < 2 && Clock::now() < end) usleep(1000);
  });
  return threads;
}

}  // namespace

int main() {
  rlimit limit;
  CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = 40;
  CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  const int threads = count_threads();
  limit.rlim_cur = before;
  CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  CHECK(threads >= (__spillway_run_loop != nullptr ? 2 : 1));
  puts("several threads");
}
