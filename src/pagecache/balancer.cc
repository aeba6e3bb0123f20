#include "pagecache/balancer.h"

#include <algorithm>

#include "base/check.h"

namespace pagecache {

Balancer::Move Balancer::choose(std::span<const Load> loads) {
  // Has a fewer misses than b for each of its frames, or as many and more frames?
  const auto is_less = [](const Load& a, const Load& b) {
    const uint64_t of_a = a.misses * b.frames, of_b = b.misses * a.frames;
    return of_a != of_b ? of_a < of_b : a.frames > b.frames;
  };
  const Load *from = nullptr, *to = nullptr;
  for (const Load& load : loads) {
    if (load.may_give && (from == nullptr || is_less(load, *from))) from = &load;
    if (load.may_take && (to == nullptr || is_less(*to, load))) to = &load;
  }
  if (from == nullptr || to == nullptr || 2 * from->misses * to->frames >= to->misses * from->frames)
    return {};
  return {.from = static_cast<uint32_t>(from - loads.data()), .to = static_cast<uint32_t>(to - loads.data())};
}

bool Balancer::open(Server& server, uint64_t frames_each) {
  sys::LockGuard scope(lock_);
  if (server_ != nullptr) return false;
  server_ = &server;
  begin_period(frames_each);
  set_stop();
  is_served_.store(true, std::memory_order_relaxed);
  return true;
}

void Balancer::close() {
  {
    sys::LockGuard scope(lock_);
    server_ = nullptr;
    is_served_.store(false, std::memory_order_relaxed);
    set_stop();
  }
  wait_until_idle();
}

void Balancer::hold() {
  {
    sys::LockGuard scope(lock_);
    ++holder_count_;
    set_stop();
  }
  wait_until_idle();
}

void Balancer::release() {
  sys::LockGuard scope(lock_);
  DCHECK(holder_count_ != 0);
  --holder_count_;
  set_stop();
}

void Balancer::wait_until_idle() {
  for (;;) {
    const uint32_t key = has_ended_.prepare();
    {
      sys::LockGuard scope(lock_);
      if (!is_started_) break;
    }
    has_ended_.wait(key);
  }
  has_ended_.cancel();
}

void Balancer::start() {
  sys::LockGuard scope(lock_);
  if (is_started_ || server_ == nullptr) return;
  is_started_ = true;
  server_->start_balance();
}

bool Balancer::begin(std::span<uint64_t> misses) {
  for (size_t node = 0; node < misses.size(); ++node)
    misses[node] = misses_[node].value.load(std::memory_order_relaxed);
  const uint64_t period_misses = period_misses_.load(std::memory_order_relaxed);
  // The miss that started this may belong to an earlier period.
  return !is_to_stop() && std::ranges::any_of(misses, [&](uint64_t count) { return count >= period_misses; });
}

void Balancer::end(uint64_t frames_each) {
  sys::LockGuard scope(lock_);
  begin_period(frames_each);
  is_started_ = false;
  has_ended_.notify_all();
}

void Balancer::begin_period(uint64_t frames_each) {
  period_misses_.store(std::max(kMinPeriodMisses, frames_each / 4), std::memory_order_relaxed);
  for (Misses& misses : misses_) misses.value.store(0, std::memory_order_relaxed);
}

}  // namespace pagecache
