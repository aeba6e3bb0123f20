// Room in the log: who waits for it, how writers are paced, and who is told that there will be none.
#include <algorithm>

#include "kv/log/log.h"
#include "kv/media/clock.h"

namespace kv {
namespace {

// Writers whose turns come within the same tick go on together, at its beginning, so that one wake-up and one system call serve several.
constexpr uint64_t kTickNs = 200'000;

}  // namespace

// A writer that waits for room.
struct Log::Call final : task::CallWaiter {
  Call() : CallWaiter("room in the store") {}
  bool is_limited = false;
  bool is_tombstone = false;
  bool is_refused = false;
};

// A writer that waits for its turn.
struct Log::Turn final : task::CallWaiter {
  explicit Turn(Log& of) : CallWaiter("its turn to write"), log(of) {}
  bool abandon() override {
    sys::LockGuard scope(log.lock_);
    return log.paced_.remove(*this);
  }
  Log& log;
};

bool Log::wait_for_turn(const Request& request) {
  if (!is_paced_.load(std::memory_order_relaxed)) return !has_failed();
  const uint64_t now = now_ns(), turn_ns = pace_.turn(request.grains, now);
  const uint64_t at = turn_ns / kTickNs * kTickNs;
  if (at <= now) return !has_failed();
  Turn turn(*this);
  {
    sys::LockGuard scope(lock_);
    if (has_failed() || !is_paced_.load(std::memory_order_relaxed)) return !has_failed();
    paced_.append(turn);
  }
  paced_count_.fetch_add(1, std::memory_order_relaxed);
  turn.wait_until(at);
  paced_count_.fetch_sub(1, std::memory_order_relaxed);
  return !has_failed();
}

bool Log::wait_for_room(uint64_t since, Room why, const Request& request) {
  Call call;
  call.is_limited = why == Room::kWaitForLimit;
  call.is_tombstone = request.entry.kind() == RecordKind::kTombstone;
  {
    sys::LockGuard scope(lock_);
    if (has_failed()) return false;
    if (room_changes_.load(std::memory_order_relaxed) != since) return true;
    // Only the collector frees segments, and it is the caller.
    if (request.stream == relocation_stream() && available() == 0) return false;
    waiting_.append(call);
  }
  keeper_wanted.notify_all();
  collector_wanted.notify_all();
  call.wait();
  return !call.is_refused && !has_failed();
}

// Wakes all that wait for a segment or for the limit: they ask again.
void Log::changed_room() {
  task::CallWaiters waiting;
  {
    sys::LockGuard scope(lock_);
    if (available() > kReserve) has_no_room_.store(false, std::memory_order_relaxed);
    room_changes_.fetch_add(1, std::memory_order_release);
    waiting = waiting_.take_all();
  }
  waiting.wake_all();
}

// Returns the paced writers, for the caller to wake without the lock. REQUIRES: lock_.
task::CallWaiters Log::end_pace() {
  is_paced_.store(false, std::memory_order_relaxed);
  return paced_.take_all();
}

void Log::fail() {
  task::CallWaiters paced;
  {
    sys::LockGuard scope(lock_);
    failed_.store(true, std::memory_order_release);
    paced = end_pace();
  }
  paced.wake_all();
  changed_room();
  collector_wanted.notify_all();
}

void Log::refuse_waiting() {
  task::CallWaiters waiting;
  {
    sys::LockGuard scope(lock_);
    room_changes_.fetch_add(1, std::memory_order_release);
    waiting = waiting_.take_all();
    waiting.for_each([](task::CallWaiter& waiter) { static_cast<Call&>(waiter).is_refused = true; });
  }
  waiting.wake_all();
}

// Takes out of waiting_ those that wait for the limit. REQUIRES: lock_.
task::CallWaiters Log::take_limited() {
  task::CallWaiters all = waiting_.take_all(), limited;
  while (!all.empty()) {
    auto& call = static_cast<Call&>(all.take_first());
    (call.is_limited ? limited : waiting_).append(call);
  }
  return limited;
}

Log::Need Log::need() {
  task::CallWaiters paced, limited;
  Need need;
  {
    sys::LockGuard scope(lock_);
    const uint32_t free = available();
    has_new_victims_ = false;
    if (free >= free_high_) paced = end_pace();
    // release() wakes nobody: whoever waits for the limit is woken here. is_full() is called once, since it may change at any moment.
    const bool is_over = is_full();
    if (!is_over) limited = take_limited();
    const bool waits = !waiting_.empty(), is_limited = waits && is_over;
    const bool collects = !has_failed() && (free < free_high_ || (waits && (is_limited || free <= kReserve)));
    if (!collects) pace_.rest();
    need = {.collects = collects, .is_over_limit = is_limited, .waits = waits};
  }
  paced.wake_all();
  limited.wake_all();
  return need;
}

// A victim's live records take one segment at most beyond the rest of the collector's open one.
bool Log::may_start_victim() {
  sys::LockGuard scope(lock_);
  const uint32_t free = available();
  if (free < free_low_) is_paced_.store(true, std::memory_order_relaxed);
  pace_.work(free_level(), now_ns());
  return emptied_count_ == 0 || free > kReserve;
}

bool Log::is_short() {
  sys::LockGuard scope(lock_);
  return available() <= kReserve;
}

void Log::gained(uint64_t grains) {
  sys::LockGuard scope(lock_);
  pace_.gained(grains, free_level(), now_ns());
}

// LogCounts::free_level. REQUIRES: lock_.
double Log::free_level() const {
  const auto segment_grains = static_cast<double>(identity_->geometry.segment_grains());
  double free = static_cast<double>(available() + emptied_count_) - kReserve;
  for (uint32_t i = 0; i < stream_count_; ++i) {
    const uint32_t index = streams_[i].segment.load(std::memory_order_relaxed);
    if (index == kNone) continue;
    const uint64_t filling = segments_[index].filling.load(std::memory_order_relaxed);
    free += 1 - Filling::of(filling).used_grains / segment_grains;
  }
  // The 1 is because victims are given back two at a time (kMaxEmptied): one segment more is filled meanwhile.
  return free / (stream_count_ * 1.5 + 1);
}

void Log::tell_waiting() {
  task::CallWaiters waiting, paced;
  {
    sys::LockGuard scope(lock_);
    paced = end_pace();
    const bool has_room = available() > kReserve;
    if (has_room || !may_gain_soon()) {
      if (!has_room && !waiting_.empty()) has_no_room_.store(true, std::memory_order_relaxed);
      room_changes_.fetch_add(1, std::memory_order_release);
      waiting = waiting_.take_all();
      waiting.for_each([&](task::CallWaiter& waiter) {
        auto& call = static_cast<Call&>(waiter);
        call.is_refused = is_refused(call);
      });
    }
  }
  paced.wake_all();
  waiting.wake_all();
}

// Would tell_waiting() tell this call that the store is full? REQUIRES: lock_.
bool Log::is_refused(const Call& call) const {
  return available() <= kReserve - call.is_tombstone || (call.is_limited && is_full());
}

// May a segment be gained that the collector has not considered: one that is being sealed, or was sealed since need()? REQUIRES: lock_.
bool Log::may_gain_soon() const {
  if (has_new_victims_) return true;
  for (uint32_t i = 0; i < segment_count_; ++i)
    if (segments_[i].state.load(std::memory_order_relaxed) == Segment::State::kFull) return true;
  return false;
}

Log::Room Log::would_refuse() {
  sys::LockGuard scope(lock_);
  if (waiting_.empty()) return Room::kDone;
  const bool has_room = available() > kReserve;
  if (!has_room && may_gain_soon()) return Room::kDone;
  bool any = false;
  waiting_.for_each([&](task::CallWaiter& waiter) { any = any || is_refused(static_cast<Call&>(waiter)); });
  if (!any) return Room::kDone;
  return has_room ? Room::kWaitForLimit : Room::kWait;
}

bool Log::has_free_segment() {
  sys::LockGuard scope(lock_);
  return available() != 0;
}

bool Log::has_more_than(uint32_t segments) {
  sys::LockGuard scope(lock_);
  return available() + emptied_count_ > segments;
}

}  // namespace kv
