#include "spill/loop.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <new>

#include "base/log.h"
#include "spill/access.h"
#include "spill/banks.h"
#include "spill/fork.h"
#include "spill/intercept/mutex.h"
#include "spill/runtime.h"
#include "spill/signals.h"
#include "sys/kernel.h"
#include "sys/memory.h"
#include "sys/signals.h"
#include "sys/threads.h"
#include "task/scheduler.h"

namespace spill {
namespace {

constexpr uint32_t kTasksPerWorker = 32;
constexpr uint32_t kMaxTasks = 1 << 16;
constexpr uint64_t kStackBytes = 64 << 10;
constexpr uint64_t kGuardBytes = 64 << 10;  // bodies may be any code: few stack frames are larger
constexpr uint64_t kGrainsPerTask = 8;
// Frames that a task or a thread of the program may hold in its slots, as a rule.
constexpr uint32_t kFramesHeld = 4;

// How long until a load that another thread does, or for which there is no room, is looked at again.
constexpr uint64_t kRetryNs = 20'000;
constexpr uint32_t kMaxRetries = 5'000;
// The longest that a signal waits if it comes just before a worker sleeps.
constexpr uint64_t kMaxSleepNs = 100'000'000;

struct Loop;

// A worker's share of a loop: its queue of loads, which it polls between its tasks.
class LoopWorker final : public base::Poller {
 public:
  size_t poll() override;
  base::Quiet quiet() override;

  task::Worker* worker = nullptr;
  Thread* thread = nullptr;
  cache::LoadQueue* loads = nullptr;  // null: none could be opened; its tasks are not suspended
  LoopTask* retrying = nullptr;       // tasks that wait for something that nobody will wake them for
  uint64_t retry_ns = 0;
};

}  // namespace

struct LoopTask final : public task::Waiting {
  const char* what() const override { return "a page"; }
  bool abandon() override { return false; }

  Loop* loop = nullptr;
  LoopWorker* worker = nullptr;
  task::Task* task = nullptr;  // once it runs
  Bank* bank = nullptr;
  cache::Stream stream;
  volatile uint64_t last = 0;  // end of the indices that it has taken; 0 in a child of fork
  LoopTask* next = nullptr;    // in LoopWorker::retrying
};

namespace {

struct Loop {
  void (*run)(void* context, uint64_t first, const volatile uint64_t* last) = nullptr;
  void* context = nullptr;
  uint64_t count = 0;
  uint64_t grain = 0;
  uint32_t task_count = 0;
  uint32_t worker_count = 0;
  uint64_t stack_bytes = 0;
  LoopWorker* workers = nullptr;
  LoopTask* tasks = nullptr;
  std::atomic<uint64_t> next{0};
  // The caller's, with which tasks begin.
  uint32_t sse_control = 0;
  uint16_t x87_control = 0;

  bool take(uint64_t& first, LoopTask& task);
};

// Does not overflow, however large the count.
bool Loop::take(uint64_t& first, LoopTask& task) {
  first = next.load(std::memory_order_relaxed);
  uint64_t last;
  do {
    if (first >= count) return false;
    last = first + std::min(grain, count - first);
  } while (!next.compare_exchange_weak(first, last, std::memory_order_relaxed));
  task.last = last;
  return true;
}

// Of its parent's loops a child of fork has only the iteration, or the handler, that forked.
void end_in_child() {
  if (loop_task_count.load(std::memory_order_relaxed) == 0) exit(0);
}

size_t LoopWorker::poll() {
  // Handlers of the program that were put off.
  InRuntime::leave(*thread);
  end_in_child();
  InRuntime::enter(*thread);
  const size_t count = loads != nullptr ? loads->poll() : 0;
  if (retrying == nullptr || (count == 0 && sys::monotonic_ns() < retry_ns)) return count;
  // What they wait for may be a load that another worker has begun and is too busy to end.
  runtime.cache->poll_loads();
  LoopTask* task = retrying;
  retrying = nullptr;
  while (task != nullptr) {
    LoopTask* const next = task->next;
    worker->make_runnable(*task->task);
    task = next;
  }
  return count;
}

base::Quiet LoopWorker::quiet() {
  base::Quiet quiet = {.until_ns = base::Quiet::kForever};
  if (loads != nullptr) quiet = loads->quiet();
  if (retrying != nullptr) quiet.until_ns = std::min(quiet.until_ns, retry_ns);
  if (thread->deferred_count != 0) quiet.until_ns = 0;
  if (quiet.until_ns > 0) quiet.until_ns = std::min(quiet.until_ns, sys::monotonic_ns() + kMaxSleepNs);
  return quiet;
}

// Compiled code may miss in the middle of an expression whose values lie in x87 or MMX registers. (thunk.S keeps the others.)
class X87State {
 public:
  X87State() { asm volatile("fnsave %0" : "=m"(bytes_)); }
  ~X87State() { asm volatile("frstor %0" : : "m"(bytes_)); }
  X87State(const X87State&) = delete;
  X87State& operator=(const X87State&) = delete;

