#include "pagecache/page_cache.h"

#include "pagecache/test_cache.h"

namespace pagecache {
namespace {

std::string refusal(const CacheOptions& options) {
  auto cache = PageCache::open(options);
  if (!cache) return cache.error().message;
  (*cache)->close();
  return "";
}

TEST(PageCacheTest, UsesAllOfItsMemory) {
  for (const uint64_t frames : {16, 17, 31, 32, 33, 100, 1000, 4097}) {
    const CacheOptions options = with_frames(frames);
    PageCache* const cache = *PageCache::open(options);
    EXPECT_EQ(cache->frame_count(), frames);
    EXPECT_LE(cache->set_count() * kMinWays, frames);
    EXPECT_GE(cache->set_count() * kMaxWays, frames);
    cache->close();
  }
  PageCache* const cache = *PageCache::open({.memory_bytes = 10 << 20, .nodes = 1});
  const PageSet::Layout layout(cache::SetPolicy::kNrlfu);
  const uint64_t used_bytes = cache->frame_count() * 4096 + cache->set_count() * layout.bytes;
  EXPECT_LE(used_bytes, uint64_t{10} << 20);
  EXPECT_GT(used_bytes + 4096, uint64_t{10} << 20);
  cache->close();
}

// A little too much memory for eight full sets. Sixteen sets themselves take so much of it that one of them has only seven frames.
TEST(PageCacheTest, SetsHaveSevenFramesAtLeast) {
  const PageSet::Layout layout(cache::SetPolicy::kAlfu);
  PageCache* const cache = *PageCache::open({.memory_bytes = 129 * 4096 + 8 * layout.bytes, .nodes = 1});
  EXPECT_EQ(cache->set_count(), 16u);
  EXPECT_EQ(cache->frame_count(), 127u);
  EXPECT_EQ(cache->set_statistics().frames.min, 7u);
  cache->close();
}

TEST(PageCacheTest, RefusesWhatMakesNoCache) {
  EXPECT_EQ(refusal({.memory_bytes = 60'000}),
            "page cache: 60000 bytes of memory are less than the 66112 that one set of 16 pages takes");
  EXPECT_EQ(refusal({.memory_bytes = 66112}), "");
  EXPECT_EQ(refusal({.memory_bytes = 1 << 20, .page_bytes = 5000}),
            "page cache: pages have 4096 to 65536 bytes, a power of two, not 5000");
  EXPECT_EQ(refusal({.memory_bytes = 1 << 20, .page_bytes = 512}),
            "page cache: pages have 4096 to 65536 bytes, a power of two, not 512");
  EXPECT_EQ(refusal({.memory_bytes = uint64_t{1} << 62}).substr(0, 12), "page cache: ");
}

TEST(PageCacheTest, FilesHaveNumbersOfTheirOwn) {
  TestDevice first(1 << 20), second(1 << 20);
  PageCache* const cache = *PageCache::open(with_frames(16));
  File* const a = *cache->add(first.device);
  File* const b = *cache->add(second.device);
  EXPECT_NE(a->number(), b->number());
  EXPECT_NE(a->key(7), b->key(7));
  EXPECT_TRUE(a->has(a->key(7)));
  EXPECT_FALSE(b->has(a->key(7)));
  EXPECT_EQ(File::page_of(b->key(7)), 7u);
  EXPECT_FALSE(a->has(PageKey::kNone));
  // A number is used again.
  Session session;
  session.open(*cache);
  const uint32_t number = a->number();
  ASSERT_TRUE(session.remove(*a));
  EXPECT_EQ((*cache->add(first.device))->number(), number);
  session.close();
  cache->close();
}

}  // namespace
}  // namespace pagecache
