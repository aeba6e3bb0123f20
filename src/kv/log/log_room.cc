// The log's part that is about room: who waits for it, how writers are paced, and who is told that there will be none.
#include <algorithm>

#include "kv/log/log.h"

namespace kv {

// A writer that waits for room.
struct Log::Call final : task::CallWaiter {
  Call() : CallWaiter("room in the store") {}
  uint32_t grains = 0;
  bool is_granted = false;
  bool is_limited = false;
  bool is_tombstone = false;
  bool is_refused = false;
};

// While writers are paced each takes of what has been granted; the last may take more than is left.
bool Log::admit(Request& request) {
  if (request.is_granted || request.stream == relocation_stream() ||
      !is_paced_.load(std::memory_order_relaxed))
    return true;
  // Hints; wait_for_room() looks again. Who waits has come before.
  if (paced_count_.load(std::memory_order_relaxed) != 0 ||
      granted_grains_.load(std::memory_order_relaxed) <= 0)
    return false;
  granted_grains_.fetch_sub(request.grains, std::memory_order_relaxed);
  request.is_granted = true;
  return true;
}

bool Log::wait_for_grant(Request& request) {
  while (!admit(request))
    if (!wait_for_room(0, Room::kWaitForGrant, request)) return false;
  return true;
}

bool Log::wait_for_room(uint64_t since, Room why, Request& request) {
  Call call;
  call.is_limited = why == Room::kWaitForLimit;
  call.is_tombstone = request.entry.kind() == RecordKind::kTombstone;
  call.grains = request.grains;
  {
    sys::LockGuard scope(lock_);
    if (has_failed()) return false;
    if (why == Room::kWaitForGrant) {
      if (!is_paced_.load(std::memory_order_relaxed)) return true;
      if (paced_.empty() && granted_grains_.load(std::memory_order_relaxed) > 0) return true;
      paced_.append(call);
      paced_count_.fetch_add(1, std::memory_order_relaxed);
    } else {
      if (room_changes_.load(std::memory_order_relaxed) != since) return true;
      // Nobody makes any but the collector itself.
      if (request.stream == relocation_stream() && available() == 0) return false;
      waiting_.append(call);
    }
  }
  // While writers are paced the collector is at work, or will be woken by what it waits for.
  if (why != Room::kWaitForGrant) {
    keeper_wanted.notify_all();
    collector_wanted.notify_all();
  }
  call.wait();
  request.is_granted = request.is_granted || call.is_granted;
  return !call.is_refused && !has_failed();
}

// Whoever waits for a segment, or the limit, asks again.
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

// Those that are to be woken: they go on without a grant. REQUIRES: lock_.
task::CallWaiters Log::end_pace() {
  is_paced_.store(false, std::memory_order_relaxed);
  paced_count_.store(0, std::memory_order_relaxed);
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

// Those of the waiting that are for the limit. REQUIRES: lock_.
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
    if (free >= free_high_) paced = end_pace();
    // Whoever made less live since they began to wait has told nobody. Asked once: it may be otherwise the next moment.
    const bool is_over = is_full();
    if (!is_over) limited = take_limited();
    const bool waits = !waiting_.empty(), is_limited = waits && is_over;
    need = {.collects = !has_failed() && (free < free_high_ || (waits && (is_limited || free <= kReserve))),
            .is_over_limit = is_limited,
            .waits = waits};
  }
  paced.wake_all();
  limited.wake_all();
  return need;
}

// A victim's live records fill a segment at most, besides what is left of the collector's present one.
bool Log::may_start_victim() {
  sys::LockGuard scope(lock_);
  const uint32_t free = available();
  if (free < free_low_) is_paced_.store(true, std::memory_order_relaxed);
  return emptied_count_ == 0 || free > kReserve;
}

void Log::grant(uint64_t grains) {
  task::CallWaiters admitted;
  {
    sys::LockGuard scope(lock_);
    // More or less than was gained, so that neither more is free than is needed for a while, nor the reserve is come to.
    const uint64_t room = available() + emptied_count_;
    const uint64_t wanted = free_low_ - kReserve, is = room > kReserve ? room - kReserve : 0;
    admitted = admit_paced(grains * std::clamp<uint64_t>(is, 1, wanted + 2) / wanted);
  }
  admitted.wake_all();
}

// Those that are to be woken, since so much more is granted. REQUIRES: lock_.
task::CallWaiters Log::admit_paced(uint64_t grains) {
  task::CallWaiters admitted;
  // What nobody has asked for is not kept for later.
  const auto most = static_cast<int64_t>(identity_->geometry.segment_grains());
  if (granted_grains_.fetch_add(static_cast<int64_t>(grains), std::memory_order_relaxed) > most)
    granted_grains_.store(most, std::memory_order_relaxed);
  while (!paced_.empty() && granted_grains_.load(std::memory_order_relaxed) > 0) {
    auto& call = static_cast<Call&>(paced_.take_first());
    paced_count_.fetch_sub(1, std::memory_order_relaxed);
    granted_grains_.fetch_sub(call.grains, std::memory_order_relaxed);
    call.is_granted = true;
    admitted.append(call);
  }
  return admitted;
}

void Log::tell_waiting() {
  task::CallWaiters waiting, paced;
  {
    sys::LockGuard scope(lock_);
    paced = end_pace();
    const bool has_room = available() > kReserve;
    if (has_room || !has_segment_to_seal()) {
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

// Would it be told that the store is full, if nothing is to be gained? REQUIRES: lock_.
bool Log::is_refused(const Call& call) const {
  return available() <= kReserve - call.is_tombstone || (call.is_limited && is_full());
}

// REQUIRES: lock_.
bool Log::has_segment_to_seal() const {
  for (uint32_t i = 0; i < segment_count_; ++i)
    if (segments_[i].state.load(std::memory_order_relaxed) == Segment::State::kFull) return true;
  return false;
}

Log::Room Log::would_refuse() {
  sys::LockGuard scope(lock_);
  if (waiting_.empty()) return Room::kDone;
  const bool has_room = available() > kReserve;
  if (!has_room && has_segment_to_seal()) return Room::kDone;
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