 private:
  struct {
    unsigned char image[108];
  } bytes_;
};

// Other tasks run until this one is woken.
void suspend(Thread& thread, LoopTask& task, uint64_t live) {
  task.bank->keep(__spillway_slots, live);
  thread.task = nullptr;
  {
    const X87State kept;
    static_cast<void>(task::block(task, {.cancellable = false}));
  }
  thread.task = &task;
  task.bank->bring_back(__spillway_slots);
}

// Called by whoever ends the load. A message wakes the task even if it is only about to block.
void wake(void* context) {
  const LoopTask& task = *static_cast<LoopTask*>(context);
  task.worker->worker->post(task.task->wake_message);
}

bool may_be_suspended(const Thread& thread) {
  const LoopTask& task = *thread.task;
  return thread.runtime_depth == 1 && thread.busy_count == 0 && !thread.has_other_mask &&
         thread.top_level.load(std::memory_order_relaxed) == 0 && task.worker->loads != nullptr &&
         task.worker->worker->scheduler().is_on_its_stack(*task.task) && !is_sharing_child();
}

}  // namespace

bool miss_in_task(Thread& thread, base::PageId page, uint64_t live) {
  if (!may_be_suspended(thread)) {
    base::statistics.spill_task_misses_busy.add();
    return false;
  }
  LoopTask& task = *thread.task;
  LoopWorker& worker = *task.worker;
  for (uint32_t retries = 0; retries < kMaxRetries; ++retries) {
    const auto begun =
        runtime.cache->begin_load(page, workspace_of(thread), task.stream, *worker.loads, wake, &task);
    if (!begun) return false;  // whoever waits for the load says what is wrong
    if (*begun == cache::Partition::Begun::kDone) return true;
    if (retries == 0) base::statistics.spill_task_misses.add();
    if (*begun == cache::Partition::Begun::kUnderWay) {
      suspend(thread, task, live);
      return true;
    }
    if (worker.retrying == nullptr) worker.retry_ns = sys::monotonic_ns() + kRetryNs;
    task.next = worker.retrying;
    worker.retrying = &task;
    suspend(thread, task, live);
  }
  return false;
}

void leave_loop_in_child() {
  forget_banks();
  loop_task_count.store(0, std::memory_order_relaxed);
  Thread& thread = this_thread();
  if (thread.task == nullptr) return;
  thread.task->last = 0;
  thread.task = nullptr;
  thread.busy_count = 0;
}

namespace {

// What the program believes blocked. Either the runtime has undone its own changes, or deferred_mask is what it will return to.
uint64_t mask_now(const Thread& thread) {
  const uint64_t mask = thread.deferred_count == 0 ? sys::signal_mask() : thread.deferred_mask;
  return mask | thread.blocked_faults;
}

void run_task(void* argument) {
  LoopTask& task = *static_cast<LoopTask*>(argument);
  Loop& loop = *task.loop;
  Thread& thread = *task.worker->thread;
  task.task = &task::self();
  asm volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(loop.sse_control), "m"(loop.x87_control));
  thread.task = &task;
  thread.busy_count = 0;
  thread.has_other_mask = true;
  InRuntime::leave(thread);
  uint64_t first;
  while (loop.take(first, task)) {
    if (thread.has_other_mask) thread.has_other_mask = mask_now(thread) != thread.task_mask;
    loop.run(loop.context, first, &task.last);
    end_in_child();
  }
  InRuntime::enter(thread);
  thread.task = nullptr;
  clear_slots();
  task.bank->clear();
}

void run_first(void* argument) {
  Loop& loop = *static_cast<Loop*>(argument);
  for (uint32_t i = 1; i < loop.task_count; ++i) {
    auto task = task::spawn({.name = "iterations",
                             .entry = run_task,
                             .argument = &loop.tasks[i],
                             .worker = loop.tasks[i].worker->worker});
    if (!task) break;  // fewer will do
    task::detach(**task);
  }
  run_task(&loop.tasks[0]);
}

void begin_worker(task::Worker& worker, void* context) {
  Loop& loop = *static_cast<Loop*>(context);
  LoopWorker& own = loop.workers[worker.index()];
  own.worker = &worker;
  own.thread = &this_thread();
  if (worker.index() > 0) InRuntime::enter(*own.thread);
  own.thread->task_mask = mask_now(*own.thread);
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
  if (auto loads = runtime.cache->open_loads(); loads) own.loads = *loads;
  if (worker.add_poller(own)) return;
  // The device's descriptor cannot be waited for.
  if (own.loads != nullptr) runtime.cache->close_loads(*own.loads);
  own.loads = nullptr;
  static_cast<void>(worker.add_poller(own).has_value());
}

void end_worker(task::Worker& worker, void* context) {
  Loop& loop = *static_cast<Loop*>(context);
  LoopWorker& own = loop.workers[worker.index()];
  worker.remove_poller(own);
  // From here on nobody wakes the worker's tasks any more.
  if (own.loads != nullptr) runtime.cache->close_loads(*own.loads);
  if (worker.index() == 0) return;
  InRuntime::leave(*own.thread);
  this_thread_returned();
}

// How many tasks and workers there are; fewer than were asked for where frames are few: what suspended tasks hold cannot leave.
void choose_counts(Loop& loop) {
  if (loop.worker_count == 0) loop.worker_count = sys::cpu_count();
  loop.worker_count = std::min(loop.worker_count, task::Scheduler::kMaxWorkers);
  if (loop.task_count == 0) loop.task_count = kTasksPerWorker * loop.worker_count;
  const uint32_t frames = runtime.cache->frame_count() / 2;
  const uint64_t others = thread_count() + loop_task_count.load(std::memory_order_relaxed);
  const uint64_t most = frames / kFramesHeld > others ? frames / kFramesHeld - others : 0;
  loop.task_count = static_cast<uint32_t>(std::min<uint64_t>({loop.task_count, kMaxTasks, most}));
  if (loop.count < loop.task_count) loop.task_count = static_cast<uint32_t>(loop.count);
  loop.worker_count = std::min(loop.worker_count, loop.task_count);
  if (loop.grain == 0 && loop.task_count > 0) loop.grain = loop.count / loop.task_count / kGrainsPerTask;
  loop.grain = std::max(loop.grain, uint64_t{1});
}

bool take_banks(Loop& loop) {
  for (uint32_t i = 0; i < loop.task_count; ++i) {
    auto bank = take_bank();
    if (!bank) return false;
    loop.tasks[i].bank = *bank;
  }
  return true;
}

base::Expected<void> open_scheduler(task::Scheduler& scheduler, Loop& loop) {
  return scheduler.open({.worker_count = loop.worker_count,
                         .stack_bytes = loop.stack_bytes,
                         .guard_bytes = kGuardBytes,
                         .worker_begins = begin_worker,
                         .worker_ends = end_worker,
                         .context = &loop});
}

// False: memory or threads could not be had, and nothing has run.
bool run_on_workers(Loop& loop) {
  task::Scheduler scheduler;
  auto opened = open_scheduler(scheduler, loop);
  // A worker takes two descriptors, and these may run out if there are many CPUs, or if the process may have few.
  while (!opened && opened.error().number == EMFILE && loop.worker_count > 1) {
    loop.worker_count /= 2;
    opened = open_scheduler(scheduler, loop);
  }
  if (!opened) return false;
  for (uint32_t i = 0; i < loop.worker_count; ++i) {
    new (&loop.workers[i]) LoopWorker;
    loop.workers[i].worker = &scheduler.worker(i);
  }
  for (uint32_t i = 0; i < loop.task_count; ++i) loop.tasks[i].worker = &loop.workers[i % loop.worker_count];
  const bool ran = scheduler.run({.name = "loop", .entry = run_first, .argument = &loop}).has_value();
  scheduler.close();
  return ran;
}

// The same; allocates the memory of the loop first.
bool run_in_tasks(Loop& loop) {
  const uint64_t bytes = loop.worker_count * sizeof(LoopWorker) + loop.task_count * sizeof(LoopTask);
  auto memory = sys::map_anonymous(bytes, "a loop's tasks");
  if (!memory) return false;
  loop.workers = reinterpret_cast<LoopWorker*>(*memory);
  loop.tasks = reinterpret_cast<LoopTask*>(*memory + loop.worker_count * sizeof(LoopWorker));
  for (uint32_t i = 0; i < loop.task_count; ++i) (new (&loop.tasks[i]) LoopTask)->loop = &loop;
  bool ran = take_banks(loop);
  if (ran && loop.worker_count > 1) note_threads();
  ran = ran && run_on_workers(loop);
  for (uint32_t i = 0; i < loop.task_count; ++i)
    if (loop.tasks[i].bank != nullptr) give_back_bank(*loop.tasks[i].bank);
  sys::unmap(*memory, bytes);
  return ran;
}

// A loop inside another, or in a handler, runs where it is.
bool may_have_tasks(const Thread& thread) {
  return runtime.started.load(std::memory_order_relaxed) && thread.task == nullptr &&
         !thread.is_in_plain_loop && thread.runtime_depth == 0 &&
         thread.top_level.load(std::memory_order_relaxed) == 0 && task::Worker::current() == nullptr &&
         !is_sharing_child();
}

}  // namespace

