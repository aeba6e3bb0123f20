#include "pagecache/partition.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "sys/huge_pages.h"
#include "sys/memory.h"
#include "sys/nodes.h"

namespace pagecache {
namespace {

constexpr int kSpins = 128;  // a page is copied in less

}  // namespace

base::Expected<std::byte*> map_large_pages(uint64_t bytes) {
  auto mapped = sys::map_anonymous(bytes, "a page cache");
  if (!mapped) return std::unexpected(mapped.error());
  sys::prefer_huge_pages(*mapped, bytes);
  return reinterpret_cast<std::byte*>(*mapped);
}

Partition::~Partition() { sys::unmap(set_memory_, set_memory_bytes_); }

base::Expected<Partition::Size> Partition::size_for(uint64_t memory_bytes) const {
  return size_within(memory_bytes, memory_bytes_max_);
}

base::Expected<Partition::Size> Partition::size_within(uint64_t memory_bytes,
                                                       uint64_t memory_bytes_max) const {
  const uint64_t page_bytes = uint64_t{1} << page_shift_, least = least_bytes();
  if (memory_bytes < least)
    return base::failure(EINVAL, "page cache: ", memory_bytes, " bytes of memory are less than the ", least,
                         " that one set of ", kMaxWays, " pages takes");
  if (memory_bytes > memory_bytes_max)
    return base::failure(EINVAL, "page cache: ", memory_bytes, " bytes of memory are more than the ",
                         memory_bytes_max, " that it may have at most (memory_bytes_max)");
  for (uint64_t sets = 1;; sets *= 2) {
    const uint64_t sets_bytes = sets * layout_.bytes;
    CHECK_LT(sets_bytes, memory_bytes);
    const uint64_t frames = (memory_bytes - sets_bytes) / page_bytes;
    if (frames > sets * kMaxWays) continue;
    // Each way of each set may have a frame for a moment; number 0 means none.
    if (sets * kMaxWays > ~uint32_t{0})
      return base::failure(EINVAL, "page cache: ", memory_bytes,
                           " bytes are more pages than a cache can have");
    return Size{.set_count = static_cast<uint32_t>(sets), .frame_count = static_cast<uint32_t>(frames)};
  }
}

base::Expected<uint64_t> Partition::frame_space_bytes(uint64_t memory_bytes_max) const {
  const auto most = size_within(memory_bytes_max, memory_bytes_max);
  if (!most) return std::unexpected(most.error());
  const uint64_t ways_most = uint64_t{most->set_count} * kMaxWays;
  return base::round_up((ways_most + 1) << page_shift_, sys::kHugePageBytes);
}

base::Expected<void> Partition::open(uint64_t memory_bytes, uint64_t memory_bytes_max,
                                     const FrameSpace& space) {
  memory_bytes_max_ = memory_bytes_max;
  const auto size = size_for(memory_bytes), most = size_for(memory_bytes_max);
  if (!size) return std::unexpected(size.error());
  if (!most) return std::unexpected(most.error());
  frame_memory_ = space.memory;
  frames_before_ = space.before;
  next_frame_ = frames_before_ + 1;
  set_memory_bytes_ = base::round_up(uint64_t{most->set_count} * layout_.bytes, base::kOsPageBytes);
  auto sets = map_large_pages(set_memory_bytes_);
  if (!sets) return std::unexpected(sets.error());
  set_memory_ = *sets;
  if (space.node != kNoNode) {
    static_cast<void>(
        sys::prefer_node(frame_at(frames_before_), *frame_space_bytes(memory_bytes_max), space.node));
    static_cast<void>(sys::prefer_node(set_memory_, set_memory_bytes_, space.node));
  }
  sets_.store(Sets::of(size->set_count), std::memory_order_relaxed);
  for (uint32_t i = 0; i < size->set_count; ++i) give(set_at(i), size->frames_of(i));
  return {};
}

// Invariant 2.
Partition::Home Partition::lock_home(PageKey key) {
  for (;;) {
    const Home home = home_of(key);
    home.set.lock().lock();
    if (&home_of(key).set == &home.set) return home;
    home.set.lock().unlock();
  }
}

uint32_t Partition::find(const Home& home) {
  uint32_t found = cache::kNoWay;
  home.set.any_of_tag(home.tag, [&](uint32_t i) {
    if (way(home.set, i).key() != home.key) return false;
    found = i;
    return true;
  });
  return found;
}

Partition::Claim Partition::claim(const Home& home, uint32_t& chosen, uint64_t& evictions) {
  chosen = find(home);
  if (chosen != cache::kNoWay) return Claim::kThere;
  const Claim room = make_room(home.set, chosen, evictions);
  if (room != Claim::kClaimed) return room;
  way(home.set, chosen).claim(home.key);
  home.set.set_tag(chosen, home.tag);
  home.set.on_insert(layout_, chosen);
  home.set.count_miss(layout_);
  return Claim::kClaimed;
}

Partition::Claim Partition::make_room(PageSet& set, uint32_t& chosen, uint64_t& evictions) {
  cache::WayMask dirty = 0, spared = 0;
  for (uint32_t i = 0; i < kMaxWays; ++i) {
    const Way::Look at = way(set, i).look();
    if (at.is_evictable()) continue;
    if (at.is_free()) {
      chosen = i;
      return Claim::kClaimed;
    }
    spared |= cache::way_bit(i);
    if (at.is_cleanable()) dirty |= cache::way_bit(i);
  }
  for (;;) {
    const uint32_t victim = set.pick_victim(layout_, spared);
    if (victim == cache::kNoWay) break;
    spared |= cache::way_bit(victim);
    if (!way(set, victim).evict()) continue;
    set.on_remove(layout_, victim, cache::Removal::kEvicted);
    set.set_tag(victim, 0);
    ++evictions;
    chosen = victim;
    return Claim::kClaimed;
  }
  if (dirty == 0) return Claim::kHeld;
  chosen = set.pick_victim(layout_, ~dirty);
  return Claim::kCleanable;
}

bool Partition::has_room(PageSet& set) {
  for (uint32_t i = 0; i < kMaxWays; ++i)
    if (const Way::Look at = way(set, i).look(); at.is_free() || at.is_evictable() || at.is_cleanable())
      return true;
  return false;
}

Partition::Choice Partition::choice_of(PageSet& set) {
  Choice choice;
  for (uint32_t i = 0; i < kMaxWays; ++i) {
    const Way::Look at = way(set, i).look();
    choice.frame_count += at.has_frame();
    choice.free_count += at.is_free();
    if (at.is_cleanable())
      choice.dirty |= cache::way_bit(i);
    else if (!at.is_evictable() && !at.is_io())  // a page that is being cleaned leaves in its turn
      choice.spared |= cache::way_bit(i);
  }
  return choice;
}

cache::WayMask Partition::dirty_victims(PageSet& set, const Choice& choice, uint32_t misses) {
  if (choice.dirty == 0 || misses <= choice.free_count) return 0;
  return set.next_victims(layout_, choice.spared, misses - choice.free_count) & choice.dirty;
}

cache::WayMask Partition::dirty_victims(PageSet& set) {
  const Choice choice = choice_of(set);
  return dirty_victims(set, choice, choice.frame_count / 2);
}

cache::WayMask Partition::dirty_victims(PageSet& set, uint32_t count) {
  return set.next_victims(layout_, ~choice_of(set).dirty, count);
}

bool Partition::is_to_flush(PageSet& set) {
  const Choice choice = choice_of(set);
  return dirty_victims(set, choice, choice.frame_count / 4) != 0;
}

// REQUIRES: the way is already free.
void Partition::forget(PageSet& set, uint32_t index) {
  set.on_remove(layout_, index, cache::Removal::kForgotten);
  set.set_tag(index, 0);
}

// --- resizing ---

uint32_t Partition::frames_of(PageSet& set) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < kMaxWays; ++i) count += way(set, i).has_frame();
  return count;
}

