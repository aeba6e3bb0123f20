#include "task/worker.h"

#include <errno.h>

#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "task/scheduler.h"

// From the C++ library, if there is one.
extern "C" __attribute__((weak)) void* __cxa_get_globals() noexcept;

namespace task {
namespace {

constexpr uint32_t kTasksPerTurn = 64;

// The per-thread state of the C and the C++ library that each task needs for itself: errno, and exceptions that are being handled. Tasks leave theirs
// behind, so the code that runs them saves its own meanwhile.
class LibraryState {
 public:
  void take() {
    error_number_ = errno;
    if (const Exceptions* now = exceptions(); now != nullptr) exceptions_ = *now;
  }
  void bring_back() const {
    errno = error_number_;
    if (Exceptions* now = exceptions(); now != nullptr) *now = exceptions_;
  }

 private:
  // __cxa_eh_globals of the C++ ABI for Itanium, section 2.2.2.
  struct Exceptions {
    void* caught = nullptr;
    unsigned uncaught_count = 0;
  };
  static Exceptions* exceptions() {
    return __cxa_get_globals == nullptr ? nullptr : static_cast<Exceptions*>(__cxa_get_globals());
  }

  int error_number_ = 0;
  Exceptions exceptions_;
};

#ifdef SPILLWAY_SIMULATED
constinit Worker* current_worker = nullptr;
#else
constinit thread_local Worker* current_worker = nullptr;
#endif

}  // namespace

Worker* Worker::current() { return current_worker; }
void Worker::set_current(Worker* worker) { current_worker = worker; }

base::Expected<void> Worker::open(Scheduler& scheduler, uint32_t index) {
  scheduler_ = &scheduler;
  index_ = index;
  return open_sleep();
}

void Worker::close() {
  // Pairs with the release in post().
  while (posting_.load(std::memory_order_acquire) != 0) relax();
  close_sleep();
}

base::Expected<void> Worker::add_poller(base::Poller& poller) {
  if (poller_count_ == kMaxPollers)
    return base::failure(ENOSPC, "a worker polls at most ", uint64_t{kMaxPollers}, " things");
  if (const int descriptor = poller.quiet().descriptor; descriptor >= 0) {
    if (auto watched = watch(descriptor); !watched) return watched;
  }
  pollers_[poller_count_++] = &poller;
  return {};
}

void Worker::remove_poller(base::Poller& poller) {
  for (uint32_t i = 0; i < poller_count_; ++i) {
    if (pollers_[i] != &poller) continue;
    if (const int descriptor = poller.quiet().descriptor; descriptor >= 0) end_watch(descriptor);
    pollers_[i] = pollers_[--poller_count_];
    return;
  }
  CHECK(false && "a poller that was not added");
}

void Worker::run() {
  Worker* const before = current_worker;
  LibraryState callers;
  callers.take();
  current_worker = this;
  for (;;) {
    const size_t done = take_messages() + fire_timers() + run_tasks() + poll_all();
    if (done == 0) {
      choice_point();
      relax();
    }
    if (!should_sleep(done == 0)) {
      // Not in each turn, since it is a system call.
      if (idle_.turns() % kPace.turns_per_clock == 0) look_for_peers();
      continue;
    }
    // Checked only when there is nothing else to do, since other workers write to this CPU line whenever they spawn a task.
    if (scheduler_->has_ended()) break;
    uint64_t until_ns = timers_.due_ns();
    for (uint32_t i = 0; i < poller_count_; ++i) {
      const uint64_t poller_ns = pollers_[i]->quiet().until_ns;
      if (poller_ns < until_ns) until_ns = poller_ns;
    }
    sleep(until_ns);
  }
  current_worker = before;
  callers.bring_back();
}

// Called at the end of each turn.
bool Worker::should_sleep(bool was_idle) {
  if (!was_idle) idle_.end();
  if (runnable_ != nullptr) return false;
  bool looks_on = !events_.has_listeners();
  for (uint32_t i = 0; i < poller_count_ && !looks_on; ++i) looks_on = pollers_[i]->expects_soon();
  return !looks_on || (was_idle && idle_.should_sleep(now_ns, kPace));
}

void Worker::sleep(uint64_t until_ns) {
  asleep_.store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the one in rouse()
  choice_point();
  if (is_idle() && !scheduler_->has_ended())
    sleep_until_woken(until_ns);
  else
    look_for_peers();
  choice_point();
  asleep_.store(0, std::memory_order_relaxed);
}

void Worker::rouse() {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the one in sleep()
  if (asleep_.load(std::memory_order_relaxed) == 0) return;
  choice_point();
  if (asleep_.exchange(0, std::memory_order_relaxed) != 0) end_sleep();
}

size_t Worker::take_messages() {
  if (inbox_.load(std::memory_order_relaxed) == nullptr) return 0;
  // Acquire: pairs with the release in post().
  Message* last = inbox_.exchange(nullptr, std::memory_order_acquire);
  Message* first = nullptr;
  while (last != nullptr) {
    Message* const next = last->next;
    last->next = first;
    first = last;
    last = next;
  }
  size_t count = 0;
  while (first != nullptr) {
    Message& message = *first;
    first = message.next;  // once delivered, it may be posted again
    ++count;
    if (message.is_cancel)
      deliver_cancel(*message.task);
    else
      make_runnable(*message.task);
  }
  return count;
}

void Worker::post(Message& message) {
  posting_.fetch_add(1, std::memory_order_relaxed);  // before the message, whose release orders it
  Message* head = inbox_.load(std::memory_order_relaxed);
  do {
    message.next = head;
    choice_point();
    // Release: pairs with the acquire in take_messages().
  } while (
      !inbox_.compare_exchange_weak(head, &message, std::memory_order_release, std::memory_order_relaxed));
  choice_point();
  rouse();
  posting_.fetch_sub(1, std::memory_order_release);
}

void Worker::end_wait(Task& task, Woken how) {
  // If this fails, the task has been woken or is about to be.
  if (task.waiting == nullptr || !task.waiting->abandon()) return;
  task.woken = how;
  make_runnable(task);
}

void Worker::deliver_cancel(Task& task) {
  if (task.waiting_is_cancellable) end_wait(task, Woken::kCancelled);
  scheduler_->release(task);
}

size_t Worker::fire_timers() {
  if (timers_.first() == nullptr) return 0;
  size_t count = 0;
  const uint64_t now = now_ns();
  while (timers_.due_ns() <= now) {
    auto& timer = *static_cast<TaskTimer*>(timers_.first());
    timers_.remove(timer);
    ++count;
    end_wait(*timer.task, Woken::kTimedOut);
  }
  return count;
}

void Worker::make_runnable(Task& task) {
  DCHECK(task.worker == this);
  // From now on there is no wait that a timer or a cancellation could end.
  task.waiting = nullptr;
  task.state.store(State::kRunnable, std::memory_order_relaxed);
  task.next = nullptr;
  (last_runnable_ == nullptr ? runnable_ : last_runnable_->next) = &task;
  last_runnable_ = &task;
  ++runnable_count_;
}

Task* Worker::take_runnable() {
  if (runnable_ == nullptr) return nullptr;
  Task* previous = nullptr;
  Task* taken = runnable_;
  for (uint32_t skipped = choose(runnable_count_); skipped > 0; --skipped) {
    previous = taken;
    taken = taken->next;
  }
  (previous == nullptr ? runnable_ : previous->next) = taken->next;
  if (taken == last_runnable_) last_runnable_ = previous;
  --runnable_count_;
  taken->state.store(State::kRunning, std::memory_order_relaxed);
  return taken;
}

size_t Worker::run_tasks() {
  left_in_turn_ = kTasksPerTurn;
  size_t count = 0;
  while (left_in_turn_ > 0) {
    Task* const task = take_runnable();
    if (task == nullptr) break;
    --left_in_turn_;
    ++count;
    running_ = task;
    loop_.switch_to(task->fiber);
    switched_in();
  }
  return count;
}

// Leaves the running task, which has ended, or can be found by whoever is to resume it. Returns when it is resumed.
void Worker::switch_away(bool ends) {
  Task& from = *running_;
  scheduler_->check_stack(from);
  Task* const to = left_in_turn_ > 0 ? take_runnable() : nullptr;
  running_ = to;
  if (to != nullptr) --left_in_turn_;
  if (to != &from) {
    sys::Fiber& target = to == nullptr ? loop_ : to->fiber;
    if (ends) {
      ended_ = &from;
      choice_point();
      from.fiber.end_and_switch_to(target);
    }
    LibraryState kept;
    kept.take();
    from.fiber.switch_to(target);
    kept.bring_back();
  }
  switched_in();
}

void Worker::begin() {
  LibraryState().bring_back();
  switched_in();
}

// Runs first on a stack after a switch to it: gives back the stack of a task that has ended.
void Worker::switched_in() {
  if (ended_ == nullptr) return;
  Task& ended = *ended_;
  ended_ = nullptr;
  scheduler_->ended(ended);
}

Woken Worker::block(Waiting& waiting, const Limit& limit) {
  Task& task = *running_;
  CHECK(task.worker == this);
  if (limit.cancellable && task.cancelled.load(std::memory_order_relaxed) && waiting.abandon())
    return Woken::kCancelled;
  if (limit.deadline_ns == 0 && waiting.abandon()) return Woken::kTimedOut;
  TaskTimer timer;
  uint64_t due_ns = limit.deadline_ns;
  if (limit.within_ns != kNever) {
    const uint64_t now = now_ns();
    due_ns = std::min(due_ns, now + std::min(limit.within_ns, kNever - now));
  }
  if (due_ns != kNever) {
    timer.due_ns = due_ns;
    timer.task = &task;
    timers_.add(timer);
  }
  task.woken = Woken::kNotified;
  task.waiting = &waiting;
  task.waiting_is_cancellable = limit.cancellable;
  task.waits_for.store(waiting.what(), std::memory_order_relaxed);
  task.state.store(State::kBlocked, std::memory_order_relaxed);
  switch_away(false);
  if (timer.is_queued) timers_.remove(timer);
  return task.woken;
}

void Worker::yield() {
  make_runnable(*running_);
  switch_away(false);
}

void Worker::end() {
  running_->state.store(State::kEnded, std::memory_order_relaxed);
  switch_away(true);
  __builtin_unreachable();
}

size_t Worker::poll_all() {
  size_t count = 0;
  for (uint32_t i = 0; i < poller_count_; ++i) count += pollers_[i]->poll();
  return count;
}

// waiting.h

Task& self() {
  DCHECK(in_task());
  return *current_worker->running();
}

bool in_task() { return current_worker != nullptr && current_worker->running() != nullptr; }

Woken block(Waiting& waiting, const Limit& limit) { return current_worker->block(waiting, limit); }

void wake(Task& task) {
  if (task.worker == current_worker)
    task.worker->make_runnable(task);
  else
    task.worker->post(task.wake_message);
}

}  // namespace task
