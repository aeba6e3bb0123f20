// Flushers: threads that flush what others have pushed to their FIFOs. (Ribbon, PACT'20, 2.1 and 2.2)
//
//   flusher i      serves all threads' FIFOs, from the i-th on, while it is wanted; the others sleep
//   fence          executes what waits in its thread's FIFO by itself, if all threads that hand lines over may flush at the same time
//   controller     each period tells the Governor how many lines became durable, and is told how many flushers there are to be
//   together       so does whether all threads that are auto and flush to devices hand their lines over (together.h)
//   proactive      flushes lines that threads have stored to lately, so that their own flush finds them clean
//
//  1 a flusher that finds nothing looks on for a while, and then sleeps. Who pushes wakes one that sleeps unless one is looking: that will find the line, or looks once more
//    when it ends looking
//  2 those that are not wanted sleep where nobody who pushes wakes them
//  3 of what waits in a FIFO a flusher takes its share only, so that others flush beside it
//  4 what it has claimed it looks up: lines that are in no domain any more are dropped
//  5 count() are to flush at the same time. While there are no more threads with FIFOs than that, each of their fences is one of them, and the rest of count() is wanted, but one
//    flusher always; those take what is worth the way to another core, and what a thread asks for. While there are more, fences execute nothing, and count() flushers are wanted; but
//    fences do, however many there are, where nobody has said how many flushers there may be and count() has come to the processors: no more run at the same time in any case.
//    So who may flush is known without a word that all fences write to: that would go from core to core itself, which is what they are to be spared
//
// Thread contract: start(), stop() by one thread at a time; the rest by any. All signals are blocked in its threads.
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
  static constexpr uint32_t kFlushersMax = 64;
  static_assert((kFlushersMax + 1) * Fifo::kClaimLinesMax <= Fifo::kTakenMost);

  struct Settings {
    uint32_t least = 1, most = 0;      // 0: as many as processors
    uint64_t period_ns = 250'000'000;  // of the controller; 0: `most` run, always
  };

  // Starts them all, unless they run. Errors: EAGAIN, ENOMEM: no threads.
  base::Expected<void> start(Runtime& runtime, const Settings& settings);
  // Ends them. REQUIRES: nobody pushes, and nobody waits; no thread leaves or forks, and no domain is removed.
  void stop();
  bool are_running() const { return is_running_.load(std::memory_order_acquire); }

  // Threads that have a FIFO: one more, one less.
  void count_pusher(int difference) {
    pushers_.fetch_add(static_cast<uint32_t>(difference), std::memory_order_relaxed);
    wanted_.notify_all();
  }
  // Does a fence execute what waits? Cost: a few loads.
  bool do_fences_execute() const {
    const uint32_t count = this->count();
    return pushers_.load(std::memory_order_relaxed) <= count || (is_free_ && count == settings_.most) ||
           !are_running();
  }
  // Of its thread, at its fence, inside of its gate: executes what nobody has claimed. Returns how many lines.
  uint32_t execute_waiting(Fifo& fifo);
  // Are flushers to take what waits there?
  bool may_take(const Fifo& fifo) const { return !do_fences_execute() || fifo.is_worthwhile(); }
  // Lines were pushed that they may take. Cost: two loads, unless one sleeps and none looks.
  void wake() {
    if (lookers_.load(std::memory_order_relaxed) == 0 && sleepers_.load(std::memory_order_relaxed) != 0)
      work_.notify_one();
  }
  // The same, and none of them oversees it: before waiting.
  void wake_surely() {
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the one in EventCount::prepare()
    wake();
  }

  // Lines that were stored to lately were pushed.
  void wake_ahead() {
    if (ahead_sleeps_.load(std::memory_order_relaxed) != 0) ahead_.notify_one();
  }

  // How many flush now, at most; by invariant 5.
  uint32_t count() const { return count_.load(std::memory_order_relaxed); }
  // Threads have begun that may hand their lines over together.
  void try_together() { tries_together_.store(true, std::memory_order_relaxed); }
  // Whether they do now.
  bool are_together() const { return are_together_.load(std::memory_order_relaxed) && are_running(); }
  // By flushers.
  uint64_t executed_lines() const { return executed_lines_.load(std::memory_order_relaxed); }
  uint64_t proactive_lines() const { return proactive_lines_.load(std::memory_order_relaxed); }

  // Each is in the middle of nothing that it began before. May block while some are started.
  void pass_all() {
    while_shut([] {});
  }
  // act() while each is in the middle of nothing. The same.
  template <class Act>
  void while_shut(const Act& act) {
    sys::LockGuard scope(lock_);
    for (uint32_t i = 0; i < member_count_; ++i) members_[i].gate.shut();
    act();
    for (uint32_t i = 0; i < member_count_; ++i) members_[i].gate.open();
  }
  // Around a fork: none is being started; in the child there is none.
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
  // Until there is something to do, or the member is not wanted.
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
  bool is_free_ = false;  // `most` is the processors: more cannot run at the same time in any case
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
  Member members_[kFlushersMax + 1];
};

}  // namespace persist
