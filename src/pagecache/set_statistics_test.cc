// Statistics of sets: spreads by themselves, and those of caches whose pages are known.
#include "pagecache/set_statistics.h"

#include <numeric>

#include "pagecache/request_queue.h"
#include "pagecache/test_cache.h"

namespace pagecache {
namespace {

constexpr uint64_t kPage = 4096;

TEST(SpreadTest, PercentilesAreNumbersThatThereAre) {
  std::vector<uint32_t> numbers(101);
  std::iota(numbers.rbegin(), numbers.rend(), 1000);
  const Spread spread = Spread::of(numbers);
  EXPECT_EQ(spread.min, 1000u);
  EXPECT_EQ(spread.p50, 1050u);
  EXPECT_EQ(spread.p90, 1090u);
  EXPECT_EQ(spread.p99, 1099u);
  EXPECT_EQ(spread.max, 1100u);
  EXPECT_EQ(spread.mean, 1050);
  std::vector<uint32_t> one = {7}, none;
  EXPECT_EQ(Spread::of(one).p99, 7u);
  EXPECT_EQ(Spread::of(none).max, 0u);
  std::vector<uint32_t> large(1000, ~uint32_t{0});
  EXPECT_EQ(Spread::of(large).mean, 4294967295.0);
}

class SetStatisticsTest : public testing::TestWithParam<cache::SetPolicy> {};
INSTANTIATE_TEST_SUITE_P(All, SetStatisticsTest, testing::ValuesIn(cache::kSetPolicies),
                         [](const auto& tested) { return cache::name_of(tested.param); });

TEST_P(SetStatisticsTest, TellsWhatIsInTheSets) {
  constexpr uint64_t kFrames = 64, kPages = 1000;
  TestDevice test(kPages * kPage);
  PageCache* const cache = *PageCache::open(with_frames(kFrames, {.policy = GetParam()}));
  File* const file = *cache->add(test.device);
  Session session;
  session.open(*cache);
  SetStatistics found = cache->set_statistics();
  EXPECT_EQ(found.set_count, 4u);
  EXPECT_EQ(found.frames.min, 16u);
  EXPECT_EQ(found.frames.max, 16u);
  EXPECT_EQ(found.page_count + found.dirty_count + found.held_count + found.misses.max + found.pages.max, 0u);

  ASSERT_TRUE(session.write(*file, 5 * kPage + 9, bytes_of("dirty")));
  auto view = session.view(*file, 7 * kPage, 100);
  ASSERT_TRUE(view);
  found = cache->set_statistics();
  EXPECT_EQ(found.page_count, 2u);
  EXPECT_EQ(found.dirty_count, 1u);
  EXPECT_EQ(found.held_count, 1u);
  EXPECT_EQ(found.misses.mean, 0.5);
  ASSERT_EQ(found.nodes.size(), 1u);
  EXPECT_EQ(found.nodes[0].set_count, 4u);
  EXPECT_EQ(found.nodes[0].frame_count, kFrames);
  EXPECT_EQ(found.nodes[0].page_count, 2u);
  EXPECT_EQ(found.nodes[0].dirty_count, 1u);
  EXPECT_EQ(found.nodes[0].miss_count, 2u);
  EXPECT_EQ(found.pages.mean, 0.5);
  view->reset();

  std::byte byte;
  for (uint64_t page = 0; page < kPages; ++page)
    ASSERT_TRUE(session.read(*file, page * kPage, std::span(&byte, 1)));
  found = cache->set_statistics();
  EXPECT_EQ(found.page_count, kFrames);
  EXPECT_EQ(found.held_count, 0u);
  EXPECT_EQ(found.pages.min, 16u);
  // Each set has its share of a thousand pages, which are spread by a hash.
  EXPECT_EQ(found.misses.mean * static_cast<double>(found.set_count),
            static_cast<double>(session.counts().misses));
  EXPECT_GT(found.misses.min, 180u);
  EXPECT_LT(found.misses.max, 320u);

  const uint32_t before = found.misses.max;
  ASSERT_TRUE(session.read(*file, (kPages - 1) * kPage, std::span(&byte, 1)));
  EXPECT_EQ(cache->set_statistics().misses.max, before) << "a hit is no miss";
  session.close();
  cache->close();
}

TEST(SetStatisticsTest, ServersAndQueuesTellWhatTheyWereAskedFor) {
  TestDevice test(100 * kPage);
  PageCache* const cache = *PageCache::open(with_frames(32));
  File* const file = *cache->add(test.device);
  Servers* const servers = *Servers::open(*cache, {.threads = 2});
  RequestQueue queue;
  queue.open(*servers, 8);
  std::byte byte;
  for (int i = 0; i < 3; ++i) {
    Request request;
    request.file = file;
    request.bytes = std::span(&byte, 1);
    Request* const one[] = {&request};
    queue.run(one);
    EXPECT_TRUE(request.result);
  }
  EXPECT_EQ(queue.counts().hits, 2u);
  EXPECT_EQ(queue.counts().misses, 0u);
  EXPECT_EQ(servers->session_counts().misses, 1u);
  EXPECT_EQ(servers->session_counts().reads, 1u);
  EXPECT_EQ(servers->session_counts().hits, 0u);
  queue.close();
  servers->close();
  cache->close();
}

}  // namespace
}  // namespace pagecache
