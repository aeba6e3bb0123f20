#include "persist/flushers.h"

#include <algorithm>
#include <new>

#include "persist/runtime.h"
#include "persist/together.h"
#include "sys/kernel.h"
#include "sys/persistent.h"
#include "sys/spin.h"

namespace persist {
namespace {

// Looks in vain before a flusher sleeps: some 50 us.
constexpr int kSpins = 400;
// A flusher that sleeps looks again after this time, though nobody relies on that.
constexpr uint64_t kSleepNs = 50'000'000;
// A flusher takes at least this many lines: each share costs a fence, some 100 ns, and memory is written in blocks of 256 bytes.
constexpr uint32_t kMinShare = 4;

}  // namespace

base::Expected<void> Flushers::start(Runtime& runtime, const Settings& settings) {
  sys::LockGuard scope(lock_);
  if (are_running()) return {};
  runtime_ = &runtime;
  settings_ = settings;
  is_free_ = settings_.most == 0 && sys::cpu_count() <= kMaxFlushers;
  if (settings_.most == 0) settings_.most = sys::cpu_count();
  settings_.most = std::min(settings_.most, kMaxFlushers);
  settings_.least = std::clamp<uint32_t>(settings_.least, 1, settings_.most);
  is_ending_.store(0, std::memory_order_relaxed);
  count_.store(settings_.most, std::memory_order_relaxed);
  for (member_count_ = 0; member_count_ <= settings_.most; ++member_count_) {
    Member& member = members_[member_count_];
    member.flushers = this;
    member.index = member_count_;
    member.is_proactive = member_count_ == settings_.most;
    auto started =
        sys::start_thread(run_member, &member, member.is_proactive ? "persist-ahead" : "persist-flush");
    if (!started) {
      end_all();
      return std::unexpected(started.error());
    }
    member.thread = *started;
  }
  has_controller_ = settings_.period_ns != 0;
  if (has_controller_) {
    auto started = sys::start_thread(run_controller, this, "persist-govern");
    has_controller_ = started.has_value();
    if (!started) {
      end_all();
      return std::unexpected(started.error());
    }
    controller_ = *started;
  }
  is_running_.store(true, std::memory_order_release);
  return {};
}

void Flushers::end_all() {
  is_ending_.store(1, std::memory_order_seq_cst);
  for (sys::EventCount* const event : {&work_, &wanted_, &ahead_}) event->notify_all();
  sys::futex_wake(is_ending_, 1);
  for (uint32_t i = 0; i < member_count_; ++i) sys::join_thread(members_[i].thread);
  if (has_controller_) sys::join_thread(controller_);
  has_controller_ = false;
  member_count_ = 0;
}

void Flushers::stop() {
  sys::LockGuard scope(lock_);
  if (!are_running()) return;
  is_running_.store(false, std::memory_order_release);
  end_all();
}

void Flushers::after_fork_in_child(uint32_t pushers) {
  pushers_.store(pushers, std::memory_order_relaxed);
  is_running_.store(false, std::memory_order_relaxed);
  member_count_ = 0;
  has_controller_ = false;
  tries_together_.store(false, std::memory_order_relaxed);
  are_together_.store(false, std::memory_order_relaxed);
  for (std::atomic<uint32_t>* const counted : {&lookers_, &sleepers_, &ahead_sleeps_})
    counted->store(0, std::memory_order_relaxed);
  for (sys::EventCount* const event : {&work_, &wanted_, &ahead_}) new (event) sys::EventCount;
  for (Member& member : members_) new (&member) Member;
  lock_.unlock();
}

uint32_t Flushers::flush_some(Fifo& fifo) {
  uintptr_t lines[Fifo::kMaxClaimLines];
  const auto share = static_cast<uint32_t>(fifo.waiting() / wanted_count());
  const uint32_t count = fifo.claim(lines, std::clamp(share, kMinShare, Fifo::kMaxClaimLines));
  if (count == 0) return 0;
  execute(lines, count);
  fifo.finish(count);
  return count;
}

uint32_t Flushers::execute_waiting(Fifo& fifo) {
  uint32_t all = 0;
  while (const uint32_t count = fifo.hold()) {
    execute(fifo.held(), count);
    fifo.finish_held();
    all += count;
  }
  return all;
}

void Flushers::execute(const uintptr_t* lines, uint32_t count) const {
  const Domains& domains = runtime_->domains();
  const sys::LineFlush instruction = runtime_->settings().instruction;
  // Lines that follow each other for the same device go to it together.
  Domains::Found found = domains.find(lines[0]);
  for (uint32_t i = 0; i < count;) {
    if (!found.domain.holds(lines[i]) || found.version != domains.version()) found = domains.find(lines[i]);
    uint32_t end = i + 1;
    while (end < count && found.domain.holds(lines[end])) ++end;
    if (found.is_inside && found.domain.kind == DomainKind::kDevice) {
      found.domain.device->flush(lines + i, end - i);
      found.domain.device->fence();
    } else if (found.is_inside && found.domain.kind == DomainKind::kMemory) {
      for (uint32_t k = i; k < end; ++k) sys::flush_line(lines[k], instruction);
    }
    i = end;
  }
  sys::fence_stores();
}

uint32_t Flushers::look(Member& member) {
  uint32_t found = 0;
  member.gate.enter();
  runtime_->visit_threads_from(member.index, [&](Thread& thread) {
    Fifo* const fifo = member.is_proactive ? thread.recent() : thread.fifo();
    if (fifo != nullptr && (member.is_proactive || may_take(*fifo))) found += flush_some(*fifo);
  });
  member.gate.leave();
  if (found == 0) return 0;
  auto& count = member.is_proactive ? proactive_lines_ : executed_lines_;
  count.fetch_add(found, std::memory_order_relaxed);
  return found;
}

void Flushers::serve(Member& member) {
  while (!is_ending()) {
    if (!is_wanted(member)) {
      const uint32_t key = wanted_.prepare();
      if (is_ending() || is_wanted(member))
        wanted_.cancel();
      else
        wanted_.wait(key, kSleepNs);
    } else {
      if (look(member) == 0) look_and_sleep(member);
      // If it is no longer wanted, another flusher has to do what this one was woken for, or what none was woken for while this one looked.
      if (!is_wanted(member)) wake_surely();
    }
  }
}

void Flushers::look_and_sleep(Member& member) {
  lookers_.fetch_add(1, std::memory_order_relaxed);
  uint32_t found = 0;
  for (int spins = 0; found == 0 && spins < kSpins && is_wanted(member) && !is_ending(); ++spins) {
    sys::spin(spins);
    found = look(member);
  }
  sleepers_.fetch_add(1, std::memory_order_relaxed);
  const uint32_t key = work_.prepare();
  lookers_.fetch_sub(1, std::memory_order_relaxed);
  // Pairs with the fence in wake_surely(): either this looks after the push, or whoever pushed looks at lookers_ and sleepers_ after this.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (found != 0 || is_ending() || look(member) != 0 || !is_wanted(member))
    work_.cancel();
  else
    work_.wait(key, kSleepNs);
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

void Flushers::serve_ahead(Member& member) {
  while (!is_ending()) {
    if (look(member) != 0) continue;
    ahead_sleeps_.store(1, std::memory_order_relaxed);
    const uint32_t key = ahead_.prepare();
    // Nobody relies on this flusher: what it misses it finds later, or never.
    if (is_ending() || look(member) != 0)
      ahead_.cancel();
    else
      ahead_.wait(key, kSleepNs);
    ahead_sleeps_.store(0, std::memory_order_relaxed);
  }
}

void Flushers::control() {
  Governor governor(settings_.least, settings_.most);
  Together together;
  count_.store(governor.count(), std::memory_order_relaxed);
  // Pushed lines that were executed, whether by flushers or by fences.
  const auto pushed_and_executed = [this](const Counts& counts) {
    return executed_lines() + counts.fence_lines;
  };
  const Counts at_begin = runtime_->counts();
  uint64_t lines = pushed_and_executed(at_begin), asked = at_begin.asked_lines,
           begin_ns = sys::monotonic_ns();
  bool is_mixed = false;  // in this period threads change to handing over together, or back
  while (is_ending_.load(std::memory_order_relaxed) == 0) {
    sys::futex_wait(is_ending_, 0, settings_.period_ns);
    const Counts counts = runtime_->counts();
    const uint64_t now_ns = sys::monotonic_ns(), now_lines = pushed_and_executed(counts),
                   now_asked = counts.asked_lines;
    const auto rate = [&](uint64_t count) {
      return static_cast<double>(count) / static_cast<double>(now_ns - begin_ns);
    };
    if (!is_mixed) governor.on_sample(rate(now_lines - lines));
    is_mixed = tries_together_.load(std::memory_order_relaxed) && together.on_period(rate(now_asked - asked));
    if (is_mixed) {
      are_together_.store(together.is_on(), std::memory_order_relaxed);
      runtime_->forget_places();
    }
    begin_ns = now_ns;
    lines = now_lines;
    asked = now_asked;
    // A smaller count can need more flushers: those that take the place of fences.
    if (count_.exchange(governor.count(), std::memory_order_relaxed) != governor.count())
      wanted_.notify_all();
  }
}

void Flushers::run_member(void* member) {
  auto& own = *static_cast<Member*>(member);
  if (own.is_proactive)
    own.flushers->serve_ahead(own);
  else
    own.flushers->serve(own);
}

void Flushers::run_controller(void* flushers) { static_cast<Flushers*>(flushers)->control(); }

}  // namespace persist
