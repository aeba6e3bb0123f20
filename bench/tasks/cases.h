// What the programs of `spillway bench tasks` share, one program for each runtime: their words and their answer.
//
//   PROGRAM CASE COUNT     does COUNT operations of the case, an even number, and answers with one line of JSON
//   {"operations": N, "cpu_ns": N, "wall_ns": N}
//   {"operations": N, "spawn_ns": N, "end_ns": N, "bytes": N, "page_table_bytes": N}      of `alive`
//
// | case              | an operation is                                                                             |
// |-------------------|---------------------------------------------------------------------------------------------|
// | switch            | a yield: two tasks of one core, each to the other                                           |
// | spawn             | start and join of a task that does nothing                                                  |
// | notify_local      | a semaphore's release that the other task of the core waits for, which is switched to       |
// | notify_remote     | the same with a core for each of both                                                       |
// | mutex             | lock and unlock, by one task, of a mutex for all cores                                      |
// | mutex_local       | the same of the cheapest mutex that one core's tasks need                                   |
// | alive             | a task that has begun and waits; all at once, then all are woken and joined. Times are CPU  |
// |                   | time, bytes what the process has more of while they wait                                    |
//
// 1 operations are counted by the tasks that do them: a program that did less than it was asked for says so
// 2 what is measured begins when the tasks' runtime is there, and ends when they have been joined
// 3 a case of one core runs on one CPU, whatever the runtime
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../measure.h"

namespace cases {

// What a case fills in. `operations` is counted by its tasks.
struct Run {
  uint64_t count = 0;
  uint64_t operations = 0;
  Stopwatch watch;
  // Of `alive`.
  uint64_t spawn_ns = 0;
  uint64_t end_ns = 0;
  uint64_t bytes = 0;
  uint64_t page_table_bytes = 0;
};

// The steps of `alive`; spawn_all returns when all tasks wait, and end_all when all have been joined.
template <class SpawnAll, class EndAll>
void measure_alive(Run& run, SpawnAll spawn_all, EndAll end_all) {
  const Memory before;
  run.watch.start();
  spawn_all();
  run.watch.stop();
  run.spawn_ns = run.watch.cpu_ns();
  const Memory meanwhile;
  run.page_table_bytes = meanwhile.page_table_bytes - before.page_table_bytes;
  run.bytes = meanwhile.resident_bytes - before.resident_bytes + run.page_table_bytes;
  run.watch.start();
  end_all();
  run.watch.stop();
  run.end_ns = run.watch.cpu_ns();
}

struct Case {
  const char* name;
  void (*measure)(Run& run);
};

// Of main: what the words ask for.
template <size_t N>
int run_words(int argc, char** argv, const Case (&all)[N]) {
  constexpr uint64_t kMaxOperations = 1'000'000'000'000;
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s CASE COUNT; the driver of the benchmark `tasks` runs it\n", argv[0]);
    return 2;
  }
  Run run;
  char* end = nullptr;
  run.count = std::strtoull(argv[2], &end, 10);
  if (*end != 0 || argv[2][0] < '0' || argv[2][0] > '9' || run.count == 0 || run.count % 2 != 0 ||
      run.count > kMaxOperations) {
    std::fprintf(stderr, "%s: not a count: %s; give an even number from 2 to 10^12\n", argv[0], argv[2]);
    return 2;
  }
  for (const Case& one : all) {
    if (std::strcmp(one.name, argv[1]) != 0) continue;
    one.measure(run);
    std::printf("{\"operations\": %ju, ", static_cast<uintmax_t>(run.operations));
    if (run.bytes > 0)
      std::printf("\"spawn_ns\": %ju, \"end_ns\": %ju, \"bytes\": %ju, \"page_table_bytes\": %ju}\n",
                  static_cast<uintmax_t>(run.spawn_ns), static_cast<uintmax_t>(run.end_ns),
                  static_cast<uintmax_t>(run.bytes), static_cast<uintmax_t>(run.page_table_bytes));
    else
      std::printf("\"cpu_ns\": %ju, \"wall_ns\": %ju}\n", static_cast<uintmax_t>(run.watch.cpu_ns()),
                  static_cast<uintmax_t>(run.watch.wall_ns()));
    if (run.operations == run.count) return 0;
    std::fprintf(stderr, "%s: %s did %ju operations, not %ju\n", argv[0], argv[1],
                 static_cast<uintmax_t>(run.operations), static_cast<uintmax_t>(run.count));
    return 1;
  }
  std::fprintf(stderr, "%s: no case is called %s; there are", argv[0], argv[1]);
  for (const Case& one : all) std::fprintf(stderr, "%s %s", &one == all ? "" : ",", one.name);
  std::fputc('\n', stderr);
  return 2;
}

}  // namespace cases
