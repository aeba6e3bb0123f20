#include "cache/places.h"

#include "base/check.h"
#include "sys/memory.h"

namespace cache {
namespace {

// How far take_run looks: 64 words.
constexpr uint32_t kLookPlaces = 64 * 64;
// So many batches are written in place after one that moved failed.
constexpr uint32_t kPausedMoves = 64;

}  // namespace

base::Expected<void> Places::open(uint64_t place_limit) {
  constexpr uint64_t kMost = (uint64_t{1} << 31) - 2 * kRunPlaces;
  limit_ = static_cast<uint32_t>(place_limit < kMost ? place_limit : kMost);
  const uint64_t map_bytes = base::round_up(uint64_t{limit_} / 8 + sizeof(uint64_t), base::kOsPageBytes);
  bytes_ = 2 * map_bytes;
  auto memory = sys::map_anonymous(bytes_, "the map of storage places");
  if (!memory) return std::unexpected(memory.error());
  used_ = reinterpret_cast<uint64_t*>(*memory);
  written_ = reinterpret_cast<uint64_t*>(*memory + map_bytes);
  return {};
}

void Places::close() { sys::unmap(used_, bytes_); }

PlaceId Places::taken(uint32_t place) {
  if (is_garbage(place)) garbage_count_.fetch_sub(1, std::memory_order_relaxed);
  written_[place / 64] |= uint64_t{1} << (place % 64);
  used_[place / 64] |= uint64_t{1} << (place % 64);
  ++used_count_;
  return PlaceId{place};
}

Places::Run Places::taken_run(uint32_t first, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) taken(first + i);
  return {PlaceId{first}, count};
}

// Runs are at least half used on average: sparse or moving data may cost twice its size on storage, not
// sixteen times.
bool Places::roomy() const { return end_ / 2 <= used_count_ + kSlackPlaces / 2; }

PlaceId Places::take(PageId page, PlaceId wish) {
  sys::LockGuard guard(mutex_);
  if (wish != base::kNoPlace && index(wish) < end_ && !is_used(index(wish))) return taken(index(wish));
  if (roomy() && end_ + kRunPlaces <= limit_) {
    uint32_t run = end_;
    end_ += kRunPlaces;
    return taken(run + static_cast<uint32_t>(index(page) % kRunPlaces));
  }
  const uint32_t words = (end_ + 63) / 64;
  for (uint32_t looked = 0; looked <= words && words > 0; ++looked) {
    for (uint64_t free_bits = ~used_[cursor_]; free_bits != 0; free_bits &= free_bits - 1) {
      uint32_t place = cursor_ * 64 + static_cast<uint32_t>(__builtin_ctzll(free_bits));
      if (place < end_) return taken(place);
    }
    cursor_ = (cursor_ + 1) % words;
  }
  if (end_ < limit_) {
    uint32_t place = end_;
    end_ = end_ + kRunPlaces <= limit_ ? end_ + kRunPlaces : limit_;
    return taken(place);
  }
  return base::kNoPlace;
}

uint32_t Places::next(bool used, uint32_t from, uint32_t end) const {
  while (from < end) {
    const uint64_t word = (used ? used_[from / 64] : ~used_[from / 64]) >> (from % 64);
    if (word != 0) {
      from += static_cast<uint32_t>(__builtin_ctzll(word));
      return from < end ? from : end;
    }
    from = (from / 64 + 1) * 64;
  }
  return end;
}

Places::Run Places::take_run(uint32_t most) {
  sys::LockGuard guard(mutex_);
  if (paused_moves_ > 0) {
    --paused_moves_;
    return {};
  }
  const uint32_t grown = static_cast<uint32_t>(base::round_up(most, kRunPlaces));
  const bool may_grow = roomy() && grown <= limit_ - end_;
  // Where pages leave their places at random, stretches of this length are what one turn leaves behind.
  uint64_t least = used_count_ == 0 ? most : uint64_t{4} * (end_ - used_count_) / used_count_;
  if (least > most || may_grow) least = most;
  const bool crowded = uint64_t{2} * (end_ - used_count_) < used_count_;
  if (crowded && !may_grow) return {};
  for (uint32_t looked = 0; looked < kLookPlaces && looked < end_;) {
    if (run_cursor_ >= end_) run_cursor_ = 0;
    const uint32_t first = next(false, run_cursor_, end_);
    const uint32_t bound = end_ - first < most ? end_ : first + most;
    const uint32_t end = next(true, first, bound);
    looked += end - run_cursor_;
    run_cursor_ = end;
    if (end > first && end - first >= least) {
      move_count_.fetch_add(1, std::memory_order_relaxed);
      return taken_run(first, end - first);
    }
  }
  if (!may_grow) return {};
  move_count_.fetch_add(1, std::memory_order_relaxed);
  end_ += grown;
  return taken_run(end_ - grown, most);
}

bool Places::too_much_garbage() {
  sys::LockGuard guard(mutex_);
  // A quarter more than moves alone can leave.
  return garbage_count() > used_count_ + used_count_ / 4 + 2 * kSlackPlaces;
}

void Places::pause_moves() {
  sys::LockGuard guard(mutex_);
  paused_moves_ = kPausedMoves;
}

void Places::give_back(PlaceId place) {
  sys::LockGuard guard(mutex_);
  CHECK_LT(index(place), end_);
  CHECK(is_used(index(place)));
  used_[index(place) / 64] &= ~(uint64_t{1} << (index(place) % 64));
  --used_count_;
  garbage_count_.fetch_add(1, std::memory_order_relaxed);
}

Places::Run Places::take_garbage(uint32_t most) {
  sys::LockGuard guard(mutex_);
  Run run;
  const uint32_t runs = end_ / kRunPlaces;
  for (uint32_t looked = 0; looked < runs && run.count + kRunPlaces <= most; ++looked) {
    if (garbage_cursor_ >= runs) {
      if (run.count > 0) break;  // the next one is not its neighbour
      garbage_cursor_ = 0;
    }
    const uint32_t first = garbage_cursor_ * kRunPlaces;
    bool whole = true;
    for (uint32_t i = 0; i < kRunPlaces && whole; ++i) whole = is_garbage(first + i);
    if (!whole && run.count > 0) break;
    ++garbage_cursor_;
    if (!whole) continue;
    if (run.count == 0) run.first = PlaceId{first};
    taken_run(first, kRunPlaces);
    run.count += kRunPlaces;
  }
  return run;
}

void Places::give_back_discarded(Run run) {
  sys::LockGuard guard(mutex_);
  for (uint32_t place = index(run.first); place < index(run.first) + run.count; ++place) {
    CHECK(is_used(place));
    used_[place / 64] &= ~(uint64_t{1} << (place % 64));
    written_[place / 64] &= ~(uint64_t{1} << (place % 64));
  }
  used_count_ -= run.count;
}

}  // namespace cache
