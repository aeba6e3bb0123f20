// FlushQueue: sets of which dirty pages are to be written back before somebody needs their frames, and the lanes that do it.
//
//   a miss, a write ──put──► sets ──take, some at a time──► a lane at work: Session::flush
//
// Invariants
//  1 a set is in it once at most: a bit in the set says whether it is
//  2 a set is a hint: it may have been split or merged since, or have nothing to flush. Who takes it looks again, under its lock
//  3 there are sets in it only while somebody serves it, and then a lane is at work. It is from when it is started until it takes nothing
//  4 a set that finds it full is left out: its next miss puts it
//
// Thread contract: any. Its lock is held for a few instructions, and while a lane is started.
#pragma once
#include <array>
#include <span>

#include "pagecache/page_set.h"
#include "sys/lock.h"

namespace pagecache {

class FlushQueue {
 public:
  static constexpr uint32_t kSetsMost = 1024;
  static constexpr uint32_t kBatchSets = 8;  // that a lane takes at a time
  static constexpr uint32_t kLanesMost = 64;

  class Server {
   public:
    // With the queue's lock.
    virtual void start_flush(uint32_t lane) = 0;

   protected:
    ~Server() = default;
  };

  // False: another one serves it.
  bool open(Server& server, uint32_t lane_count);
  // Returns when no lane is at work. REQUIRES: open() was true.
  void close();

  // Is the set to be put if it has something to flush?
  bool is_open_for(const PageSet& set) const { return is_served() && !set.is_queued(); }
  bool is_served() const { return is_served_.load(std::memory_order_relaxed); }
  bool is_served_by(const Server& server);
  void put(PageSet& set);
  // Returns how many; 0: the lane is not at work any more.
  size_t take(uint32_t lane, std::span<PageSet*, kBatchSets> sets);

 private:
  PageSet& take_first();

  std::atomic<bool> is_served_{false};  // server_ != nullptr, for who looks without the lock
  // Not in the line that all look at.
  alignas(base::kLineBytes) sys::Mutex lock_;
  std::array<PageSet*, kSetsMost> sets_ = {};  // a ring
  uint32_t first_ = 0;
  uint32_t count_ = 0;
  Server* server_ = nullptr;
  uint64_t idle_lanes_ = 0;  // a bit for each
  uint32_t working_count_ = 0;
  sys::EventCount has_ended_;  // the work of a lane
};

}  // namespace pagecache
