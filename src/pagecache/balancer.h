// Balancer: finds memory nodes of a cache that miss more than others in relation to their frames, and decides when frames move to them.
//
//   a miss ──count_miss──► a period ends ──Server::start_balance──► begin ──► the server moves frames ──► end, a new period
//
// Invariants
//  1 a period ends when a node has had as many misses as a quarter of an equal share of frames; misses while frames move do not count
//  2 at most one move is under way, from begin() until end(); none while somebody holds the balancer, or nobody serves it
//  3 a call that holds or closes the balancer asks a move that is under way to stop, and waits until it has
//
// Thread contract: any thread. The balancer's lock is held for a few instructions, and while its server is started.
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
  static constexpr uint64_t kMinPeriodMisses = 16;

  class Server {
   public:
    // Has a task call begin() and end(). Called with the balancer's lock.
    virtual void start_balance() = 0;

   protected:
    ~Server() = default;
  };
  // A node's load in a period.
  struct Load {
    uint64_t misses = 0;
    uint64_t frames = 0;
    bool may_give = true;
    bool may_take = true;
  };
  struct Move {
    uint32_t from = 0;
    uint32_t to = 0;  // the same as `from`: no move
  };
  // A move from the node with the fewest misses for each of its frames, among those that may give, to the one with the most, among those
  // that may take; no move unless that is more than twice as many.
  static Move choose(std::span<const Load> loads);

  // From now on `server` serves it. `frames_each` is an equal share of all frames. False: another server does already.
  bool open(Server& server, uint64_t frames_each);
  // REQUIRES: open() was true.
  void close();
  // Until release(), no move is under way. Any number of calls may hold it at a time. Blocks the thread.
  void hold();
  void release();

  // Cost: an atomic addition.
  void count_miss(uint32_t node) {
    if (is_served_.load(std::memory_order_relaxed) &&
        misses_[node].value.fetch_add(1, std::memory_order_relaxed) + 1 ==
            period_misses_.load(std::memory_order_relaxed))
      start();
  }

  // --- for the task that was started ---

  // Sets `misses` to each node's misses in the period that has ended. False: nothing is to be moved. end() must follow in any case.
  bool begin(std::span<uint64_t> misses);
  bool is_to_stop() const { return is_to_stop_.load(std::memory_order_relaxed); }
  void end(uint64_t frames_each);

 private:
  void start();
  void begin_period(uint64_t frames_each);
  void set_stop() { is_to_stop_.store(server_ == nullptr || holder_count_ != 0, std::memory_order_relaxed); }
  void wait_until_idle();

  // Relaxed: counts, and hints for callers without the lock.
  struct alignas(base::kLineBytes) Misses {
    std::atomic<uint64_t> value{0};
  };
  std::array<Misses, sys::kMaxNodes> misses_;
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
