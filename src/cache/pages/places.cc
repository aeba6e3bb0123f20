#include "cache/pages/places.h"

#include <new>

#include "base/check.h"
#include "base/statistics.h"
#include "sys/memory.h"

namespace cache {
namespace {

using base::clear_bit;
using base::has_bit;
using base::set_bit;

// How far take_run looks: 64 words.
constexpr uint32_t kLookPlaces = 64 * 64;
// How many take_run calls find nothing after a write to a new place has failed.
constexpr uint32_t kPausedMoves = 64;
// An extent is a thousandth of the device, within these bounds.
constexpr uint32_t kMinExtent = 64;
constexpr uint32_t kMaxExtent = 16 * 1024;
constexpr uint32_t kExtentsWanted = 1024;

void raise(std::atomic<uint32_t>& bound, uint32_t to) {
  uint32_t old = bound.load(std::memory_order_relaxed);
  while (old < to && !bound.compare_exchange_weak(old, to, std::memory_order_acq_rel)) {
  }
}

}  // namespace

base::Expected<void> Places::open(uint64_t place_limit, bool copied_by_fork) {
  constexpr uint64_t kMax = (uint64_t{1} << 31) - 2 * kRunPlaces;
  limit_ = static_cast<uint32_t>(place_limit < kMax ? place_limit : kMax);
  copied_by_fork_ = copied_by_fork;
  extent_places_ = limit_ / kExtentsWanted / kMinExtent * kMinExtent;
  if (extent_places_ < kMinExtent) extent_places_ = kMinExtent;
  if (extent_places_ > kMaxExtent) extent_places_ = kMaxExtent;
  family_bytes_ =
      base::round_up(sizeof(Family) + uint64_t{extent_count()} * sizeof(uint32_t), base::kOsPageBytes);
  // If a child has its own copy of the device, no other process has these places.
  auto family = copied_by_fork ? sys::map_anonymous(family_bytes_, "the map of storage extents")
                               : sys::map_shared_anonymous(family_bytes_, "the map of storage extents");
  if (!family) return std::unexpected(family.error());
  family_ = reinterpret_cast<Family*>(*family);
  family_->parents[0].store(kIsRoot, std::memory_order_relaxed);
  family_->member_end.store(1, std::memory_order_relaxed);
  const uint64_t map_bytes = base::round_up(uint64_t{limit_} / 8 + sizeof(uint64_t), base::kOsPageBytes);
  bytes_ = 4 * map_bytes;
  auto memory = sys::map_anonymous(bytes_, "the map of storage places");
  if (!memory) return std::unexpected(memory.error());
  used_ = reinterpret_cast<uint64_t*>(*memory);
  written_ = reinterpret_cast<uint64_t*>(*memory + map_bytes);
  free_ = reinterpret_cast<uint64_t*>(*memory + 2 * map_bytes);
  frozen_ = reinterpret_cast<uint64_t*>(*memory + 3 * map_bytes);
  return {};
}

void Places::close() {
  while (Child* child = children_) {
    children_ = child->next;
    child->lifeline.close();
    sys::unmap(child, child->bytes);
  }
  sys::unmap(used_, bytes_);
  sys::unmap(family_, family_bytes_);
}

PlaceId Places::taken(uint32_t place) {
  if (has_bit(written_, place)) garbage_count_.fetch_sub(1, std::memory_order_relaxed);
  set_bit(written_, place);
  set_bit(used_, place);
  clear_bit(free_, place);
  ++used_count_;
  --free_count_;
  return PlaceId{place};
}

Places::Run Places::taken_run(uint32_t first, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) taken(first + i);
  return {PlaceId{first}, count};
}

// The place is not used any more.
void Places::freed(uint32_t place) {
  clear_bit(used_, place);
  --used_count_;
  if (has_bit(frozen_, place)) {
    ++kept_count_;
    return;
  }
  set_bit(free_, place);
  ++free_count_;
  if (has_bit(written_, place)) garbage_count_.fetch_add(1, std::memory_order_relaxed);
}

// May never-used places be taken? Runs are at least half used on average, so sparse or moving data takes up to twice its size on storage, not sixteen
// times; what is kept for children comes on top.
bool Places::roomy() const { return (known_count_ - kept_count_) / 2 <= used_count_ + kSlackPlaces / 2; }

void Places::add_free(uint32_t first, uint32_t count) {
  for (uint32_t place = first; place < first + count; ++place) set_bit(free_, place);
  free_count_ += count;
  known_count_ += count;
  if (first + count > end_) end_ = first + count;
}

