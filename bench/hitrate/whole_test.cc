// The fully associative policies beside naive models, and what holds for all: OPT is the best, sets cost little.
#include "hitrate/whole.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <utility>
#include <vector>

#include "hitrate/generate.h"
#include "hitrate/sets.h"

namespace {

using hitrate::Trace;

uint64_t hits_of(std::string_view name, const Trace& trace, uint64_t size) {
  for (const auto& policy : hitrate::whole_policies())
    if (policy.name == name) return policy.count_hits(trace, size);
  ADD_FAILURE() << name;
  return 0;
}

Trace random_trace(uint64_t seed, uint32_t pages, unsigned accesses) {
  hitrate::TraceBuilder builder;
  for (unsigned i = 0; i < accesses; ++i) {
    const uint64_t random = base::mix(seed << 32 | i);
    builder.add(random % 3 == 0 ? random / 3 % pages : random / 3 % (1 + pages / 5));
  }
  return builder.take();
}

bool has(const std::list<uint32_t>& pages, uint32_t page) {
  return std::find(pages.begin(), pages.end(), page) != pages.end();
}
uint32_t take_oldest(std::list<uint32_t>& pages) {
  const uint32_t page = pages.back();
  pages.pop_back();
  return page;
}

uint64_t naive_lru(const Trace& trace, uint64_t size) {
  std::list<uint32_t> pages;
  uint64_t hits = 0;
  for (const uint32_t page : trace.accesses) {
    if (has(pages, page))
      ++hits, pages.remove(page);
    else if (pages.size() == size)
      pages.pop_back();
    pages.push_front(page);
  }
  return hits;
}

// CLOCK is FIFO with a second chance; SIEVE leaves those with one where they are.
uint64_t naive_fifo(const Trace& trace, uint64_t size, bool stays) {
  std::list<std::pair<uint32_t, bool>> pages;  // page, used; the newest in front
  auto hand = pages.end();                     // SIEVE's: the end is none
  uint64_t hits = 0;
  for (const uint32_t page : trace.accesses) {
    const auto found =
        std::find_if(pages.begin(), pages.end(), [&](const auto& entry) { return entry.first == page; });
    if (found != pages.end()) {
      ++hits;
      found->second = true;
      continue;
    }
    while (pages.size() == size) {
      if (!stays || hand == pages.end()) hand = std::prev(pages.end());
      const bool used = std::exchange(hand->second, false);
      const auto newer = hand == pages.begin() ? pages.end() : std::prev(hand);
      if (!used)
        pages.erase(hand);
      else if (!stays)
        pages.splice(pages.begin(), pages, hand);
      hand = newer;
    }
    pages.emplace_front(page, false);
  }
  return hits;
}

uint64_t naive_two_queues(const Trace& trace, uint64_t size) {
  std::list<uint32_t> in, out, main;
  uint64_t hits = 0;
  for (const uint32_t page : trace.accesses) {
    if (has(main, page)) {
      ++hits;
      main.remove(page);
      main.push_front(page);
      continue;
    }
    if (has(in, page)) {
      ++hits;
      continue;
    }
    const bool was_out = has(out, page);
    out.remove(page);
    if (in.size() + main.size() == size) {
      if (in.size() >= size / 4 || main.empty()) {
        out.push_front(take_oldest(in));
        if (out.size() > size / 2) out.pop_back();
      } else {
        main.pop_back();
      }
    }
    (was_out ? main : in).push_front(page);
  }
  return hits;
}

uint64_t naive_s3fifo(const Trace& trace, uint64_t size) {
  std::list<uint32_t> small, main, ghosts;
  std::vector<unsigned> uses(trace.page_count);
  uint64_t hits = 0;
  for (const uint32_t page : trace.accesses) {
    if (has(small, page) || has(main, page)) {
      ++hits;
      uses[page] = std::min(uses[page] + 1, 3u);
      continue;
    }
    const bool was_ghost = has(ghosts, page);
    ghosts.remove(page);
    while (small.size() + main.size() == size) {
      if (small.size() >= size / 10 || main.empty()) {
        const uint32_t oldest = take_oldest(small);
        (uses[oldest] > 1 ? main : ghosts).push_front(oldest);
        uses[oldest] = 0;
        if (ghosts.size() > size - size / 10) ghosts.pop_back();
      } else {
        const uint32_t oldest = take_oldest(main);
        if (uses[oldest]-- > 0) main.push_front(oldest);
      }
    }
    uses[page] = 0;
    (was_ghost ? main : small).push_front(page);
  }
  return hits;
}

uint64_t naive_linux(const Trace& trace, uint64_t size) {
  std::list<uint32_t> inactive, active;
  std::vector<unsigned> uses(trace.page_count);
  uint64_t hits = 0;
  for (const uint32_t page : trace.accesses) {
    if (has(active, page)) {
      ++hits;
      uses[page] = 1;
    } else if (has(inactive, page)) {
      ++hits;
      if (++uses[page] < 2) continue;
      inactive.remove(page);
      active.push_front(page);
      uses[page] = 0;
    } else {
      if (inactive.size() + active.size() == size) {
        while (active.size() > inactive.size()) inactive.push_front(take_oldest(active));
        inactive.pop_back();
      }
      inactive.push_front(page);
      uses[page] = 1;
    }
  }
  return hits;
}

uint64_t naive_opt(const Trace& trace, uint64_t size) {
  std::vector<uint32_t> pages;
  uint64_t hits = 0;
  for (auto now = trace.accesses.begin(); now != trace.accesses.end(); ++now) {
    if (std::find(pages.begin(), pages.end(), *now) != pages.end()) {
      ++hits;
      continue;
    }
    if (pages.size() == size)
      pages.erase(std::max_element(pages.begin(), pages.end(), [&](uint32_t a, uint32_t b) {
        return std::find(now, trace.accesses.end(), a) < std::find(now, trace.accesses.end(), b);
      }));
    pages.push_back(*now);
  }
  return hits;
}

TEST(WholeTest, PoliciesAreTheirModels) {
  for (uint64_t seed = 0; seed < 3; ++seed)
    for (const uint64_t size : {20, 50, 110}) {
      const Trace trace = random_trace(seed, 400, 10'000);
      EXPECT_EQ(hits_of("lru", trace, size), naive_lru(trace, size));
      EXPECT_EQ(hits_of("clock", trace, size), naive_fifo(trace, size, false));
      EXPECT_EQ(hits_of("sieve", trace, size), naive_fifo(trace, size, true));
      EXPECT_EQ(hits_of("2q", trace, size), naive_two_queues(trace, size));
      EXPECT_EQ(hits_of("s3fifo", trace, size), naive_s3fifo(trace, size));
      EXPECT_EQ(hits_of("linux", trace, size), naive_linux(trace, size));
      EXPECT_EQ(hits_of("opt", trace, size), naive_opt(trace, size));
    }
}

TEST(WholeTest, WhatIsLargeEnoughMissesOnce) {
  const Trace trace = random_trace(1, 300, 5'000);
  for (const auto& policy : hitrate::whole_policies())
    EXPECT_EQ(policy.count_hits(trace, trace.page_count), trace.accesses.size() - trace.page_count)
        << policy.name;
}

// The figures of the whole traces are those of `spillway bench hitrate`; here a twentieth.
TEST(WholeTest, SetsCostLittle) {
  const Trace trace = *hitrate::generate("zipfleaf/20");
  const uint64_t size = 1'920;
  const double points = 100.0 / static_cast<double>(trace.accesses.size());
  const auto share_of = [&](cache::SetPolicy policy, uint32_t ways) {
    return points * static_cast<double>(hitrate::count_set_hits(trace, size, policy, ways));
  };
  const auto lru = points * static_cast<double>(hits_of("lru", trace, size));
  const auto opt = points * static_cast<double>(hits_of("opt", trace, size));
  EXPECT_NEAR(share_of(cache::SetPolicy::kLru, 16), lru, 0.8);
  EXPECT_NEAR(share_of(cache::SetPolicy::kS3fifo, 16),
              points * static_cast<double>(hits_of("s3fifo", trace, size)), 0.8);
  for (const uint32_t ways : {8, 16, 32})
    for (const cache::SetPolicy policy : cache::kSetPolicies) {
      EXPECT_LT(share_of(policy, ways), opt) << name_of(policy);
      EXPECT_GT(share_of(policy, ways), lru - 1) << name_of(policy);
    }
  EXPECT_GT(share_of(cache::SetPolicy::kNrlfu, 8), share_of(cache::SetPolicy::kLru, 8) + 4);
}

TEST(WholeTest, ALoopKeepsWhatUseCountsKeep) {
  const Trace trace = *hitrate::generate("loop");
  EXPECT_EQ(hits_of("lru", trace, 202), 0u);
  EXPECT_NEAR(
      100 * static_cast<double>(hitrate::count_set_hits(trace, 202, cache::SetPolicy::kNrlfu, 16)) / 505'500,
      17.8, 0.5);
}

}  // namespace
