#include "task/scheduler.h"

#include <new>

#include "base/check.h"
#include "base/log.h"
#include "sys/kernel.h"
#include "sys/memory.h"
#include "task/overflow.h"

namespace task {
namespace {

constexpr size_t kRecordBytes = base::round_up(sizeof(Task), 64);
constexpr size_t kMinStackBytes = 2 * base::kOsPageBytes;
constexpr size_t kMaxStackBytes = size_t{1} << 30;

const char* name_of(State state) {
  switch (state) {
    case State::kUnused: return "unused";
    case State::kRunnable: return "runnable";
    case State::kRunning: return "running";
    case State::kBlocked: return "blocked";
    case State::kEnded: return "ended";
  }
  return "?";
}

void run_task(void* argument) {
  Task& task = *static_cast<Task*>(argument);
  task.worker->begin();
  task.entry(task.argument);
  task.ended.fulfil();
  task.worker->end();
}

}  // namespace

base::Expected<void> Scheduler::open(const SchedulerParameters& parameters) {
  const size_t stack_bytes = base::round_up(parameters.stack_bytes, base::kOsPageBytes);
  if (parameters.worker_count == 0 || parameters.worker_count > kMaxWorkers)
    return base::failure(EINVAL, "from 1 to ", uint64_t{kMaxWorkers}, " workers, not ",
                         uint64_t{parameters.worker_count});
  if (stack_bytes < kMinStackBytes || stack_bytes > kMaxStackBytes)
    return base::failure(EINVAL, "stacks of tasks have from ", base::Bytes{kMinStackBytes}, " to ",
                         base::Bytes{kMaxStackBytes}, ", not ", base::Bytes{parameters.stack_bytes});
  parameters_ = parameters;
  if (auto opened = stacks_.open(stack_bytes, parameters.guard_bytes); !opened) return opened;
  auto memory =
      sys::map_anonymous(parameters.worker_count * (sizeof(Worker) + sizeof(sys::Thread)), "workers");
  if (!memory) {
    stacks_.close();
    return std::unexpected(memory.error());
  }
  workers_ = reinterpret_cast<Worker*>(*memory);
  threads_ = reinterpret_cast<sys::Thread*>(*memory + parameters.worker_count * sizeof(Worker));
  worker_count_ = parameters.worker_count;
  for (uint32_t i = 0; i < worker_count_; ++i) {
    new (&workers_[i]) Worker;
    new (&threads_[i]) sys::Thread;
  }
  for (uint32_t i = 0; i < worker_count_; ++i) {
    if (auto opened = workers_[i].open(*this, i); !opened) {
      close();
      return opened;
    }
  }
  return {};
}

void Scheduler::close() {
  CHECK(has_ended());
  for (uint32_t i = 0; i < worker_count_; ++i) workers_[i].close();
  sys::unmap(workers_, worker_count_ * (sizeof(Worker) + sizeof(sys::Thread)));
  worker_count_ = 0;
  stacks_.close();
}

Task* Scheduler::record_of(uint32_t slot) const {
  return reinterpret_cast<Task*>(stacks_.stack_of(slot) + stacks_.stack_bytes() - kRecordBytes);
}

base::Expected<Task*> Scheduler::spawn(const TaskParameters& parameters) {
  const size_t closure_bytes = base::round_up(parameters.closure_bytes, 64);
  CHECK_LE(closure_bytes, stacks_.stack_bytes() / 4);
  auto slot = stacks_.take();
  if (!slot) return std::unexpected(slot.error());
  Task* const task = new (record_of(*slot)) Task;
  task->slot = *slot;
  task->worker = parameters.worker != nullptr ? parameters.worker : Worker::current();
  CHECK(task->worker != nullptr);
  task->entry = parameters.entry;
  task->argument = parameters.argument;
  for (size_t i = 0; i + 1 < Task::kNameBytes && parameters.name[i] != 0; ++i)
    task->name[i] = parameters.name[i];
  char* const stack_end = reinterpret_cast<char*>(task) - closure_bytes;
  if (parameters.closure != nullptr) {
    __builtin_memcpy(stack_end, parameters.closure, parameters.closure_bytes);
    task->argument = stack_end;
  }
  task->wake_message.task = task->cancel_message.task = task;
  task->cancel_message.is_cancel = true;
  task->references.store(2, std::memory_order_relaxed);
  char* const stack = stacks_.stack_of(*slot);
  task->fiber.start(stack, static_cast<size_t>(stack_end - stack), run_task, task);
  live_count_.fetch_add(1, std::memory_order_relaxed);
  if (task->worker == Worker::current())
    task->worker->make_runnable(*task);
  else
    task->worker->post(task->wake_message);
  return task;
}

void Scheduler::release(Task& task) {
  // Acquire and release: the slot is given back only after all others' accesses to the record.
  if (task.references.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  const uint32_t slot = task.slot;
  task.state.store(State::kUnused, std::memory_order_relaxed);
  stacks_.give_back(slot);
}

void Scheduler::ended(Task& task) {
  release(task);
  let_go();
}

void Scheduler::let_go() {
  // Release: pairs with has_ended(), so that what tasks did happens before the end of run().
  if (live_count_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  for (uint32_t i = 0; i < worker_count_; ++i) workers_[i].rouse();
}

base::Expected<void> Scheduler::run(const TaskParameters& parameters) {
  live_count_.fetch_add(1, std::memory_order_relaxed);  // so that workers stay until the first task exists
  uint32_t started_count = 1;
  auto result = start_workers(started_count);
  if (result) {
    TaskParameters first = parameters;
    if (first.worker == nullptr) first.worker = &workers_[0];
    if (auto task = spawn(first); task)
      release(**task);
    else
      result = std::unexpected(task.error());
  }
  let_go();
  run_worker(workers_[0]);
  join_workers(started_count);
  return result;
}

void Scheduler::run_worker(Worker& worker) {
  if (parameters_.worker_begins != nullptr) parameters_.worker_begins(worker, parameters_.context);
  worker.run();
  if (parameters_.worker_ends != nullptr) parameters_.worker_ends(worker, parameters_.context);
}

void Scheduler::for_each_task(void (*f)(void* context, const Task& task), void* context) {
  const uint32_t count = stacks_.slot_count();
  for (uint32_t slot = 0; slot < count; ++slot) {
    const Task& task = *record_of(slot);
    if (task.state.load(std::memory_order_relaxed) != State::kUnused) f(context, task);
  }
}

void Scheduler::dump() {
  for_each_task(
      [](void*, const Task& task) {
        const State state = task.state.load(std::memory_order_relaxed);
        const char* const waits_for = task.waits_for.load(std::memory_order_relaxed);
        const bool waits = state == State::kBlocked && waits_for != nullptr;
        base::log("task ", task.name, " of worker ", uint64_t{task.worker->index()}, ": ", name_of(state),
                  waits ? ", waits for " : "", waits ? waits_for : "");
      },
      nullptr);
}

void Scheduler::say_overflow(const Task& task) const {
  base::log("task ", task.name, " has used more than its stack of ", base::Bytes{stacks_.stack_bytes()},
            "; give tasks larger stacks");
}

void Scheduler::report_overflow(const Task& task) {
  say_overflow(task);
  __builtin_trap();
}

base::Expected<Task*> spawn(const TaskParameters& parameters) {
  return self().worker->scheduler().spawn(parameters);
}

Woken join(Task& task, const Limit& limit) {
  const Woken woken = task.ended.wait(limit);
  if (woken == Woken::kNotified) task.worker->scheduler().release(task);
  return woken;
}

void detach(Task& task) { task.worker->scheduler().release(task); }

void cancel(Task& task) {
  if (task.cancelled.exchange(true, std::memory_order_relaxed)) return;
  task.references.fetch_add(1, std::memory_order_relaxed);  // the message's
  task.worker->post(task.cancel_message);
}

bool is_cancelled() { return self().cancelled.load(std::memory_order_relaxed); }

void yield() { self().worker->yield(); }

Woken sleep_until(uint64_t deadline_ns) {
  class Sleep final : public Waiting {
   public:
    const char* what() const override { return "time to pass"; }
    bool abandon() override { return true; }
  } sleep;
  return block(sleep, {.deadline_ns = deadline_ns});
}

}  // namespace task