// Claims one more extent to grow in: the next one, if nobody has it.
bool Places::claim_extent() {
  if (self_ == kNoMember) return false;
  const uint32_t count = extent_count();
  const uint32_t wish = grow_end_ / extent_places_;
  uint32_t extent = count;
  for (uint32_t i = 0; i <= count && extent == count; ++i) {
    const uint32_t candidate = i == 0 ? wish : i - 1;
    if (candidate >= count) continue;
    auto& owner = family_->owners[candidate];
    // An extent that waits to be discarded will do, too: nobody reads it.
    uint32_t old = owner.load(std::memory_order_relaxed);
    // Before the claim, so that the extent is found if this process is killed.
    if (old == 0) raise(family_->extent_end, candidate + 1);
    while ((old == 0 || old == kEnded) && extent == count)
      if (owner.compare_exchange_weak(old, self_ + 1, std::memory_order_acq_rel)) extent = candidate;
  }
  if (extent == count) return false;
  const uint32_t first = extent * extent_places_;
  const uint32_t end = limit_ - first < extent_places_ ? limit_ : first + extent_places_;
  if (known_count_ == 0 && grow_next_ == grow_end_) begin_ = first;
  if (first < begin_) begin_ = first;
  if (first != grow_end_) {
    add_free(grow_next_, grow_end_ - grow_next_);
    grow_next_ = first;
  }
  grow_end_ = end;
  return true;
}

// Adds `count` adjacent places that were never used to the free ones.
bool Places::grow(uint32_t count, uint32_t& first) {
  while (grow_end_ - grow_next_ < count)
    if (!claim_extent()) return false;
  first = grow_next_;
  grow_next_ += count;
  add_free(first, count);
  return true;
}

PlaceId Places::find_free() {
  const uint32_t words = (end_ + 63) / 64;
  for (uint32_t looked = 0; free_count_ > 0 && looked <= words; ++looked) {
    if (cursor_ >= words) cursor_ = begin_ / 64;
    if (const uint64_t word = free_[cursor_]; word != 0)
      return taken(cursor_ * 64 + static_cast<uint32_t>(__builtin_ctzll(word)));
    ++cursor_;
  }
  return base::kNoPlace;
}

PlaceId Places::take(PageId page, PlaceId wish) {
  sys::LockGuard guard(mutex_);
  if (wish != base::kNoPlace && index(wish) < end_ && has_bit(free_, index(wish))) return taken(index(wish));
  uint32_t run;
  if (roomy() && grow(kRunPlaces, run)) return taken(run + static_cast<uint32_t>(index(page) % kRunPlaces));
  if (const PlaceId place = find_free(); place != base::kNoPlace) return place;
  if (grow(kRunPlaces, run)) return taken(run);
  // The last few.
  add_free(grow_next_, grow_end_ - grow_next_);
  grow_next_ = grow_end_;
  return find_free();
}

