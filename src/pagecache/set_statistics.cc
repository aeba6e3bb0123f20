#include "pagecache/set_statistics.h"

#include <algorithm>

#include "pagecache/page_cache.h"

namespace pagecache {

Spread Spread::of(std::vector<uint32_t>& numbers) {
  if (numbers.empty()) return {};
  std::ranges::sort(numbers);
  uint64_t sum = 0;
  for (const uint32_t number : numbers) sum += number;
  const auto percentile = [&](size_t percent) { return numbers[(numbers.size() - 1) * percent / 100]; };
  return {.min = numbers.front(),
          .p50 = percentile(50),
          .p90 = percentile(90),
          .p99 = percentile(99),
          .max = numbers.back(),
          .mean = static_cast<double>(sum) / static_cast<double>(numbers.size())};
}

SetStatistics PageCache::set_statistics() {
  SetStatistics all;
  std::vector<uint32_t> frames, pages, misses;
  for (uint32_t node = 0; node < node_count_; ++node) {
    NodeStatistics of_node;
    partition(node).for_all_sets([&](PageSet& set) {
      uint32_t frame_count = 0, page_count = 0;
      for (uint32_t i = 0; i < kMaxWays; ++i) {
        const Way& way = partition_.way(set, i);
        frame_count += way.has_frame();
        if (way.key() == PageKey::kNone) continue;
        ++page_count;
        of_node.dirty_count += way.is_dirty();
        all.held_count += way.is_held();
      }
      const uint32_t miss_count = set.miss_count(partition_.layout());
      ++of_node.set_count;
      of_node.frame_count += frame_count;
      of_node.page_count += page_count;
      of_node.miss_count += miss_count;
      frames.push_back(frame_count);
      pages.push_back(page_count);
      misses.push_back(miss_count);
    });
    all.page_count += of_node.page_count;
    all.dirty_count += of_node.dirty_count;
    all.nodes.push_back(of_node);
  }
  all.set_count = frames.size();
  all.frames = Spread::of(frames);
  all.pages = Spread::of(pages);
  all.misses = Spread::of(misses);
  return all;
}

}  // namespace pagecache
