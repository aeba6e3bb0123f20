// Scheduler: the threads of its workers.
#include "sys/threads.h"

#include "base/bits.h"
#include "sys/signals.h"
#include "task/scheduler.h"

namespace task {
namespace {

// Pins the thread to the index-th of the CPUs that the process may use, counting round and round.
void pin_to_cpu(uint32_t index) {
  const uint32_t cpu = sys::cpu_at(sys::own_cpus(), index);
  if (cpu == sys::kNoCpu) return;
  sys::Cpus one;
  base::set_bit(one.words, cpu);
  sys::stay_on(one);
}

}  // namespace

base::Expected<void> Scheduler::start_workers(uint32_t& started_count) {
  const auto run_worker = [](void* argument) {
    Worker& worker = *static_cast<Worker*>(argument);
    Scheduler& scheduler = worker.scheduler();
    if (scheduler.parameters_.pinned) pin_to_cpu(worker.index());
    // Tasks are the program's code: they get signals like the thread that calls run.
    sys::set_signal_mask(scheduler.signal_mask_);
    SignalStack signals;
    static_cast<void>(signals.open().has_value());  // without it, an overflow ends the process without a word
    scheduler.run_worker(worker);
    signals.close();
  };
  static_cast<void>(signal_stack_.open().has_value());
  signal_mask_ = sys::signal_mask();
  for (uint32_t i = 1; i < worker_count_; ++i) {
    auto thread = sys::start_thread(run_worker, &workers_[i], "spillway-task");
    if (!thread) return std::unexpected(thread.error());
    threads_[i] = *thread;
    started_count = i + 1;
  }
  return {};
}

void Scheduler::join_workers(uint32_t started_count) {
  for (uint32_t i = 1; i < started_count; ++i) sys::join_thread(threads_[i]);
  signal_stack_.close();
}

}  // namespace task