uint32_t Partition::held_of(PageSet& set) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < kMaxWays; ++i) count += way(set, i).is_held();
  return count;
}

uint32_t Partition::way_without_frame(PageSet& set) {
  uint32_t index = 0;
  while (way(set, index).has_frame()) CHECK_LT(++index, kMaxWays);
  return index;
}

// Gives the set frames until it has `count`. REQUIRES: its lock.
void Partition::give(PageSet& set, uint32_t count) {
  for (uint32_t had = frames_of(set); had < count; ++had) {
    uint32_t frame = 0;
    if (spare_frames_.empty()) {
      frame = next_frame_++;
    } else {
      frame = spare_frames_.back();
      spare_frames_.pop_back();
    }
    way(set, way_without_frame(set)).give_frame(frame);
    frame_count_.fetch_add(1, std::memory_order_relaxed);
  }
}

void Partition::give_frames(PageSet& set, uint32_t count) {
  {
    sys::LockGuard scope(set.lock());
    give(set, count);
  }
  set.changed(layout_);
}

Partition::Claim Partition::take_frame(PageSet& set, uint32_t& index, uint64_t& evictions) {
  uint32_t frame = 0;
  {
    sys::LockGuard scope(set.lock());
    const Claim room = make_room(set, index, evictions);
    if (room != Claim::kClaimed) return room;
    frame = way(set, index).take_frame();
  }
  spare_frames_.push_back(frame);
  frame_count_.fetch_sub(1, std::memory_order_relaxed);
  return Claim::kClaimed;
}

