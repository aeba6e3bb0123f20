"""Breakages of src/task: a wake-up that is lost, a wait that two end, a stack that is given away too early."""

FLUSH_GROUP = "src/task/flush_group"
FUTURE = "src/task/future.cc"
IO_QUEUE = "src/task/io_queue.cc"
IDLE = "src/base/idle.h"
POOL = "src/task/stack_pool.cc"
SCHEDULER = "src/task/scheduler.cc"
SOCKET = "src/task/socket.cc"
SYNC = "src/task/sync.h"
TIMERS = "src/task/timers.cc"
WAITING = "src/task/waiting.h"
WORKER = "src/task/worker.cc"


def mutation(name, *patches, program="task_simulation_test", gtest_filter="*"):
    return {"name": name, "test": (program, gtest_filter), "patches": list(patches)}


MUTATIONS = [
    # Sleep and wake
    mutation("worker sleeps without a second look", (WORKER, "  if (is_idle() && !scheduler_->has_ended())\n    sleep_until_woken", "  if (true)\n    sleep_until_woken")),
    mutation("worker looks before it says that it sleeps",
             (WORKER, "  asleep_.store(1, std::memory_order_relaxed);\n", "  const bool idle = is_idle() && !scheduler_->has_ended();\n  choice_point();\n  asleep_.store(1, std::memory_order_relaxed);\n"),
             (WORKER, "  if (is_idle() && !scheduler_->has_ended())\n    sleep_until_woken", "  if (idle)\n    sleep_until_woken")),
    mutation("the last task's end wakes nobody", (SCHEDULER, "  for (uint32_t i = 0; i < worker_count_; ++i) workers_[i].rouse();\n", "")),
    mutation("a message wakes nobody", (WORKER, "  choice_point();\n  rouse();\n", "  choice_point();\n")),
    mutation("messages put in while others are read are lost",
             (WORKER, "  Message* last = inbox_.exchange(nullptr, std::memory_order_acquire);",
              "  Message* last = inbox_.load();\n  choice_point();\n  inbox_.store(nullptr);")),
    mutation("a look that helped is not remembered", (IDLE, "    if (turns_ > kTurnsAlways) sleeps_between_ = 0;\n", ""),
             program="base_test", gtest_filter="Idle*"),
    mutation("a look in vain is forgotten", (IDLE, "      sleeps_left_ = sleeps_between_ =", "      sleeps_between_ ="),
             program="base_test", gtest_filter="Idle*"),

    # Who ends a wait
    mutation("a wait that was ended is ended again", (WAITING, "    if (!waiter_.is_queued) return false;\n    list_.remove(waiter_);", "    if (waiter_.is_queued) list_.remove(waiter_);")),
    mutation("a wait that timed out stays in the list", (WAITING, "    list_.remove(waiter_);\n    return true;", "    return true;")),
    mutation("cancellation is taken for a notification", (WORKER, "end_wait(task, Woken::kCancelled)", "end_wait(task, Woken::kNotified)")),
    mutation("a wait that must not be cancelled is", (WORKER, "  if (task.waiting_is_cancellable) end_wait", "  end_wait")),
    mutation("a message of a task that is gone", (SCHEDULER, "  task.references.fetch_add(1, std::memory_order_relaxed);  // the message's\n", ""),
             (WORKER, "  scheduler_->release(task);\n", "")),
    mutation("a timer stays when its wait has ended", (WORKER, "  if (timer.is_queued) timers_.remove(timer);\n", "")),

    # Primitives
    mutation("a mutex that is handed over is free for a moment", (SYNC, "      word_.set(word_of(next) | (waiters_.empty() ? 0 : kWaited));", "      word_.set(0);")),
    mutation("an owner is not told that somebody waits", (SYNC, "    if (word_.mark(kWaited) == 0) {", "    if (word_.get() == 0) {")),
    mutation("a mutex that is handed over forgets who else waits", (SYNC, "word_.set(word_of(next) | (waiters_.empty() ? 0 : kWaited));", "word_.set(word_of(next));")),
    mutation("a mutex is free while somebody waits", (SYNC, "    if (!word_.replace(word_of(&self()), 0)) hand_over();", "    const bool waited = word_.get() & kWaited;\n    word_.set(0);\n    choice_point();\n    if (waited) word_.mark(word_of(&self()) | kWaited), hand_over();")),
    mutation("a permit is given to a waiter and to the next", (SYNC, "        if (waiters_.empty())\n          ++permits_;\n        else\n", "        ++permits_;\n        if (!waiters_.empty())\n")),
    mutation("a condition waits after it gave the mutex back",
             (SYNC, "    lock_.lock();\n    ListedWaiter<Lock> waiter(lock_, waiters_, \"a condition\");\n    lock_.unlock();\n    mutex.unlock();\n",
              "    mutex.unlock();\n    lock_.lock();\n    ListedWaiter<Lock> waiter(lock_, waiters_, \"a condition\");\n    lock_.unlock();\n")),
    mutation("a future's links stay listed when it is fulfilled", (FUTURE, "    for (Link* link = links; link != nullptr; link = link->next) link->is_listed = false;\n", "")),
    mutation("a set ends while a link is on its way", (FUTURE, "    if (arrived_count_ == count_) break;\n", "    if (arrived_count_ <= count_) break;\n")),
    mutation("a future wakes its waiters after it may be gone",
             (FUTURE, "  while (!waiters.empty()) wake(*waiters.take_first().task);\n",
              "  while (!waiters.empty()) wake(*waiters.take_first().task);\n  choice_point();\n  CHECK(fulfilled_);\n")),

    # Stacks and timers
    mutation("stack given back while its task runs on it", (WORKER, "      ended_ = &from;\n", "      scheduler_->ended(from);\n")),
    mutation("stacks have no guard", (POOL, "  guard(slot);\n", ""), program="task_test", gtest_filter="StackPool*"),
    mutation("guards go with the memory", (POOL, "    sys::release(stack_of(slot), stack_bytes_);", "    sys::release(stack_of(slot) - base::kOsPageBytes, slot_bytes_), sys::syscall(SYS_madvise, stack_of(slot) - base::kOsPageBytes, base::kOsPageBytes, kGuardInstall + 1);"),
             program="task_test", gtest_filter="StackPool*"),
    mutation("a timer's children are lost", (TIMERS, "  root_ = join(root_, join_all(node.child));", "  static_cast<void>(node.child);"), program="task_test", gtest_filter="Timers*"),
    mutation("exceptions stay with the thread", (WORKER, "    kept.bring_back();\n", ""), program="task_test", gtest_filter="*Exceptions*"),
    mutation("who runs tasks loses its exceptions", (WORKER, "  callers.bring_back();\n", ""), program="task_test", gtest_filter="*Exceptions*"),
    mutation("a task begins with another's exceptions", (WORKER, "  LibraryState().bring_back();\n", ""), program="task_test", gtest_filter="*Exceptions*"),
    mutation("control words stay with the thread", ("src/sys/fiber.cc", "  ldmxcsr (%rsp)\n", ""), program="task_test", gtest_filter="*Rounding*"),

    # Threads
    mutation("all workers that are pinned share a CPU", ("src/task/threads.cc", "sys::cpu_at(sys::own_cpus(), index);", "sys::cpu_at(sys::own_cpus(), index - index);"), program="task_test", gtest_filter="*Pinned*"),

    # Writes that are joined
    mutation("writes that lie elsewhere are joined", (IO_QUEUE, "      next.offset_bytes != first->offset_bytes + first->length_bytes ||", "      false ||"), program="task_test", gtest_filter="*IoQueueTest.*Joined*"),
    mutation("no write is joined", (IO_QUEUE, "if (last_write != nullptr && join(*last_write, io)) continue;", ""), program="task_test", gtest_filter="*IoQueueTest.*Joined*"),
    mutation("a joined write that failed, or ended early, is told to have been whole", (IO_QUEUE, "    if (write.length_bytes > left_bytes) {", "    if (write.length_bytes == 0) {"), program="task_test", gtest_filter="*IoQueueTest.*Joined*"),
    mutation("a place that the medium does not take is the trouble of all whose writes are joined", (IO_QUEUE, "      queue.alone_.append(write);\n", "      write.error = io.error;\n      write.done(write);\n"), program="task_test", gtest_filter="*IoQueueTest.APlace*"),

    # Flushes that are shared
    mutation("a group is told of a flush that began before it came", (FLUSH_GROUP + ".cc", "  lock_.lock();\n  error_.store", "  lock_.lock();\n  waiting_.take_all().wake_all();\n  error_.store"), program="task_test", gtest_filter="FlushGroup.*"),
    mutation("who waits for a flush has one of its own", (FLUSH_GROUP + ".cc", "  own.group = waiting_.take_all();\n", ""), program="task_test", gtest_filter="FlushGroup.*"),
    mutation("a flush of a group succeeds after one that failed", (FLUSH_GROUP + ".h", "error() != 0 ? error() : flush()", "flush()"), program="task_test", gtest_filter="FlushGroup.*"),

    # Media that end at once
    mutation("a task keeps its turn for as long as it reads memory", (IO_QUEUE, "turn_bytes_ < kTurnBytes;", "true;"), program="task_test", gtest_filter="*IoQueueTest.OthersHaveTheirTurns*"),
    mutation("a task waits for memory", (IO_QUEUE, "turn_bytes_ < kTurnBytes;", "false;"), program="task_test", gtest_filter="*IoQueueTest.OthersHaveTheirTurns*"),
    mutation("a worker looks on for peers", (WORKER, "  bool looks_on = !events_.has_listeners();", "  bool looks_on = true;"), program="task_test", gtest_filter="WorkerSleepTest.*"),
    mutation("a wait for both directions of a socket is ended twice", (SOCKET, "  also_->waiting_ = nullptr;\n", ""), program="task_test", gtest_filter="SocketsTest.WhoWaits*"),
    mutation("a socket that is connected has ended already", (SOCKET, "  has_ended_ = false;\n  if (result == 0) return {};\n", "  if (result == 0) return {};\n"), program="task_test", gtest_filter="SocketsTest.*"),
    mutation("sockets are forgotten without epoll_pwait2", ("src/sys/events.cc", "    count = syscall(SYS_epoll_pwait, descriptor_, events, kMaxEvents, ms", "    syscall(SYS_epoll_pwait, descriptor_, events, kMaxEvents, ms"), program="task_test", gtest_filter="WorkerSleepDeathTest.*"),
    mutation("a worker that a device has told something does not sleep any more", ("src/task/worker_sleep.cc", "  return events_.add(descriptor, sys::EventSet::Wakes::kWhenItBecomesReadable);", "  return events_.add(descriptor);"), program="task_test", gtest_filter="*IoQueue*"),
    mutation("a worker does not look on for a device", (WORKER, "looks_on = pollers_[i]->expects_soon();", "looks_on = false;"), program="task_test", gtest_filter="WorkerSleepTest.*"),
    mutation("a worker that looks on asks how long it may sleep", (WORKER, "looks_on = pollers_[i]->expects_soon();", "looks_on = (pollers_[i]->quiet(), pollers_[i]->expects_soon());"), program="task_test", gtest_filter="WorkerSleepTest.*"),
]
