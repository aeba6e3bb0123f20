// A deterministic run of a scheduler: one thread plays all workers, and one seed decides at each choice point (choice.h) which
// of them goes on, which runnable task is next, and when time passes. Only in the tests' build of this folder.
//
//   Simulation simulation(seed);
//   scheduler.open({.worker_count = 3}); scheduler.run(...);
//   simulation.decision_count()
//
// Time stands still but for a step at each decision, and jumps to the next deadline when all workers sleep. When they all sleep
// without one, a wake-up was lost or the tasks wait for each other: the process ends with the seed and a dump of all tasks.
// What it does not show: reorderings of memory by the CPU. Steps between two choice points are one.
#pragma once
#include <cstdint>

namespace task {

class Simulation {
 public:
  // At each choice point another worker goes on once in `calm` times.
  explicit Simulation(uint64_t seed, uint32_t calm = 4);
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  uint64_t decision_count() const;
};

}  // namespace task
