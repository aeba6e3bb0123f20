#include "capi/workers.h"

#include <algorithm>

#include "base/check.h"
#include "base/ids.h"

namespace capi {
namespace {

// Address space: what a task does not use of its stack takes no memory. With a sanitizer frames are several times as large.
constexpr size_t kStackBytes = 256 << 10;

}  // namespace

base::Expected<void> Workers::open(kv::Store& store, uint32_t thread_count, uint32_t task_count) {
  CHECK(thread_count >= 1 && thread_count <= kThreadsMax && task_count >= 1 && task_count <= kTasksMax);
  store_ = &store;
  lane_count_ = thread_count;
  tasks_per_lane_ = std::max(1u, task_count / thread_count);
  const size_t lanes_bytes = lane_count_ * sizeof(Lane);
  const size_t tasks_bytes = uint64_t{lane_count_} * tasks_per_lane_ * sizeof(task::Task*);
  void* const memory = aligned_alloc(alignof(Lane), base::round_up(lanes_bytes + tasks_bytes, alignof(Lane)));
  if (memory == nullptr) return base::failure(ENOMEM, "store: no memory for threads");
  lanes_ = static_cast<Lane*>(memory);
  auto** const tasks = reinterpret_cast<task::Task**>(&lanes_[lane_count_]);
  for (uint32_t i = 0; i < lane_count_; ++i) {
    new (&lanes_[i]) Lane;
    lanes_[i].workers = this;
    lanes_[i].tasks = tasks + uint64_t{i} * tasks_per_lane_;
  }
  opened_ = scheduler_.open({.worker_count = lane_count_, .stack_bytes = kStackBytes});
  if (!opened_) {
    free(lanes_);
    return opened_;
  }
  Latch opening(lane_count_);
  opening_ = &opening;
  auto thread = sys::start_thread(run_thread, this, "kv-requests");
  if (!thread) {
    scheduler_.close();
    free(lanes_);
    return std::unexpected(thread.error());
  }
  thread_ = *thread;
  opening.wait();
  if (!opened_) {
    const base::Expected<void> result = opened_;
    close();
    return result;
  }
  return {};
}

void Workers::close() {
  for (uint32_t i = 0; i < lane_count_; ++i) {
    CHECK(lanes_[i].first == nullptr);
    lanes_[i].waiting.release(lanes_[i].task_count);
  }
  sys::join_thread(thread_);
  scheduler_.close();
  for (uint32_t i = 0; i < lane_count_; ++i) lanes_[i].~Lane();
  free(lanes_);
}

void Workers::run_thread(void* self) {
  auto& workers = *static_cast<Workers*>(self);
  const auto ran = workers.scheduler_.run({.name = "kv", .entry = run_main, .argument = self});
  if (ran) return;
  for (uint32_t i = 0; i < workers.lane_count_; ++i) workers.opened(ran);  // nothing has run
}

void Workers::run_main(void* self) {
  auto& workers = *static_cast<Workers*>(self);
  for (uint32_t i = 0; i < workers.lane_count_; ++i) {
    auto task = task::spawn({.name = "kv-lane",
                             .entry = run_lane,
                             .argument = &workers.lanes_[i],
                             .worker = &workers.scheduler_.worker(i)});
    if (task)
      task::detach(**task);
    else
      workers.opened(std::unexpected(task.error()));
  }
}

void Workers::run_lane(void* argument) {
  Lane& lane = *static_cast<Lane*>(argument);
  Workers& workers = *lane.workers;
  if (auto session = lane.session.open(*workers.store_, workers.tasks_per_lane_); !session)
    return workers.opened(session);
  base::Expected<void> result;
  while (lane.task_count < workers.tasks_per_lane_ && result) {
    auto task = task::spawn({.name = "kv-request", .entry = run_task, .argument = &lane});
    if (task)
      lane.tasks[lane.task_count++] = *task;
    else
      result = std::unexpected(task.error());
  }
  const uint32_t count = lane.task_count;  // close() reads it from when the lane has opened
  workers.opened(result);
  for (uint32_t i = 0; i < count; ++i) static_cast<void>(task::join(*lane.tasks[i]));
  lane.session.close();
}

void Workers::run_task(void* argument) {
  Lane& lane = *static_cast<Lane*>(argument);
  for (;;) {
    static_cast<void>(lane.waiting.acquire({.cancellable = false}));
    Request* const request = take(lane);
    if (request == nullptr) return;
    perform(lane.session, *request);
    request->ended(*request);
  }
}

void Workers::opened(const base::Expected<void>& result) {
  {
    sys::LockGuard scope(opening_lock_);
    if (!result && opened_) opened_ = result;
  }
  opening_->count_down();
}

void Workers::submit(Request& request) {
  Lane& lane = lanes_[kv::hash_key(store_->identity().secret, request.key).high % lane_count_];
  request.next = nullptr;
  {
    sys::LockGuard scope(lane.lock);
    (lane.first == nullptr ? lane.first : lane.last->next) = &request;
    lane.last = &request;
  }
  lane.waiting.release();
}

Request* Workers::take(Lane& lane) {
  sys::LockGuard scope(lane.lock);
  Request* const first = lane.first;
  if (first != nullptr) lane.first = first->next;
  return first;
}

}  // namespace capi