bool Partition::replace_frame(Way& way, uint32_t other) {
  if (way.is_free()) {
    way.replace_frame(other);
    return true;
  }
  if (!hold(way)) return false;
  memcpy(frame_at(other), frame(way), uint64_t{1} << page_shift_);
  way.replace_frame(other);
  way.unexclude();
  return true;
}

void Partition::compact() {
  std::ranges::sort(spare_frames_);
  const uint32_t last = frames_before_ + frame_count();
  auto spare = spare_frames_.begin();
  for (uint32_t i = 0; i < set_count(); ++i) {
    PageSet& set = set_at(i);
    sys::LockGuard scope(set.lock());
    for (uint32_t w = 0; w < kMaxWays; ++w) {
      if (spare == spare_frames_.end() || *spare > last) return;
      const uint32_t frame = way(set, w).frame();
      if (frame > last && replace_frame(way(set, w), *spare)) *spare++ = frame;
    }
  }
}

void Partition::end_resize() {
  std::ranges::sort(spare_frames_, std::greater());  // so that the lowest numbers are used first
  for (size_t begin = 0, end = 0; begin < spare_frames_.size(); begin = end) {
    do ++end;
    while (end < spare_frames_.size() && spare_frames_[end] == spare_frames_[end - 1] - 1);
    sys::release(frame_at(spare_frames_[end - 1]), (end - begin) << page_shift_);
  }
}

Partition::Obstacle Partition::split() {
  const Sets then = Sets::of(sets().count + 1);
  PageSet &from = set_at(parent_of(then.count - 1)), &to = set_at(then.count - 1);
  {
    sys::LockGuard first(from.lock());
    sys::LockGuard second(to.lock());
    if (const Obstacle obstacle = move_pages(from, to, then); obstacle.way != nullptr) return obstacle;
    give(from, kMinWays);
    give(to, kMinWays);
    sets_.store(then, std::memory_order_relaxed);
  }
  from.changed(layout_);
  return {};
}

Partition::Obstacle Partition::merge() {
  const Sets then = Sets::of(sets().count - 1);
  PageSet &from = set_at(then.count), &to = set_at(parent_of(then.count));
  {
    sys::LockGuard first(to.lock());
    sys::LockGuard second(from.lock());
    if (const Obstacle obstacle = move_pages(from, to, then); obstacle.way != nullptr) return obstacle;
    for (uint32_t i = 0; i < kMaxWays; ++i)
      if (Way& free = way(from, i); free.is_free())
        way(to, way_without_frame(to)).give_frame(free.take_frame());
    sets_.store(then, std::memory_order_relaxed);
  }
  to.changed(layout_);
  return {};
}

// Excludes others from a page, and waits briefly for the last reader. False: somebody holds, loads or cleans it. REQUIRES: the set's lock.
bool Partition::hold(Way& way) {
  if (!way.try_exclude(way.key())) return false;
  for (int i = 0; i < kSpins && way.has_readers(); ++i) __builtin_ia32_pause();
  if (!way.has_readers() && !way.is_io()) return true;
  way.unexclude();
  return false;
}

// Steps 2 and 3: moves the pages whose home is the other set once there are `then` sets.
Partition::Obstacle Partition::move_pages(PageSet& from, PageSet& to, Sets then) {
  cache::WayMask moving = 0;
  for (uint32_t i = 0; i < kMaxWays; ++i) {
    Way& at = way(from, i);
    if (at.key() == PageKey::kNone) continue;
    if (&set_at(then.index_of(base::mix(static_cast<uint64_t>(at.key())))) != &to) continue;
    if (hold(at)) {
      moving |= cache::way_bit(i);
      continue;
    }
    for (; moving != 0; moving &= moving - 1)
      way(from, static_cast<uint32_t>(std::countr_zero(moving))).unexclude();
    return {.set = &from, .way = &at};
  }
  for (; moving != 0; moving &= moving - 1)
    move_page(from, static_cast<uint32_t>(std::countr_zero(moving)), to);
  return {};
}

void Partition::move_page(PageSet& from, uint32_t index, PageSet& to) {
  const uint32_t target = way_without_frame(to);
  const uint16_t tag = from.tag(index);
  way(from, index).move_to(way(to, target));
  forget(from, index);
  to.set_tag(target, tag);
  to.on_insert(layout_, target);
}

}  // namespace pagecache
