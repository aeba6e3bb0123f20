#include "cache/policies/policy.h"

#include <algorithm>
#include <new>

#include "base/check.h"
#include "base/plain_memory.h"
#include "cache/policies/policy_2q.h"
#include "cache/policies/policy_clock.h"
#include "cache/policies/policy_lru.h"
#include "cache/policies/policy_nrlfu.h"
#include "cache/policies/policy_random.h"
#include "cache/policies/policy_s3fifo.h"
#include "sys/memory.h"

namespace cache {

uint32_t Policy::remembered_by(bool remembers, uint32_t of_all, uint32_t one_in) {
  constexpr uint32_t kFewest = 8;
  return remembers ? std::max(of_all / one_in, kFewest) : 0;
}

// All in one piece of memory: the object, the history, two bits for each frame, and what the class keeps for each frame.
template <class Class>
base::Expected<Policy*> Policy::create_one(uint32_t frame_count, uint32_t frame_limit, Budget& budget,
                                           uint32_t one_in) {
  const uint64_t object_bytes = base::round_up(sizeof(Class), base::kLineBytes);
  const auto remembered_of_all = static_cast<uint32_t>(uint64_t{frame_count} * Class::kRemembered16 / 16);
  const uint32_t remembered = remembered_by(Class::kRemembered16 > 0, remembered_of_all, one_in);
  const uint64_t history_bytes = remembered > 0 ? PageHistory::memory_bytes(remembered) : 0;
  const uint64_t bits_bytes = base::round_up(frame_limit, 64) / 8;
  const uint64_t memory_bytes = base::round_up(
      object_bytes + history_bytes + 2 * bits_bytes + uint64_t{frame_limit} * Class::kFrameBytes,
      base::kOsPageBytes);
  auto memory = sys::map_anonymous(memory_bytes, "the replacement policy");
  if (!memory) return std::unexpected(memory.error());
  Policy* policy = new (*memory) Class;
  policy->frame_count_ = frame_count;
  policy->memory_bytes_ = memory_bytes;
  policy->fixed_bytes_ = object_bytes + history_bytes;
  policy->frame_bytes_ = Class::kFrameBytes;
  policy->budget_ = &budget;
  char* at = *memory + object_bytes;
  policy->remembers_ = Class::kRemembered16 > 0;
  policy->remembered_of_all_ = remembered_of_all;
  policy->history_memory_ = at;
  policy->history_bytes_ = history_bytes;
  if (remembered > 0) policy->history_.open(at, remembered);
  at += history_bytes;
  policy->held_ = reinterpret_cast<uint64_t*>(at);
  policy->taken_ = reinterpret_cast<uint64_t*>(at + bits_bytes);
  policy->take_frame_memory(at + 2 * bits_bytes);
  budget.add(policy->charged_bytes());
  return policy;
}

base::Expected<Policy*> Policy::create(base::PolicyKind kind, uint32_t frame_count, uint32_t frame_limit,
                                       Budget& budget, uint32_t one_in) {
  CHECK_GT(frame_count, 0u);
  CHECK_GE(frame_limit, frame_count);
  switch (kind) {
#define POLICY(kind, name, class) \
  case base::PolicyKind::kind: return create_one<class>(frame_count, frame_limit, budget, one_in);
#include "base/policies.inc"
  }
  __builtin_unreachable();
}

void Policy::destroy() {
  budget_->subtract(charged_bytes());
  sys::unmap(this, memory_bytes_);
}

void Policy::set_share(uint32_t one_in) {
  if (!remembers_) return;
  spillway_plain_memset(history_memory_, 0, history_bytes_);
  history_.open(history_memory_, remembered_by(true, remembered_of_all_, one_in));
}

void Policy::grow(uint32_t frame_count) {
  const uint64_t before = charged_bytes();
  frame_count_ = frame_count;
  budget_->add(charged_bytes() - before);
}

void Policy::loaded(FrameId frame, PageId page, bool wanted) {
  CHECK_LT(index(frame), frame_count_);
  CHECK(!holds(frame));
  base::set_bit(held_, index(frame));
  ++held_count_;
  if (index(frame) >= end_) end_ = index(frame) + 1;
  Arrival arrival{.wanted = wanted, .remembered = {}};
  if (wanted) arrival.remembered = history_.take(page);
  on_load(frame, arrival);
}

void Policy::left(FrameId frame, PageId page, Removal removal) {
  CHECK(holds(frame));
  const auto remembered = on_leave(frame, removal);
  stays(frame);
  base::clear_bit(held_, index(frame));
  --held_count_;
  named_in_vain_ = 0;
  if (remembered && removal == Removal::kEvicted) history_.add(page, *remembered);
}

void Policy::taken(FrameId frame) {
  CHECK(holds(frame));
  taken_count_ += !base::has_bit(taken_, index(frame));
  base::set_bit(taken_, index(frame));
}

void Policy::stays(FrameId frame) {
  // Stores only what changes: each hit that asks the partition comes here, and threads would pass these lines to and fro.
  if (!base::has_bit(taken_, index(frame))) return;
  --taken_count_;
  base::clear_bit(taken_, index(frame));
}

Policy::Named Policy::name_victim() {
  if (held_count_ == 0) return {};
  const Named named = next_victim();
  CHECK(holds(named.frame));
  ++named_in_vain_;
  return named;
}

FrameId Policy::next_held(uint32_t from) const {
  CHECK_GT(held_count_, 0u);
  uint32_t word = from < end_ ? from / 64 : 0;
  uint64_t bits = from < end_ ? held_[word] >> (from % 64) << (from % 64) : held_[0];
  while (bits == 0) {
    word = (word + 1) * 64 < end_ ? word + 1 : 0;
    bits = held_[word];
  }
  return FrameId{word * 64 + static_cast<uint32_t>(__builtin_ctzll(bits))};
}

}  // namespace cache
