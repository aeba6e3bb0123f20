#include "kv/collection/snapshots.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/linked.h"

namespace kv {
namespace {

std::vector<Location>::iterator find(std::vector<Location>& in, uint64_t address) {
  return std::ranges::find_if(
      in, [&](const Location& location) { return location.found && location.address == address; });
}

void erase(std::vector<Location>& from, std::vector<Location>::iterator at) {
  *at = from.back();
  from.pop_back();
}

}  // namespace

bool Snapshots::Member::has(uint64_t version) const {
  if (version > sequence) return std::ranges::binary_search(renewed, version);
  return std::ranges::find(late, version) == late.end();
}

bool Snapshots::add(Member& member) {
  sys::LockGuard scope(lock_);
  if (count_.load(std::memory_order_relaxed) == kMax) return false;
  Member** at = &oldest_;
  while (*at != nullptr) at = &(*at)->next;
  *at = &member;
  count_.fetch_add(1, std::memory_order_seq_cst);
  // No change has this sequence.
  member.sequence = log_->next_sequence();
  return true;
}

void Snapshots::remove(Member& member) {
  Kept kept;
  {
    sys::LockGuard scope(lock_);
    base::unlink(oldest_, member);
    count_.fetch_sub(1, std::memory_order_seq_cst);
    std::swap(kept, member.kept);
  }
  give_back(kept);
}

// Among positions that the cursor has passed, an old record that is neither pending nor being read has been given out, or is not part of the snapshot.
void Snapshots::hand_over(const KeyHash& hash, const Location& old, uint64_t old_version,
                          const PiecesOf* head, uint64_t version) {
  const uint64_t position = Index::position_of(hash.low);
  sys::LockGuard scope(lock_);
  for (Member* member = oldest_; member != nullptr; member = member->next) {
    if (member->is_cancelled) continue;
    if (version <= member->sequence) member->late.push_back(version);
    if (!old.found || position < member->begin) continue;
    if (position < member->end) {
      if (auto at = find(member->pending, old.address); at != member->pending.end())
        erase(member->pending, at);
      else if (at = find(member->reading, old.address); at != member->reading.end())
        at->found = false;
      else
        continue;
      if (position < member->asked) continue;
    }
    if (!member->has(old_version)) continue;
    const Pieces pieces = {.head = hash, .of = head != nullptr ? *head : PiecesOf()};
    keep(*member, old, head != nullptr ? &pieces : nullptr);
  }
}

void Snapshots::keep(Member& member, const Location& location, const Pieces* pieces) {
  if (member.kept.values.size() + member.kept.large.size() == kMaxKept) {
    member.is_cancelled = true;  // its reader gives back what it keeps, or cancel_oldest() does
    return;
  }
  log_->segment(geometry_->segment_of(location.address)).keeps.fetch_add(1, std::memory_order_relaxed);
  if (pieces == nullptr) {
    member.kept.values.push_back(location);
  } else {
    large_values_->begin_read(*pieces);
    member.kept.large.push_back({location, *pieces});
  }
}

void Snapshots::follow(const KeyHash& hash, uint64_t address, const Location& to) {
  const uint64_t position = Index::position_of(hash.low);
  sys::LockGuard scope(lock_);
  for (Member* member = oldest_; member != nullptr; member = member->next) {
    if (position < member->begin || position >= member->end) continue;
    if (auto at = find(member->pending, address); at != member->pending.end()) {
      *at = to;
      if (!to.found) erase(member->pending, at);
    } else if (at = find(member->reading, address); at != member->reading.end()) {
      *at = to;
    }
  }
}

// The new record is part of the snapshots that the old one is part of, whatever its version says.
void Snapshots::note_renewed(const KeyHash& hash, uint64_t old_version, uint64_t version) {
  const uint64_t position = Index::position_of(hash.low);
  sys::LockGuard scope(lock_);
  for (Member* member = oldest_; member != nullptr; member = member->next) {
    if (member->is_cancelled || position < member->begin) continue;
    const bool is_part = member->has(old_version);
    if (is_part == (version <= member->sequence)) continue;
    if (member->renewed.size() == kMaxRenewed)
      member->is_cancelled = true;  // as in keep()
    else
      (is_part ? member->renewed : member->late).push_back(version);
  }
}

// A segment that is kept gives no room to writers who wait for a segment. For those who wait for the limit only live records matter, and what a
// snapshot keeps live are the pieces of large values.
bool Snapshots::holds_up(const Member& member, Log::Room why) {
  if (why == Log::Room::kWait && !member.kept.values.empty()) return true;
  return !member.kept.large.empty() || std::ranges::any_of(member.kept.held, [&](const Pieces& pieces) {
    return large_values_->is_removed(pieces);
  });
}

bool Snapshots::cancel_oldest(Log::Room why) {
  Kept kept;
  {
    sys::LockGuard scope(lock_);
    Member* member = oldest_;
    while (member != nullptr && !holds_up(*member, why)) member = member->next;
    if (member == nullptr) return false;
    member->is_cancelled = true;
    std::swap(kept, member->kept);
  }
  give_back(kept);
  return true;
}

void Snapshots::give_back(Kept& kept) {
  if (kept.empty()) return;
  for (const Location& location : kept.values) give_back(location);
  for (const Large& large : kept.large) {
    give_back(large.location);
    static_cast<void>(large_values_->end_read(large.pieces));
  }
  for (const Pieces& pieces : kept.held) static_cast<void>(large_values_->end_read(pieces));
  kept = {};
  log_->collector_wanted.notify_all();
}

void Snapshots::hold(Member& member, const Pieces& pieces) {
  large_values_->begin_read(pieces);
  member.kept.held.push_back(pieces);
}

void Snapshots::let_go(Member& member, const Pieces& pieces) {
  auto& held = member.kept.held;
  const auto at = std::ranges::find_if(
      held, [&](const Pieces& other) { return other.of.sequence == pieces.of.sequence; });
  if (at == held.end()) return;  // it has been cancelled
  *at = held.back();
  held.pop_back();
  if (large_values_->end_read(pieces)) log_->collector_wanted.notify_all();
}

}  // namespace kv