uint32_t Places::next(bool free, uint32_t from, uint32_t end) const {
  while (from < end) {
    const uint64_t word = (free ? free_[from / 64] : ~free_[from / 64]) >> (from % 64);
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
  const bool may_grow = roomy() && (grow_end_ - grow_next_ >= grown || claim_extent());
  // When pages leave their places at random, free stretches have about this length after one turn of the cursor.
  uint64_t least = used_count_ == 0 ? most : uint64_t{4} * free_count_ / used_count_;
  if (least > most || may_grow) least = most;
  const bool crowded = uint64_t{2} * free_count_ < used_count_;
  if (crowded && !may_grow) return {};
  for (uint32_t looked = 0; looked < kLookPlaces && looked < end_ - begin_;) {
    if (run_cursor_ >= end_ || run_cursor_ < begin_) run_cursor_ = begin_;
    const uint32_t first = next(true, run_cursor_, end_);
    const uint32_t bound = end_ - first < most ? end_ : first + most;
    const uint32_t end = next(false, first, bound);
    looked += end - run_cursor_;
    run_cursor_ = end;
    if (end > first && end - first >= least) {
      move_count_.fetch_add(1, std::memory_order_relaxed);
      return taken_run(first, end - first);
    }
  }
  uint32_t first;
  if (!may_grow || !grow(grown, first)) return {};
  move_count_.fetch_add(1, std::memory_order_relaxed);
  return taken_run(first, most);
}

bool Places::too_much_garbage() {
  sys::LockGuard guard(mutex_);
  // A quarter more than moves alone can produce.
  return garbage_count() > used_count_ + used_count_ / 4 + 2 * kSlackPlaces;
}

void Places::pause_moves() {
  sys::LockGuard guard(mutex_);
  paused_moves_ = kPausedMoves;
}

void Places::give_back(PlaceId place) {
  sys::LockGuard guard(mutex_);
  CHECK_LT(index(place), limit_);
  if (!is_own(index(place)) && !overwrites_all_.load(std::memory_order_relaxed)) return;
  CHECK_LT(index(place), end_);
  CHECK(is_used(index(place)));
  freed(index(place));
}

bool Places::may_overwrite(PlaceId place) {
  if (overwrites_all_.load(std::memory_order_relaxed)) return true;
  sys::LockGuard guard(mutex_);
  return is_used(index(place)) && !has_bit(frozen_, index(place));
}

Places::Run Places::take_garbage(uint32_t most) {
  sys::LockGuard guard(mutex_);
  Run run;
  const uint32_t runs = end_ / kRunPlaces;
  for (uint32_t looked = 0; looked < runs && run.count + kRunPlaces <= most; ++looked) {
    if (garbage_cursor_ >= runs) {
      if (run.count > 0) break;  // the next one is not its neighbour
      garbage_cursor_ = begin_ / kRunPlaces;
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
  discarding_ = run;
  return run;
}

void Places::give_back_discarded(Run run) {
  sys::LockGuard guard(mutex_);
  for (uint32_t place = index(run.first); place < index(run.first) + run.count; ++place) {
    CHECK(is_used(place));
    clear_bit(written_, place);
    freed(place);
  }
  discarding_ = {};
}

uint32_t Places::add_member() {
  for (uint32_t i = 0; i < kMaxMembers; ++i) {
    uint32_t none = 0;
    if (!family_->parents[i].compare_exchange_strong(none, self_ + 1, std::memory_order_acq_rel)) continue;
    raise(family_->member_end, i + 1);
    return i;
  }
  return kNoMember;
}

bool Places::descends_from(uint32_t member, uint32_t ancestor) const {
  for (uint32_t steps = 0; steps < kMaxMembers && member < kMaxMembers; ++steps) {
    if (member == ancestor) return true;
    const uint32_t parent = family_->parents[member].load(std::memory_order_acquire);
    if (parent == 0 || parent == kIsRoot) return false;
    member = parent - 1;
  }
  return false;
}

// The member and all its descendants have ended: their extents are to be discarded, and then become free.
void Places::end_member(uint32_t ended) {
  if (ended == kNoMember) return;
  const uint32_t extent_end = family_->extent_end.load(std::memory_order_acquire);
  const uint32_t member_end = family_->member_end.load(std::memory_order_acquire);
  for (uint32_t extent = 0; extent < extent_end; ++extent) {
    auto& owner = family_->owners[extent];
    const uint32_t value = owner.load(std::memory_order_acquire);
    if (value == 0 || value > kMaxMembers || !descends_from(value - 1, ended)) continue;
    owner.store(kEnded, std::memory_order_release);
    ended_extents_.fetch_add(1, std::memory_order_relaxed);
  }
  // The member itself last, since its descendants are found through it.
  for (uint32_t member = 0; member < member_end; ++member)
    if (member != ended && descends_from(member, ended))
      family_->parents[member].store(ended + 1, std::memory_order_release);
  for (uint32_t member = 0; member < member_end; ++member)
    if (member != ended && family_->parents[member].load(std::memory_order_acquire) == ended + 1)
      family_->parents[member].store(0, std::memory_order_release);
  family_->parents[ended].store(0, std::memory_order_release);
}

bool Places::watch(Child& child) {
  if (child.lifeline.open()) return true;
  if (children_ == nullptr) return false;
  Child* other = children_->joined != nullptr ? children_->joined : children_;
  if (!other->lifeline.open_again()) return false;
  child.joined = other;
  ++other->joins;
  return true;
}

bool Places::before_fork() {
  mutex_.lock();
  child_count_.fetch_add(1, std::memory_order_relaxed);
  last_child_ = nullptr;
  next_member_ = copied_by_fork_ ? kNoMember : add_member();
  if (!copied_by_fork_) overwrites_all_.store(false, std::memory_order_relaxed);
  const uint32_t words = copied_by_fork_ ? 0 : (end_ + 63) / 64;
  for (uint32_t word = begin_ / 64; word < words; ++word) frozen_[word] |= used_[word];
  const uint64_t bytes =
      base::round_up(sizeof(Child) + uint64_t{words} * sizeof(uint64_t), base::kOsPageBytes);
  auto memory = sys::map_anonymous(bytes, "a child's places");
  if (!memory) {
    frozen_for_good_ = true;
    return false;
  }
  auto* child = new (*memory) Child;
  child->bytes = bytes;
  child->member = next_member_;
  child->word_count = words;
  if (!watch(*child)) {
    sys::unmap(child, bytes);
    frozen_for_good_ = true;
    return false;
  }
  for (uint32_t word = begin_ / 64; word < words; ++word) child->bits[word] = used_[word];
  child->next = children_;
  children_ = last_child_ = child;
  return child->joined == nullptr;
}

void Places::after_fork_in_parent() {
  if (last_child_ != nullptr)
    (last_child_->joined != nullptr ? last_child_->joined : last_child_)->lifeline.let_go();
  mutex_.unlock();
}

bool Places::last_child_is_over() {
  sys::LockGuard guard(mutex_);
  return last_child_ == nullptr || is_over(*last_child_);
}

void Places::after_fork_in_child() {
  // They are the parent's children. This process only keeps the mapping of its own lifeline.
  while (Child* child = children_) {
    children_ = child->next;
    child->lifeline.forget();
    sys::unmap(child, child->bytes);
  }
  last_child_ = nullptr;
  frozen_for_good_ = false;
  child_count_.store(0, std::memory_order_relaxed);
  ended_extents_.store(0, std::memory_order_relaxed);
  if (copied_by_fork_) {
    // The thread that was discarding them does not exist in the child.
    for (uint32_t i = 0; i < discarding_.count; ++i) freed(index(discarding_.first) + i);
    discarding_ = {};
    mutex_.unlock();
    return;
  }
  discarding_ = {};
  overwrites_all_.store(false, std::memory_order_relaxed);
  sys::release(used_, bytes_);
  self_ = next_member_;
  end_ = begin_ = grow_next_ = grow_end_ = 0;
  known_count_ = used_count_ = free_count_ = kept_count_ = 0;
  cursor_ = run_cursor_ = garbage_cursor_ = paused_moves_ = 0;
  garbage_count_.store(0, std::memory_order_relaxed);
  mutex_.unlock();
}

uint32_t Places::collect_children() {
  if (child_count() == 0) return 0;
  sys::LockGuard guard(mutex_);
  uint32_t count = 0;
  for (Child** link = &children_; *link != nullptr;) {
    Child* child = *link;
    // Children that joined this one come before it in the list, since they are newer.
    if (child->joins > 0 || !is_over(*child)) {
      link = &child->next;
      continue;
    }
    *link = child->next;
    if (child->joined != nullptr) --child->joined->joins;
    if (last_child_ == child) last_child_ = nullptr;
    child->lifeline.close();
    end_member(child->member);
    sys::unmap(child, child->bytes);
    child_count_.fetch_sub(1, std::memory_order_relaxed);
    ++count;
  }
  if (count > 0) thaw_unneeded();
  base::statistics.cache_snapshots_ended.add(count);
  return count;
}

// Thaws the places that no child needs any more.
void Places::thaw_unneeded() {
  if (frozen_for_good_) return;
  const uint32_t words = (end_ + 63) / 64;
  for (uint32_t word = begin_ / 64; word < words; ++word) {
    uint64_t needed = 0;
    for (const Child* child = children_; child != nullptr; child = child->next)
      if (word < child->word_count) needed |= child->bits[word];
    const uint64_t thawed = frozen_[word] & ~needed;
    frozen_[word] &= needed;
    for (uint64_t kept = thawed & ~used_[word]; kept != 0; kept &= kept - 1) {
      const uint32_t place = word * 64 + static_cast<uint32_t>(__builtin_ctzll(kept));
      --kept_count_;
      set_bit(free_, place);
      ++free_count_;
      if (has_bit(written_, place)) garbage_count_.fetch_add(1, std::memory_order_relaxed);
    }
  }
  const bool is_root =
      self_ != kNoMember && family_->parents[self_].load(std::memory_order_relaxed) == kIsRoot;
  if (children_ == nullptr && is_root) overwrites_all_.store(true, std::memory_order_relaxed);
}

Places::Run Places::take_ended_extent() {
  if (ended_extents_.load(std::memory_order_relaxed) == 0 || self_ == kNoMember) return {};
  const uint32_t extent_end = family_->extent_end.load(std::memory_order_acquire);
  for (uint32_t extent = 0; extent < extent_end; ++extent) {
    uint32_t ended = kEnded;
    // This process owns it meanwhile, so that it is found again if the process is killed.
    if (!family_->owners[extent].compare_exchange_strong(ended, self_ + 1, std::memory_order_acq_rel))
      continue;
    const uint32_t first = extent * extent_places_;
    return {PlaceId{first}, limit_ - first < extent_places_ ? limit_ - first : extent_places_};
  }
  ended_extents_.store(0, std::memory_order_relaxed);
  return {};
}

void Places::give_back_extent(Run run) {
  family_->owners[index(run.first) / extent_places_].store(0, std::memory_order_release);
}

}  // namespace cache
