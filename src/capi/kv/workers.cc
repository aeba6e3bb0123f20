#include "capi/kv/workers.h"

#include <algorithm>

#include "base/check.h"

namespace capi {
namespace {

// Address space: the part of its stack that a task does not use takes no memory. With a sanitizer frames are several times as large.
constexpr size_t kStackBytes = 256 << 10;

}  // namespace

base::Expected<void> Workers::open(kv::Store& store, uint32_t thread_count, uint32_t task_count) {
  CHECK(thread_count >= 1 && thread_count <= kMaxThreads && task_count >= 1 && task_count <= kMaxTasks);
  store_ = &store;
  tasks_each_ = std::max(1u, task_count / thread_count);
  sessions_.reset(new (std::nothrow) kv::Session[thread_count]);
  if (sessions_ == nullptr) return base::failure(ENOMEM, "store: no memory for threads");
  return executors_.open({.name = "kv-requests",
                          .executor_count = thread_count,
                          .tasks_each = tasks_each_,
                          .stack_bytes = kStackBytes},
                         *this);
}

base::Expected<void> Workers::open_executor(uint32_t executor) {
  return sessions_[executor].open(*store_, tasks_each_);
}

void Workers::submit(Request& request) {
  executors_.give(
      static_cast<uint32_t>(kv::hash_key(store_->identity().secret, request.key).high % executors_.count()),
      request);
}

void Workers::perform(uint32_t executor, task::Work& work) {
  auto& request = static_cast<Request&>(work);
  capi::perform(sessions_[executor], request);
  request.ended(request);
}

}  // namespace capi
