// Caches with a partition for each node: their content is correct whichever node it is on, and all nodes have their share of it.
#include <random>

#include "pagecache/test_cache.h"

namespace pagecache {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kRegionPages = 64;
constexpr uint64_t kPages = 40 * kRegionPages;
constexpr uint64_t kFileBytes = kPages * kPage;

class NodesTest : public testing::TestWithParam<uint32_t> {
 protected:
  uint32_t nodes() const { return GetParam(); }
  uint64_t memory_of(uint64_t frames_each, CacheOptions options = {}) {
    options.nodes = nodes();
    return with_frames(frames_each * nodes(), options).memory_bytes;
  }
  void open(uint64_t frames_each, uint64_t frames_each_max = 300, CacheOptions options = {}) {
    options.nodes = nodes();
    options.memory_bytes = memory_of(frames_each, options);
    options.memory_bytes_max = memory_of(frames_each_max, options);
    cache = *PageCache::open(options);
    file = *cache->add(test.device);
    session.open(*cache);
  }
  void TearDown() override {
    session.close();
    if (cache != nullptr) cache->close();
  }
  uint32_t node_of(uint64_t page) const { return cache->node_of(file->key(page)); }
  std::string resize(uint64_t frames_each) {
    auto done = session.resize(memory_of(frames_each));
    return done ? "" : done.error().message;
  }

