#include "hitrate/whole.h"

#include <algorithm>
#include <queue>

#include "hitrate/queues.h"

namespace hitrate {
namespace {

constexpr uint32_t kNone = Queues::kNone;

uint64_t lru(const Trace& trace, uint64_t size) {
  Queues pages(trace.page_count, 1);
  uint64_t hits = 0;
  for (const uint32_t page : trace.accesses) {
    if (pages.queue_of(page) != kNone)
      ++hits;
    else if (pages.size(0) == size)
      pages.pop_back(0);
    pages.push_front(0, page);
  }
  return hits;
}

uint64_t clock(const Trace& trace, uint64_t size) {
  Queues pages(trace.page_count, 1);
  std::vector<bool> used(trace.page_count);
  uint64_t hits = 0;
  for (const uint32_t page : trace.accesses) {
    if (pages.queue_of(page) != kNone) {
      ++hits;
      used[page] = true;
      continue;
    }
    while (pages.size(0) == size) {
      const uint32_t victim = pages.pop_back(0);
      if (used[victim]) pages.push_front(0, victim);
      used[victim] = false;
    }
    pages.push_front(0, page);
  }
  return hits;
}

uint64_t two_queues(const Trace& trace, uint64_t size) {
  enum : uint32_t { kIn, kOut, kMain };
  const uint64_t most_in = std::max<uint64_t>(size / 4, 1), most_out = std::max<uint64_t>(size / 2, 1);
  Queues pages(trace.page_count, 3);
  uint64_t hits = 0;
  const auto make_room = [&] {
    if (pages.size(kIn) + pages.size(kMain) < size) return;
    if (pages.size(kIn) < most_in && pages.size(kMain) > 0) {
      pages.pop_back(kMain);
      return;
    }
    pages.push_front(kOut, pages.back(kIn));
    if (pages.size(kOut) > most_out) pages.pop_back(kOut);
  };
  for (const uint32_t page : trace.accesses) {
    const uint32_t queue = pages.queue_of(page);
    hits += queue == kIn || queue == kMain;
    if (queue == kIn) continue;
    if (queue == kOut) pages.remove(page);
    if (queue != kMain) make_room();
    pages.push_front(queue == kNone ? kIn : kMain, page);
  }
  return hits;
}

uint64_t s3fifo(const Trace& trace, uint64_t size) {
  enum : uint32_t { kSmall, kMain, kGhosts };
  constexpr uint8_t kMaxUses = 3;
  const uint64_t most_small = std::max<uint64_t>(size / 10, 1),
                 most_ghosts = std::max<uint64_t>(size - most_small, 1);
  Queues pages(trace.page_count, 3);
  std::vector<uint8_t> uses(trace.page_count);
  uint64_t hits = 0;
  const auto make_room = [&] {
    while (pages.size(kSmall) + pages.size(kMain) >= size) {
      const bool from_small = pages.size(kSmall) >= most_small || pages.size(kMain) == 0;
      const uint32_t victim = pages.pop_back(from_small ? kSmall : kMain);
      if (from_small && uses[victim] > 1) {
        uses[victim] = 0;
        pages.push_front(kMain, victim);
      } else if (from_small) {
        pages.push_front(kGhosts, victim);
        if (pages.size(kGhosts) > most_ghosts) pages.pop_back(kGhosts);
      } else if (uses[victim] > 0) {
        --uses[victim];
        pages.push_front(kMain, victim);
      }
    }
  };
  for (const uint32_t page : trace.accesses) {
    const uint32_t queue = pages.queue_of(page);
    if (queue == kSmall || queue == kMain) {
      ++hits;
      if (uses[page] < kMaxUses) ++uses[page];
      continue;
    }
    if (queue == kGhosts) pages.remove(page);
    make_room();
    uses[page] = 0;
    pages.push_front(queue == kGhosts ? kMain : kSmall, page);
  }
  return hits;
}

uint64_t sieve(const Trace& trace, uint64_t size) {
  Queues pages(trace.page_count, 1);
  std::vector<bool> used(trace.page_count);
  uint32_t hand = kNone;
  uint64_t hits = 0;
  for (const uint32_t page : trace.accesses) {
    if (pages.queue_of(page) != kNone) {
      ++hits;
      used[page] = true;
      continue;
    }
    if (pages.size(0) == size) {
      if (hand == kNone) hand = pages.back(0);
      while (used[hand]) {
        used[hand] = false;
        hand = pages.newer(hand);
        if (hand == kNone) hand = pages.back(0);
      }
      const uint32_t victim = hand;
      hand = pages.newer(victim);
      pages.remove(victim);
    }
    pages.push_front(0, page);
  }
  return hits;
}

uint64_t linux_lists(const Trace& trace, uint64_t size) {
  enum : uint32_t { kInactive, kActive };
  Queues pages(trace.page_count, 2);
  // Kept when a page goes back from active: its next use is the second one.
  std::vector<bool> used(trace.page_count);
  uint64_t hits = 0;
  for (const uint32_t page : trace.accesses) {
    const uint32_t queue = pages.queue_of(page);
    hits += queue != kNone;
    if (queue == kInactive && used[page]) {
      pages.push_front(kActive, page);
      used[page] = false;
      continue;
    }
    used[page] = true;
    if (queue != kNone) continue;
    if (pages.size(kInactive) + pages.size(kActive) == size) {
      while (pages.size(kActive) > pages.size(kInactive)) pages.push_front(kInactive, pages.back(kActive));
      pages.pop_back(kInactive);
    }
    pages.push_front(kInactive, page);
  }
  return hits;
}

uint64_t opt(const Trace& trace, uint64_t size) {
  const auto count = static_cast<uint32_t>(trace.accesses.size());
  // When the page of each access is used again.
  std::vector<uint32_t> next(count), seen(trace.page_count, kNone);
  for (uint32_t i = count; i-- > 0;) {
    next[i] = seen[trace.accesses[i]];
    seen[trace.accesses[i]] = i;
  }
  // When pages are used again. Entries of earlier times, and of pages that went, are less than those of the resident ones.
  std::priority_queue<std::pair<uint32_t, uint32_t>> ends;
  std::vector<bool> resident(trace.page_count);
  uint64_t resident_count = 0, hits = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t page = trace.accesses[i];
    if (resident[page]) {
      ++hits;
    } else {
      if (resident_count == size) {
        resident[ends.top().second] = false;
        ends.pop();
        --resident_count;
      }
      resident[page] = true;
      ++resident_count;
    }
    ends.emplace(next[i], page);
  }
  return hits;
}

constexpr WholePolicy kPolicies[] = {{"opt", opt},          {"lru", lru},       {"clock", clock},
                                     {"2q", two_queues},    {"s3fifo", s3fifo}, {"sieve", sieve},
                                     {"linux", linux_lists}};

}  // namespace

std::span<const WholePolicy> whole_policies() { return kPolicies; }

}  // namespace hitrate
