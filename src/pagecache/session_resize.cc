// How a cache gets more or fewer frames while others use it. Pages that have to leave are written back through the channels of the session
// that asks for it.
//
// It works set by set, and neither locks nor holds anything while it waits or writes. After an error the cache keeps the size that it has
// reached, and another resize continues from there.
#include <algorithm>

#include "pagecache/session.h"
#include "sys/kernel.h"
#include "task/scheduler.h"

namespace pagecache {

namespace {

// If a page is in the way for longer, the rest is left to the next time.
constexpr uint64_t kBalanceWaitNs = 1'000'000;

std::unexpected<base::Error> stopped_error() {
  return base::failure(ECANCELED, "page cache: its servers are to stop moving frames between nodes");
}

}  // namespace

bool Session::Resizing::goes_on() const {
  if (balancer == nullptr) return true;
  task::yield();
  return !balancer->is_to_stop();
}

base::Expected<void> Session::resize(uint64_t memory_bytes) {
  if (auto size = cache_->size_of_each(memory_bytes); !size) return std::unexpected(size.error());
  cache_->balancer_.hold();
  base::Expected<void> done;
  if (cache_->begin_resize()) {
    for (PageCache::Share& share : cache_->shares_)
      share = {.bytes = memory_bytes / cache_->node_count(), .is_settled = false};
    done = settle({.wait_ns_max = cache_->options_.wait_ns_max});
    cache_->end_resize();
  } else {
    done = base::failure(EBUSY, "page cache: another call is changing its size");
  }
  cache_->balancer_.release();
  return done;
}

base::Expected<void> Session::balance(std::span<const uint64_t> misses) {
  if (!cache_->begin_resize()) return {};
  const Resizing how = {.wait_ns_max = kBalanceWaitNs, .balancer = &cache_->balancer_};
  auto done = settle(how);
  if (const Balancer::Move move = cache_->choose_move(misses); done && move.from != move.to)
    done = move_part(move, how);
  cache_->end_resize();
  return done;
}

// Moves some frames from one node to another
//  1 the first one loses them. After an error its share is restored: the next settle() gives the frames back
//  2 the other one gets them. After an error the next settle() continues
// So all nodes together never have more frames than before.
base::Expected<void> Session::move_part(const Balancer::Move& move, const Resizing& how) {
  PageCache::Share &from = cache_->shares_[move.from], &to = cache_->shares_[move.to];
  const uint64_t bytes = cache_->part_bytes();
  from = {.bytes = from.bytes - bytes, .is_settled = false};
  if (auto given = settle(how); !given) {
    from.bytes += bytes;
    return given;
  }
  to = {.bytes = to.bytes + bytes, .is_settled = false};
  return settle(how);
}

// Gives each node as many frames as its share has room for. Nodes that shrink come first, so that all together never have more than the
// larger of the sizes before and after.
base::Expected<void> Session::settle(const Resizing& how) {
  struct Change {
    uint32_t node;
    Partition::Size size;
    bool is_smaller;
  };
  std::vector<Change> changes;
  for (uint32_t node = 0; node < cache_->node_count(); ++node) {
    if (cache_->shares_[node].is_settled) continue;
    const auto size = cache_->partition(node).size_for(cache_->shares_[node].bytes);
    if (!size) return std::unexpected(size.error());
    changes.push_back({node, *size, size->frame_count < cache_->partition(node).frame_count()});
  }
  std::ranges::partition(changes, &Change::is_smaller);
  for (const Change& change : changes) {
    Partition& partition = cache_->partition(change.node);
    auto done = resize_to(partition, change.size, how);
    partition.end_resize();
    if (!done) return done;
    cache_->shares_[change.node].is_settled = true;
  }
  return {};
}

// Changes the number of sets first. After a split, frames that the halves have beyond their share are taken away at once, so that the excess is
// never more than the frames of one set; before a merge, the two sets are reduced to what one set may have. Then each set gets its share of
// frames.
base::Expected<void> Session::resize_to(Partition& partition, const Partition::Size& size,
                                        const Resizing& how) {
  while (partition.set_count() < size.set_count) {
    if (auto moved = move_pages(how, [&] { return partition.split(); }); !moved) return moved;
    if (partition.set_count() <= size.set_count / 2) continue;  // they will be split again
    const uint32_t last = partition.last();
    for (const uint32_t index : {last, partition.parent_of(last)})
      if (auto taken = take_frames(partition, partition.set_at(index), size.frames_of(index), how); !taken)
        return taken;
  }
  while (partition.set_count() > size.set_count) {
    const uint32_t last = partition.last();
    for (const uint32_t index : {last, partition.parent_of(last)})
      if (auto taken = take_frames(partition, partition.set_at(index), kMaxWays / 2, how); !taken)
        return taken;
    if (auto moved = move_pages(how, [&] { return partition.merge(); }); !moved) return moved;
  }
  for (uint32_t i = 0; i < size.set_count; ++i) {
    PageSet& set = partition.set_at(i);
    if (auto taken = take_frames(partition, set, size.frames_of(i), how); !taken) return taken;
    partition.give_frames(set, size.frames_of(i));
  }
  partition.compact();
  return {};
}

// Calls step() until no page is in its way.
template <class Step>
base::Expected<void> Session::move_pages(const Resizing& how, const Step& step) {
  uint64_t deadline = 0;
  for (;;) {
    if (!how.goes_on()) return stopped_error();
    const Partition::Obstacle obstacle = step();
    if (obstacle.set == nullptr) return {};
    if (auto waited = wait_to_resize(*obstacle.set, how, deadline, [&] { return obstacle.way->is_held(); });
        !waited)
      return waited;
  }
}

// Takes frames away until the set has no more than `most`. While more pages than that are held it takes none, since others' calls need frames
// that are not held.
base::Expected<void> Session::take_frames(Partition& partition, PageSet& set, uint32_t most,
                                          const Resizing& how) {
  const auto is_held = [&] { return partition.held_of(set) > most; };
  uint64_t deadline = 0;
  if (!how.goes_on()) return stopped_error();
  while (partition.frames_of(set) > most) {
    uint32_t index = 0;
    uint64_t evictions = 0;
    const auto taken = is_held() ? Partition::Claim::kHeld : partition.take_frame(set, index, evictions);
    base::increase(evictions_, evictions);
    if (taken == Partition::Claim::kCleanable) {
      if (!may_clean(set, index, how)) return stopped_error();
      if (auto cleaned = clean(set, index); !cleaned) return cleaned;
    } else if (taken == Partition::Claim::kHeld) {
      if (auto waited = wait_to_resize(set, how, deadline, is_held); !waited) return waited;
    }
  }
  return {};
}

// May the way's page be cleaned? Servers do not use files that they have left.
bool Session::may_clean(PageSet& set, uint32_t index, const Resizing& how) {
  if (how.balancer == nullptr) return true;
  std::vector<PageKey> keys;
  {
    sys::LockGuard scope(set.lock());
    if (const Way& way = partition().way(set, index); way.is_cleanable()) keys.push_back(way.key());
  }
  const size_t count = keys.size();
  cache_->keep_flushed(keys);
  return keys.size() == count;
}

// The first wait sets the deadline.
template <class Still>
base::Expected<void> Session::wait_to_resize(PageSet& set, const Resizing& how, uint64_t& deadline,
                                             const Still& still) {
  if (deadline == 0) deadline = sys::monotonic_ns() + how.wait_ns_max;
  base::increase(waits_, uint64_t{1});
  set.lock().lock();
  if (set.wait(partition().layout(), "a page that has to leave or to move", deadline, still)) return {};
  return base::failure(EBUSY, "page cache: it stays at ", cache_->frame_count(),
                       " pages: one that has to leave or to move is held by others, or views, for more than ",
                       how.wait_ns_max / 1'000'000, " ms");
}

}  // namespace pagecache