  TestDevice test{kFileBytes};
  PageCache* cache = nullptr;
  File* file = nullptr;
  Session session;
};

TEST_P(NodesTest, PagesOfARegionAreOnOneNodeAndAllNodesHaveSome) {
  open(20);
  EXPECT_EQ(cache->node_count(), nodes());
  std::vector<uint64_t> pages(nodes());
  for (uint64_t page = 0; page < kPages; ++page) {
    ASSERT_LT(node_of(page), nodes());
    EXPECT_EQ(node_of(page), node_of(page / kRegionPages * kRegionPages));
    ++pages[node_of(page)];
  }
  for (const uint64_t count : pages) EXPECT_GT(count, 0u);
}

TEST_P(NodesTest, IsAsAFileInMemory) {
  open(30);
  std::mt19937_64 random(nodes());
  std::vector<std::byte> model = test.content();
  const auto check = [](const base::Expected<void>& done) { ASSERT_TRUE(done) << done.error().message; };
  for (int round = 0; round < 2000; ++round) {
    const uint64_t bytes = 1 + random() % (random() % 8 == 0 ? 100 * kPage : 2 * kPage);
    const uint64_t offset = random() % (kFileBytes - bytes);
    std::vector<std::byte> text(bytes, static_cast<std::byte>(random()));
    switch (random() % 4) {
      case 0:
        check(session.write(*file, offset, text));
        memcpy(model.data() + offset, text.data(), bytes);
        break;
      case 1: {
        check(session.update(*file, offset, bytes, [&](std::span<std::byte> piece, uint64_t at) {
          ASSERT_EQ(memcmp(piece.data(), model.data() + at, piece.size()), 0);
          for (std::byte& byte : piece) byte ^= std::byte{0x5a};
        }));
        for (uint64_t i = offset; i < offset + bytes; ++i) model[i] ^= std::byte{0x5a};
        break;
      }
      case 2: {
        check(session.read(*file, offset, text));
        ASSERT_EQ(memcmp(text.data(), model.data() + offset, bytes), 0);
        break;
      }
      default: {
        const uint64_t page = offset / kPage;
        auto view = session.view(*file, page * kPage, kPage);
        ASSERT_TRUE(view) << view.error().message;
        ASSERT_EQ(memcmp(view->bytes().data(), model.data() + page * kPage, kPage), 0);
      }
    }
    if (round % 500 == 0) {
      check(session.sync(*file));
      ASSERT_EQ(cache->dirty_count(), 0u);
      ASSERT_TRUE(test.content() == model);
    }
  }
  check(session.remove(*file));
  EXPECT_TRUE(test.content() == model);
}

TEST_P(NodesTest, EachHasItsShareOfFrames) {
  open(20, 300, {.wait_ns_max = 1000});
  EXPECT_EQ(cache->frame_count(), 20 * nodes());
  EXPECT_EQ(cache->set_count(), 2 * nodes());
  for (const uint64_t frames : {100, 300, 17, 16, 150}) {
    ASSERT_EQ(resize(frames), "");
    EXPECT_EQ(cache->frame_count(), frames * nodes());
    // As many of a node's pages can be held as it has frames.
    std::vector<View> views;
    std::vector<uint64_t> held(nodes());
    std::vector<const std::byte*> addresses;
    for (uint64_t page = 0; page < kPages; ++page)
      if (auto view = session.view(*file, page * kPage, kPage)) {
        ++held[node_of(page)];
        addresses.push_back(view->bytes().data());
        views.push_back(std::move(*view));
      }
    for (uint32_t node = 0; node < nodes(); ++node) EXPECT_LE(held[node], frames) << node;
    if (frames <= 20) {
      for (uint32_t node = 0; node < nodes(); ++node) EXPECT_EQ(held[node], frames) << node;
    }
    std::ranges::sort(addresses);
    EXPECT_EQ(std::ranges::adjacent_find(addresses), addresses.end());
    views.clear();
  }
}

TEST_P(NodesTest, ContentStaysWhenTheSizeChanges) {
  open(20);
  std::mt19937_64 random(1);
  std::vector<std::byte> model = test.content();
  for (const uint64_t frames : {40, 300, 17, 33, 32, 299, 60}) {
    for (uint32_t i = 0; i < 100 * nodes(); ++i) {
      const uint64_t page = random() % kPages;
      const std::vector<std::byte> text(kPage, static_cast<std::byte>(random()));
      ASSERT_TRUE(session.write(*file, page * kPage, text));
      memcpy(model.data() + page * kPage, text.data(), kPage);
    }
    ASSERT_EQ(resize(frames), "");
    std::vector<std::byte> got(kFileBytes);
    ASSERT_TRUE(session.read(*file, 0, got));
    ASSERT_TRUE(got == model) << frames;
  }
}

// Nodes do not become larger before others have become smaller.
TEST_P(NodesTest, FramesThatLeaveGiveTheirMemoryBack) {
  open(40);
  std::vector<const std::byte*> frames;
  for (uint64_t page = 0; page < kPages; ++page) {
    ASSERT_TRUE(session.write(*file, page * kPage, std::vector(kPage, std::byte{'w'})));
    frames.push_back(session.view(*file, page * kPage, 1)->bytes().data());
  }
  std::ranges::sort(frames);
  frames.erase(std::unique(frames.begin(), frames.end()), frames.end());
  EXPECT_EQ(frames.size(), 40u * nodes());
  ASSERT_EQ(resize(20), "");
  // Each node gives up frames from the end of its own on.
  for (size_t i = 0; i < frames.size(); ++i) EXPECT_EQ(*frames[i] == std::byte{'w'}, i % 40 < 20) << i;
}

TEST_P(NodesTest, WhatIsTooMuchOrTooLittleIsRefused) {
  open(20, 40);
  EXPECT_NE(resize(15), "");
  EXPECT_NE(resize(41), "");
  EXPECT_EQ(cache->frame_count(), 20 * nodes());
}

INSTANTIATE_TEST_SUITE_P(All, NodesTest, testing::Values(2, 3, 4, 8),
                         [](const auto& parameter) { return "of" + std::to_string(parameter.param); });

TEST(NodesOptionsTest, AreAsManyAsThereIsMemoryFor) {
  const auto refusal = [](const CacheOptions& options) -> std::string {
    auto made = PageCache::open(options);
    if (!made) return made.error().message;
    (*made)->close();
    return "";
  };
  EXPECT_EQ(refusal({.memory_bytes = 1 << 20, .nodes = 65}), "page cache: it has 64 nodes at most, not 65");
  EXPECT_EQ(refusal({.memory_bytes = 64 * 66112, .nodes = 64}), "");
  EXPECT_EQ(
      refusal({.memory_bytes = 131'000, .nodes = 2}),
      "page cache: 65500 bytes of memory are less than the 66112 that one set of 16 pages takes; each of 2 "
      "nodes has a share");
  // As many as the machine has, however many these are.
  PageCache* const small = *PageCache::open({.memory_bytes = 66112});
  EXPECT_EQ(small->node_count(), 1u);
  small->close();
  PageCache* const large = *PageCache::open({.memory_bytes = 64 << 20});
  EXPECT_EQ(large->node_count(), sys::memory_nodes().count);
  large->close();
}

}  // namespace
}  // namespace pagecache
