// Workers: threads on which tasks carry out requests, many at a time, while whoever submitted them does something else.
//
//   submit ──► a lane, by the key ──► one of its tasks: perform() ──► Request::ended
//
// Invariants
//  1 a lane has a session that its tasks share
//  2 requests of a key go to one lane, and its tasks take them in the order in which they came; from there to the key's lock, which
//    is fair (kv/collection/key_locks.h), a task does not wait: who has the lock waits for room. So changes of a key are made in the order in which
//    one thread submits them, but for large values, whose pieces are written before
#pragma once
#include <memory>

#include "capi/request.h"
#include "task/lanes.h"

namespace capi {

class Workers final : private task::LaneUser {
 public:
  static constexpr uint32_t kThreadsMax = 64;
  static constexpr uint32_t kTasksMax = 4096;

  // `task_count` in all. Errors: those of Lanes::open and Session::open. REQUIRES: 1 to kThreadsMax, 1 to kTasksMax.
  base::Expected<void> open(kv::Store& store, uint32_t thread_count, uint32_t task_count);
  // REQUIRES: all requests have ended. Blocks until the threads have.
  void close() { lanes_.close(); }

  // `request.ended` is called when it has been carried out, on a thread of these. The request and what it refers to stay until then.
  // Any thread. Cost: as Lanes::give().
  void submit(Request& request);

 private:
  base::Expected<void> open_lane(uint32_t lane) override;
  void perform(uint32_t lane, task::Work& work) override;
  void close_lane(uint32_t lane) override { sessions_[lane].close(); }

  kv::Store* store_ = nullptr;
  uint32_t tasks_each_ = 0;
  std::unique_ptr<kv::Session[]> sessions_;  // one for each lane
  task::Lanes lanes_;
};

}  // namespace capi
