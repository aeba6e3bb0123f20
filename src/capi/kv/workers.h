// Workers: threads on which tasks carry out requests, many at a time, while whoever submitted them does something else.
//
//   submit ──► an executor, by the key ──► one of its tasks: perform() ──► Request::ended
//
// Invariants
//  1 An executor has a session that its tasks share
//  2 Requests for a key go to one executor, whose tasks take them in the order in which they came. From there to the key's lock, which is fair
//    (kv/collection/key_locks.h), a task does not wait: waiting for room comes after it. So changes of a key are made in the order in which one thread
//    submits them, except for large values, whose pieces are written before the lock is taken
#pragma once
#include <memory>

#include "capi/kv/request.h"
#include "task/executors.h"

namespace capi {

class Workers final : private task::ExecutorUser {
 public:
  static constexpr uint32_t kMaxThreads = 64;
  static constexpr uint32_t kMaxTasks = 4096;

  // `task_count`: of all threads together. Errors: those of Executors::open and Session::open. REQUIRES: 1 to kMaxThreads threads, 1 to kMaxTasks tasks.
  base::Expected<void> open(kv::Store& store, uint32_t thread_count, uint32_t task_count);
  // Blocks until the threads have ended. REQUIRES: all requests have ended.
  void close() { executors_.close(); }

  // Calls request.ended when the request has been carried out, on one of the threads; until then the request and what it refers to stay. Any thread. Cost:
  // as of Executors::give().
  void submit(Request& request);

 private:
  base::Expected<void> open_executor(uint32_t executor) override;
  void perform(uint32_t executor, task::Work& work) override;
  void close_executor(uint32_t executor) override { sessions_[executor].close(); }

  kv::Store* store_ = nullptr;
  uint32_t tasks_each_ = 0;
  std::unique_ptr<kv::Session[]> sessions_;  // one for each executor
  task::Executors executors_;
};

}  // namespace capi
