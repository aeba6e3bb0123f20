// Flushers: threads that flush what other threads have pushed to their FIFOs. (Ribbon, sections 2.1 and 2.2)
//
//   flusher i      serves all threads' FIFOs, beginning with the i-th, while it is wanted, and sleeps otherwise
//   fence          executes what waits in its own thread's FIFO, if all threads that hand lines over may flush at the same time
//   controller     tells the Governor, each period, how many lines became durable, and is told how many are to flush at the same time. In the same
//                  way it decides whether all threads that are auto and flush to devices hand their lines over together (together.h)
//   proactive      is one more flusher, for lines that threads have stored to lately, so that their own flush finds them clean
//
//  1 a flusher that finds nothing goes on looking for a while, and then sleeps. A thread that pushes wakes one that sleeps, unless another one is
//    looking: that one finds the line, or looks once more when it stops looking
//  2 flushers that are not wanted sleep where no thread that pushes wakes them
//  3 a flusher takes only its share of what waits in a FIFO, so that others flush beside it
//  4 a flusher looks up the domain of what it has claimed: lines that are in no domain any more are dropped
//  5 count() is how many are to flush at the same time. While no more threads than that have FIFOs, their fences flush, and the rest of count() is
//    wanted as flushers, but at least one; these take only what is worth moving to another core, and what a thread asks for. While there are more
//    threads, fences execute nothing, and count() flushers are wanted. There is one exception: if nobody has said how many flushers there may be, and
//    count() has reached the number of processors, fences execute however many threads there are, since no more run at the same time anyway. This
//    way, a fence knows whether it may flush without a variable that all fences write to, whose line would move from core to core all the time
//
// Thread contract: start() and stop() by one thread at a time; the rest by any thread. All signals are blocked in the flushers' threads.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/error.h"
#include "persist/fifo.h"
#include "persist/governor.h"
#include "sys/gate.h"
#include "sys/lock.h"
#include "sys/threads.h"

namespace persist {

class Runtime;

class Flushers {
 public:
  static constexpr uint32_t kMaxFlushers = 64;
  static_assert((kMaxFlushers + 1) * Fifo::kMaxClaimLines <= Fifo::kMaxTaken);

  struct Settings {
    uint32_t least = 1, most = 0;      // 0: as many as processors, and nobody has said so (5)
    uint64_t period_ns = 250'000'000;  // of the controller; 0: there is none, and count() is always `most`
  };

  // Starts all of them, unless they run already. Errors: EAGAIN, ENOMEM: no threads.
  base::Expected<void> start(Runtime& runtime, const Settings& settings);
  // Ends them. REQUIRES: meanwhile nobody pushes or waits, no thread leaves or forks, and no domain is removed.
  void stop();
  bool are_running() const { return is_running_.load(std::memory_order_acquire); }

  // One thread more, or less, has a FIFO.
  void count_pusher(int difference) {
    pushers_.fetch_add(static_cast<uint32_t>(difference), std::memory_order_relaxed);
    wanted_.notify_all();
  }
  // Does a fence execute what waits in its FIFO? Cost: a few loads.
  bool do_fences_execute() const {
    const uint32_t count = this->count();
    return pushers_.load(std::memory_order_relaxed) <= count || (is_free_ && count == settings_.most) ||
           !are_running();
  }
  // Executes what nobody has claimed in the FIFO. Returns how many lines. REQUIRES: the caller is the FIFO's thread, at its fence and inside its gate.
  uint32_t execute_waiting(Fifo& fifo);
  // May flushers take what waits there?
  bool may_take(const Fifo& fifo) const { return !do_fences_execute() || fifo.is_worthwhile(); }
  // Tells flushers of lines that they may take. Cost: two loads, unless one sleeps and none looks.
  void wake() {
    if (lookers_.load(std::memory_order_relaxed) == 0 && sleepers_.load(std::memory_order_relaxed) != 0)
      work_.notify_one();
  }
  // The same, so that no flusher misses it: to be called before waiting for them.
  void wake_surely() {
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the one in EventCount::prepare()
    wake();
  }

