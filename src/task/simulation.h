// Simulation: a deterministic run of a scheduler. One thread plays all workers, and a seed decides at each choice point (choice.h) which
// worker continues, which runnable task is next, and when time passes. Only in the tests' build of this folder.
//
//   Simulation simulation(seed);
//   scheduler.open({.worker_count = 3}); scheduler.run(...);
//   simulation.decision_count()
//
// Time advances by a step at each decision, and jumps to the next deadline when all workers sleep. If they all sleep without one, a wakeup
// was lost or the tasks wait for each other: the process ends with the seed and a dump of all tasks. Memory reorderings by the CPU are not
// simulated: what is done between two choice points is one step.
#pragma once
#include <cstdint>

namespace task {

class Simulation {
 public:
  // At one in `calm` choice points, on average, another worker continues.
  explicit Simulation(uint64_t seed, uint32_t calm = 4);
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  uint64_t decision_count() const;
};

}  // namespace task
