// Balancer: which memory nodes of a cache miss more than others for the frames that they have, and when some of those move.
//
//   a miss ──count_miss──► a period ends ──Server::start_balance──► begin ──► who serves moves frames ──► end, a new period
//
// Invariants
//  1 a period ends when a node has had as many misses as a quarter of an equal share of all frames; what misses while frames move does
//    not count
//  2 one move at a time is under way, from begin() until end(), and none while somebody holds it, or nobody serves it
//  3 who holds it, or closes it, asks the move to stop, and waits until it has
//
// Thread contract: any. Its lock is held for a few instructions, and while who serves it is started.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "base/ids.h"
#include "sys/lock.h"
#include "sys/nodes.h"

namespace pagecache {

class Balancer {
 public:
  static constexpr uint64_t kPeriodMissesLeast = 16;

  class Server {
   public:
    // With the balancer's lock.
    virtual void start_balance() = 0;

   protected:
    ~Server() = default;
  };
  // Of a node, in a period.
  struct Load {
    uint64_t misses = 0;
    uint64_t frames = 0;
    bool may_give = true;
    bool may_take = true;
  };
  struct Move {
    uint32_t from = 0;
    uint32_t to = 0;  // as `from`: none
  };
  // From the node that misses least to that which misses most, for a frame, of those that may; none, unless that is more than twice as much.
  static Move choose(std::span<const Load> loads);

  // False: another one serves it.
  bool open(Server& server, uint64_t frames_each);
  // REQUIRES: open() was true.
  void close();
  // No move is under way from when this returns until release(). By any number at a time.
  void hold();
  void release();

  // Cost: an atomic addition.
  void count_miss(uint32_t node) {
    if (is_served_.load(std::memory_order_relaxed) &&
        misses_[node].value.fetch_add(1, std::memory_order_relaxed) + 1 ==
            period_misses_.load(std::memory_order_relaxed))
      start();
  }

  // --- by who was started ---

  // Of each node, in the period that has ended. False: it is not to move anything; end() all the same.
  bool begin(std::span<uint64_t> misses);
  bool is_to_stop() const { return is_to_stop_.load(std::memory_order_relaxed); }
  void end(uint64_t frames_each);

 private:
  void start();
  void begin_period(uint64_t frames_each);
  void set_stop() { is_to_stop_.store(server_ == nullptr || holder_count_ != 0, std::memory_order_relaxed); }
  void wait_until_idle();

  // Relaxed: counts, and hints for who looks without the lock.
  struct alignas(base::kLineBytes) Misses {
    std::atomic<uint64_t> value{0};
  };
  std::array<Misses, sys::kNodesMost> misses_;
  std::atomic<bool> is_served_{false};
  std::atomic<bool> is_to_stop_{true};
  std::atomic<uint64_t> period_misses_{0};

  sys::Mutex lock_;
  Server* server_ = nullptr;
  uint32_t holder_count_ = 0;
  bool is_started_ = false;  // until end()
  sys::EventCount has_ended_;
};

}  // namespace pagecache