  // Tells the proactive flusher of lines that were stored to lately.
  void wake_ahead() {
    if (ahead_sleeps_.load(std::memory_order_relaxed) != 0) ahead_.notify_one();
  }

  // How many are to flush at the same time (5).
  uint32_t count() const { return count_.load(std::memory_order_relaxed); }
  // From now on there are threads that may hand their lines over together.
  void try_together() { tries_together_.store(true, std::memory_order_relaxed); }
  // Do they hand them over now?
  bool are_together() const { return are_together_.load(std::memory_order_relaxed) && are_running(); }
  // Lines that flushers have flushed.
  uint64_t executed_lines() const { return executed_lines_.load(std::memory_order_relaxed); }
  uint64_t proactive_lines() const { return proactive_lines_.load(std::memory_order_relaxed); }

  // Returns when no flusher is in the middle of anything that it began before the call. May block while flushers are started.
  void pass_all() {
    while_shut([] {});
  }
  // Calls act() while no flusher is in the middle of anything. May block likewise.
  template <class Act>
  void while_shut(const Act& act) {
    sys::LockGuard scope(lock_);
    for (uint32_t i = 0; i < member_count_; ++i) members_[i].gate.shut();
    act();
    for (uint32_t i = 0; i < member_count_; ++i) members_[i].gate.open();
  }
  // Around a fork, so that no flusher is being started; in the child there are none. `pushers`: how many threads have FIFOs there.
  void before_fork() { lock_.lock(); }
  void after_fork_in_parent() { lock_.unlock(); }
  void after_fork_in_child(uint32_t pushers);

 private:
  struct Member {
    Flushers* flushers = nullptr;
    uint32_t index = 0;
    bool is_proactive = false;
    sys::Thread thread;
    sys::Gate gate{false};
  };

  static void run_member(void* member);
  static void run_controller(void* flushers);
  bool is_ending() const { return is_ending_.load(std::memory_order_relaxed) != 0; }
  uint32_t wanted_count() const {
    const uint32_t count = this->count(), pushers = pushers_.load(std::memory_order_relaxed);
    if (!do_fences_execute()) return count;
    return pushers < count ? count - pushers : 1;
  }
  bool is_wanted(const Member& member) const { return member.index < wanted_count(); }
  void serve(Member& member);
  void serve_ahead(Member& member);
  // Returns when there may be something to do, or the member is not wanted.
  void look_and_sleep(Member& member);
  // Looks once at all FIFOs. Returns how many lines it has flushed.
  uint32_t look(Member& member);
  // Takes and flushes some lines of a FIFO. Returns how many.
  uint32_t flush_some(Fifo& fifo);
  // Flushes lines that were claimed, and fences.
  void execute(const uintptr_t* lines, uint32_t count) const;
  void control();
  void end_all();

  sys::Mutex lock_;  // of starts and stops
  Runtime* runtime_ = nullptr;
  Settings settings_;
  bool is_free_ = false;  // the exception of 5 applies
  std::atomic<bool> is_running_{false};
  std::atomic<uint32_t> is_ending_{0};
  std::atomic<uint32_t> count_{0}, pushers_{0};
  std::atomic<bool> tries_together_{false}, are_together_{false};
  std::atomic<uint32_t> lookers_{0}, sleepers_{0};  // of those that are wanted and have nothing to do
  std::atomic<uint32_t> ahead_sleeps_{0};
  sys::EventCount work_, wanted_, ahead_;
  std::atomic<uint64_t> executed_lines_{0}, proactive_lines_{0};
  uint32_t member_count_ = 0;
  bool has_controller_ = false;
  sys::Thread controller_;
  Member members_[kMaxFlushers + 1];
};

}  // namespace persist
