#include "persist/flushers.h"

#include <algorithm>
#include <new>

#include "persist/runtime.h"
#include "sys/kernel.h"
#include "sys/persistent.h"
#include "sys/spin.h"

namespace persist {
namespace {

// Looks in vain before a flusher sleeps: some 50 us.
constexpr int kSpins = 400;
// A flusher that sleeps looks by itself so often; nobody relies on it.
constexpr uint64_t kSleepNs = 50'000'000;

}  // namespace

base::Expected<void> Flushers::start(Runtime& runtime, const Settings& settings) {
  sys::LockGuard scope(lock_);
  if (are_running()) return {};
  runtime_ = &runtime;
  settings_ = settings;
  if (settings_.most == 0) settings_.most = sys::cpu_count();
  settings_.most = std::min(settings_.most, kFlushersMax);
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
  work_.notify_all();
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

void Flushers::after_fork_in_child() {
  is_running_.store(false, std::memory_order_relaxed);
  member_count_ = 0;
  has_controller_ = false;
  sleepers_.store(0, std::memory_order_relaxed);
  new (&work_) sys::EventCount;
  for (Member& member : members_) new (&member) Member;
  lock_.unlock();
}

void Flushers::pass_all() {
  sys::LockGuard scope(lock_);
  for (uint32_t i = 0; i < member_count_; ++i) {
    members_[i].gate.shut();
    members_[i].gate.open();
  }
}

uint32_t Flushers::flush_some(Fifo& fifo) {
  uintptr_t lines[Fifo::kClaimLinesMax];
  const uint32_t count = fifo.claim(lines);
  if (count == 0) return 0;
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
  fifo.finish(count);
  return count;
}

uint32_t Flushers::look(Member& member) {
  uint32_t found = 0;
  member.gate.enter();
  runtime_->visit_threads_from(member.index, [&](Thread& thread) {
    Fifo* const fifo = member.is_proactive ? thread.recent() : thread.fifo();
    if (fifo != nullptr) found += flush_some(*fifo);
  });
  member.gate.leave();
  auto& count = member.is_proactive ? proactive_lines_ : executed_lines_;
  count.fetch_add(found, std::memory_order_relaxed);
  return found;
}

void Flushers::serve(Member& member) {
  const auto is_wanted = [&] { return member.is_proactive || member.index < count(); };
  for (int spins = 0; is_ending_.load(std::memory_order_relaxed) == 0;) {
    if (is_wanted() && look(member) != 0) {
      spins = 0;
    } else if (is_wanted() && spins < kSpins) {
      sys::spin(spins++);
    } else {
      sleepers_.fetch_add(1, std::memory_order_relaxed);
      const uint32_t key = work_.prepare();
      // Pairs with the fence in wake_surely(): either this looks after the push, or the push is followed by a look at sleepers_.
      std::atomic_thread_fence(std::memory_order_seq_cst);
      if (is_ending_.load(std::memory_order_relaxed) != 0 || (is_wanted() && look(member) != 0))
        work_.cancel();
      else
        work_.wait(key, kSleepNs);
      sleepers_.fetch_sub(1, std::memory_order_relaxed);
      spins = 0;
    }
  }
}

void Flushers::control() {
  Governor governor(settings_.least, settings_.most);
  count_.store(governor.count(), std::memory_order_relaxed);
  uint64_t lines = executed_lines(), begin_ns = sys::monotonic_ns();
  while (is_ending_.load(std::memory_order_relaxed) == 0) {
    sys::futex_wait(is_ending_, 0, settings_.period_ns);
    const uint64_t now_ns = sys::monotonic_ns(), now_lines = executed_lines();
    governor.on_sample(static_cast<double>(now_lines - lines) / static_cast<double>(now_ns - begin_ns));
    begin_ns = now_ns;
    lines = now_lines;
    if (count_.exchange(governor.count(), std::memory_order_relaxed) < governor.count()) wake();
  }
}

void Flushers::run_member(void* member) {
  auto& own = *static_cast<Member*>(member);
  own.flushers->serve(own);
}

void Flushers::run_controller(void* flushers) { static_cast<Flushers*>(flushers)->control(); }

}  // namespace persist
