#include "task/channel.h"

namespace task {

base::Expected<void> Channel::open(storage::Device& device, size_t depth) {
  if (!in_task()) return open_for_threads(device);
  auto opened = tasks_queue_.open(device, depth);
  is_of_tasks_ = opened.has_value();
  if (!opened && opened.error().number == ENOSPC) return open_for_threads(device);
  return opened;
}

base::Expected<void> Channel::open_for_threads(storage::Device& device, size_t batch_depth) {
  batch_depth_ = batch_depth;
  auto queue = device.open_queue(1);
  if (!queue) return std::unexpected(queue.error());
  queue_ = *queue;
  return {};
}

void Channel::close() {
  if (is_of_tasks_) tasks_queue_.close();
  for (storage::Queue** queue : {&queue_, &batch_queue_}) {
    if (*queue != nullptr) (*queue)->device().close_queue(*queue);
    *queue = nullptr;
  }
  is_of_tasks_ = false;
}

void Channel::run(storage::Io& io) {
  if (is_of_tasks_)
    tasks_queue_.run(io);
  else
    queue_->run(io);
}

void Channel::run(std::span<storage::Io* const> batch) {
  if (is_of_tasks_) {
    tasks_queue_.run(batch);
    return;
  }
  if (batch_queue_ == nullptr && batch.size() > 1) {
    if (auto queue = queue_->device().open_queue(batch_depth_)) batch_queue_ = *queue;
  }
  (batch_queue_ != nullptr ? batch_queue_ : queue_)->run(batch);
}

}  // namespace task
