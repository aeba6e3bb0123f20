// A cache gets more frames, or less, while others use it: what has to leave is written back through the channels of the session that asks.
//
// One set at a time; nothing is locked, and nothing held, while this waits or writes. After an error the cache has the size that it had
// got to, and another resize goes on from there.
#include <algorithm>

#include "pagecache/session.h"
#include "sys/kernel.h"

namespace pagecache {

base::Expected<void> Session::resize(uint64_t memory_bytes) {
  const auto size = cache_->size_of_each(memory_bytes);
  if (!size) return std::unexpected(size.error());
  if (!cache_->begin_resize()) return base::failure(EBUSY, "page cache: another call is changing its size");
  auto done = resize_all(*size);
  cache_->end_resize();
  return done;
}

// First the nodes that get smaller, so that all of them together never have more than before or after.
base::Expected<void> Session::resize_all(const Partition::Size& size) {
  std::vector<Partition*> order;
  for (uint32_t node = 0; node < cache_->node_count(); ++node) order.push_back(&cache_->partition(node));
  std::ranges::partition(
      order, [&](const Partition* partition) { return partition->frame_count() > size.frame_count; });
  for (Partition* const partition : order) {
    auto done = resize_to(*partition, size);
    partition->end_resize();
    if (!done) return done;
  }
  return {};
}

// More sets first, with few frames; or fewer, once pairs of them have no more frames than one may have. Then each has its frames.
base::Expected<void> Session::resize_to(Partition& partition, const Partition::Size& size) {
  while (partition.set_count() < size.set_count)
    if (auto moved = move_pages([&] { return partition.split(); }); !moved) return moved;
  while (partition.set_count() > size.set_count) {
    const uint32_t last = partition.last();
    for (const uint32_t index : {last, partition.parent_of(last)})
      if (auto taken = take_frames(partition, partition.set_at(index), kWaysMost / 2); !taken) return taken;
    if (auto moved = move_pages([&] { return partition.merge(); }); !moved) return moved;
  }
  for (uint32_t i = 0; i < size.set_count; ++i) {
    PageSet& set = partition.set_at(i);
    if (auto taken = take_frames(partition, set, size.frames_of(i)); !taken) return taken;
    partition.give_frames(set, size.frames_of(i));
  }
  partition.compact();
  return {};
}

// Calls step() until no page is in its way.
template <class Step>
base::Expected<void> Session::move_pages(const Step& step) {
  uint64_t deadline = 0;
  for (;;) {
    const Partition::Obstacle obstacle = step();
    if (obstacle.set == nullptr) return {};
    if (auto waited = wait_to_resize(*obstacle.set, deadline, [&] { return obstacle.way->is_held(); });
        !waited)
      return waited;
  }
}

// Until the set has no more than so many. As long as it has to keep more it keeps all: others need some that are not held.
base::Expected<void> Session::take_frames(Partition& partition, PageSet& set, uint32_t most) {
  const auto is_held = [&] { return partition.held_of(set) > most; };
  uint64_t deadline = 0;
  while (partition.frames_of(set) > most) {
    uint32_t index = 0;
    uint64_t evictions = 0;
    const auto taken = is_held() ? Partition::Claim::kHeld : partition.take_frame(set, index, evictions);
    base::increase(evictions_, evictions);
    if (taken == Partition::Claim::kCleanable) {
      if (auto cleaned = clean(set, index); !cleaned) return cleaned;
    } else if (taken == Partition::Claim::kHeld) {
      if (auto waited = wait_to_resize(set, deadline, is_held); !waited) return waited;
    }
  }
  return {};
}

// The first wait sets the deadline.
template <class Still>
base::Expected<void> Session::wait_to_resize(PageSet& set, uint64_t& deadline, const Still& still) {
  if (deadline == 0) deadline = sys::monotonic_ns() + cache_->options_.wait_ns_max;
  base::increase(waits_, uint64_t{1});
  set.lock().lock();
  if (set.wait(partition().layout(), "a page that has to leave or to move", deadline, still)) return {};
  return base::failure(EBUSY, "page cache: it stays at ", cache_->frame_count(),
                       " pages: one that has to leave or to move is held by others, or views, for more than ",
                       cache_->options_.wait_ns_max / 1'000'000, " ms");
}

}  // namespace pagecache