SPILL_EXPORT void __spillway_begin_busy();
void __spillway_begin_busy() { begin_busy(); }
SPILL_EXPORT void __spillway_begin_busy_if(int result);
void __spillway_begin_busy_if(int result) {
  if (result != 0) begin_busy();
}
SPILL_EXPORT void __spillway_end_busy();
void __spillway_end_busy() { end_busy(); }

using RunIterations = void (*)(void* context, uint64_t first, const volatile uint64_t* last);
SPILL_EXPORT void __spillway_run_loop(RunIterations run, void* context, uint64_t count, uint64_t grain,
                                      uint32_t tasks, uint32_t workers, uint64_t stack_bytes);
void __spillway_run_loop(RunIterations run, void* context, uint64_t count, uint64_t grain, uint32_t tasks,
                         uint32_t workers, uint64_t stack_bytes) {
  Loop loop = {.run = run,
               .context = context,
               .count = count,
               .grain = grain,
               .task_count = tasks,
               .worker_count = workers,
               .stack_bytes = stack_bytes != 0 ? stack_bytes : kStackBytes};
  Thread& thread = this_thread();
  if (!may_have_tasks(thread)) {
    run(context, 0, &count);
    return;
  }
  bool ran = false;
  choose_counts(loop);
  if (loop.task_count > 1) {
    clear_slots();
    asm volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(loop.sse_control), "=m"(loop.x87_control));
    const uint32_t busy_count = thread.busy_count;
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    {
      // Handlers are deferred until the first poll: in a child that one forked, the loop would be half set up.
      const InRuntime inside;
      loop_task_count.fetch_add(loop.task_count, std::memory_order_relaxed);
      ran = run_in_tasks(loop);
      loop_task_count.fetch_sub(loop.task_count, std::memory_order_relaxed);
    }
    thread.busy_count = busy_count;
    pthread_setcancelstate(cancel_state, nullptr);
  }
  if (ran) return;
  thread.is_in_plain_loop = true;
  run(context, 0, &count);
  thread.is_in_plain_loop = false;
}

}  // namespace spill
