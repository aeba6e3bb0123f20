// FlushQueue: the sets whose dirty pages are to be written back before somebody needs their frames, and the executors that do it.
//
//   a miss, a write ──put──► sets ──take, some at a time──► a working executor: Session::flush
//
// Invariants
//  1 a set is in the queue at most once: a mark in the set says whether it is
//  2 a set in the queue is a hint: it may have been split or merged since, or have nothing to flush. An executor that takes it looks again, with
//    the set's lock
//  3 the queue has sets only while somebody serves it, and then at least one executor is working. An executor is working from when it is started
//    until take() finds nothing for it
//  4 a set for which there is no room is not queued: its next miss tries again
//
// Thread contract: any thread. The queue's lock is held for a few instructions, and while an executor is started.
#pragma once
#include <array>
#include <span>

#include "pagecache/page_set.h"
#include "sys/lock.h"

namespace pagecache {

class FlushQueue {
 public:
  static constexpr uint32_t kMaxSets = 1024;
  static constexpr uint32_t kBatchSets = 8;  // how many an executor takes at a time
  static constexpr uint32_t kMaxExecutors = 64;

  class Server {
   public:
    // Makes the executor call take() until there is nothing left. Called with the queue's lock.
    virtual void start_flush(uint32_t executor) = 0;

   protected:
    ~Server() = default;
  };

  // From now on `server` serves the queue. False: another one does already.
  bool open(Server& server, uint32_t executor_count);
  // Empties the queue, and returns when no executor is working. REQUIRES: open() was true.
  void close();

  // Would put() queue the set?
  bool is_open_for(const PageSet& set) const { return is_served() && !set.is_queued(); }
  bool is_served() const { return is_served_.load(std::memory_order_relaxed); }
  bool is_served_by(const Server& server);
  // Queues the set, and starts an executor if there are more sets than the working executors take at a time.
  void put(PageSet& set);
  // Takes sets for the executor; returns how many. 0: the executor does not count as working any more.
  size_t take(uint32_t executor, std::span<PageSet*, kBatchSets> sets);

 private:
  PageSet& take_first();

  std::atomic<bool> is_served_{false};  // server_ != nullptr, for callers without the lock
  // Not in the CPU line that every caller reads.
  alignas(base::kLineBytes) sys::Mutex lock_;
  std::array<PageSet*, kMaxSets> sets_ = {};  // a ring
  uint32_t first_ = 0;
  uint32_t count_ = 0;
  Server* server_ = nullptr;
  uint64_t idle_executors_ = 0;  // a bit for each
  uint32_t working_count_ = 0;
  sys::EventCount has_ended_;  // an executor has stopped working
};

}  // namespace pagecache
