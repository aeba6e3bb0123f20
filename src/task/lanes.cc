#include "task/lanes.h"

#include <new>

#include "base/check.h"
#include "sys/memory.h"

namespace task {

base::Expected<void> Lanes::open(const LanesParameters& parameters, LaneUser& user) {
  CHECK(parameters.lane_count >= 1 && parameters.tasks_each >= 1);
  user_ = &user;
  lane_count_ = parameters.lane_count;
  tasks_each_ = parameters.tasks_each;
  auto memory = sys::map_anonymous(memory_bytes(), "threads with tasks");
  if (!memory) return std::unexpected(memory.error());
  lanes_ = reinterpret_cast<Lane*>(*memory);
  auto** const tasks = reinterpret_cast<Task**>(&lanes_[lane_count_]);
  for (uint32_t i = 0; i < lane_count_; ++i) {
    new (&lanes_[i]) Lane;
    lanes_[i].lanes = this;
    lanes_[i].tasks = tasks + uint64_t{i} * tasks_each_;
  }
  opened_ = scheduler_.open({.worker_count = lane_count_, .stack_bytes = parameters.stack_bytes});
  if (!opened_) {
    free_lanes();
    return opened_;
  }
  sys::Latch opening(lane_count_);
  opening_ = &opening;
  auto thread = sys::start_thread(run_thread, this, parameters.name);
  if (!thread) {
    scheduler_.close();
    free_lanes();
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

void Lanes::close() {
  for (uint32_t i = 0; i < lane_count_; ++i) {
    CHECK(lanes_[i].works.empty());
    lanes_[i].waiting.release(lanes_[i].task_count);
  }
  sys::join_thread(thread_);
  scheduler_.close();
  free_lanes();
}

void Lanes::free_lanes() {
  for (uint32_t i = 0; i < lane_count_; ++i) lanes_[i].~Lane();
  sys::unmap(lanes_, memory_bytes());
  lanes_ = nullptr;
}

void Lanes::run_thread(void* self) {
  auto& lanes = *static_cast<Lanes*>(self);
  const auto ran = lanes.scheduler_.run({.name = "lanes", .entry = run_main, .argument = self});
  if (ran) return;
  for (uint32_t i = 0; i < lanes.lane_count_; ++i) lanes.opened(ran);  // nothing has run
}

void Lanes::run_main(void* self) {
  auto& lanes = *static_cast<Lanes*>(self);
  for (uint32_t i = 0; i < lanes.lane_count_; ++i) {
    auto task = spawn({.name = "lane",
                       .entry = run_lane,
                       .argument = &lanes.lanes_[i],
                       .worker = &lanes.scheduler_.worker(i)});
    if (task)
      detach(**task);
    else
      lanes.opened(std::unexpected(task.error()));
  }
}

void Lanes::run_lane(void* argument) {
  Lane& lane = *static_cast<Lane*>(argument);
  Lanes& lanes = *lane.lanes;
  const uint32_t index = lanes.index_of(lane);
  base::Expected<void> result = lanes.user_->open_lane(index);
  if (!result) return lanes.opened(result);
  while (lane.task_count < lanes.tasks_each_ && result) {
    auto task = spawn({.name = "lane-work", .entry = run_task, .argument = &lane});
    if (task)
      lane.tasks[lane.task_count++] = *task;
    else
      result = std::unexpected(task.error());
  }
  const uint32_t count = lane.task_count;  // read here, since close() may use it once the lane has opened
  lanes.opened(result);
  for (uint32_t i = 0; i < count; ++i) static_cast<void>(join(*lane.tasks[i]));
  lanes.user_->close_lane(index);
}

void Lanes::run_task(void* argument) {
  Lane& lane = *static_cast<Lane*>(argument);
  Lanes& lanes = *lane.lanes;
  const uint32_t index = lanes.index_of(lane);
  for (;;) {
    static_cast<void>(lane.waiting.acquire({.cancellable = false}));
    Work* work = nullptr;
    {
      sys::LockGuard scope(lane.lock);
      if (!lane.works.empty()) work = &lane.works.take_first();
    }
    if (work == nullptr) return;
    ++lane.busy_count;
    lanes.user_->perform(index, *work);
    --lane.busy_count;
  }
}

void Lanes::opened(const base::Expected<void>& result) {
  {
    sys::LockGuard scope(opening_lock_);
    if (!result && opened_) opened_ = result;
  }
  opening_->count_down();
}

bool Lanes::is_to_begin(uint32_t index) {
  Lane& lane = lanes_[index];
  if (lane.busy_count == lane.task_count) return false;
  sys::LockGuard scope(lane.lock);
  return !lane.works.empty();
}

void Lanes::give(uint32_t index, Work& work) {
  WorkList works;
  works.append(work);
  give(index, works);
}

void Lanes::give(uint32_t index, WorkList& works) {
  Lane& lane = lanes_[index];
  const uint32_t count = works.count();
  {
    sys::LockGuard scope(lane.lock);
    lane.works.append(works);
  }
  lane.waiting.release(count);
}

}  // namespace task
