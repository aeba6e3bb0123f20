// Frames that servers move to the node that misses more: how many, what stays, and what stops the move.
#include <random>
#include <thread>

#include "pagecache/servers.h"
#include "pagecache/test_cache.h"

namespace pagecache {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kPages = 64 * 60;
constexpr uint64_t kFramesEach = 100;
constexpr uint32_t kBusy = 1;  // the node

class BalanceTest : public testing::TestWithParam<uint32_t> {
 protected:
  void SetUp() override { open(true); }
  void TearDown() override { close(); }
  void open(bool balances, uint64_t wait_ns_max = 10'000'000'000) {
    close();
    cache = *PageCache::open(with_frames(
        nodes() * kFramesEach, {.wait_ns_max = wait_ns_max, .nodes = nodes(), .balances_nodes = balances}));
    file = *cache->add(test.device);
    session.open(*cache);
    servers = *Servers::open(*cache, {});
  }
  void close() {
    if (cache == nullptr) return;
    if (servers != nullptr) servers->close();
    session.close();
    cache->close();
    cache = nullptr;
  }
  uint32_t nodes() const { return GetParam(); }
  std::vector<uint64_t> pages_of(uint32_t node) const {
    std::vector<uint64_t> pages;
    for (uint64_t page = 0; page < kPages; ++page)
      if (cache->node_of(file->key(page)) == node) pages.push_back(page);
    return pages;
  }
  // Misses pages of the busy node until it has `frames`, for a minute at most. The pages' first byte is `content`.
  bool read_until(uint64_t frames, std::byte content = {}) {
    const std::vector<uint64_t> pages = pages_of(kBusy);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    for (uint64_t i = 0; cache->frame_count_of(kBusy) < frames; ++i) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::byte byte = {};
      if (!session.read(*file, pages[i % pages.size()] * kPage, {&byte, 1})) return false;
      EXPECT_EQ(byte, content);
      EXPECT_LE(used_bytes(), most_bytes());
    }
    return true;
  }
  uint64_t used_bytes() const {
    const PageSet::Layout layout(cache->options().policy);
    // First the node that gets frames, so that none is counted twice.
    uint64_t bytes = cache->frame_count_of(kBusy) * kPage;
    for (uint32_t node = 0; node < nodes(); ++node)
      if (node != kBusy) bytes += cache->frame_count_of(node) * kPage;
    return bytes + cache->set_count() * layout.bytes;
  }
  // Reads `count` pages of the node, each of which has left before it is read again.
  void miss(uint64_t count) {
    const std::vector<uint64_t> pages = pages_of(kBusy);
    for (; count > 0; --count) {
      std::byte byte;
      static_cast<void>(session.read(*file, pages[next_++ % pages.size()] * kPage, {&byte, 1}));
    }
  }
  // Including the extra frames that the halves of a set may have for a moment.
  uint64_t most_bytes() const { return cache->options().memory_bytes + kMinWays * kPage; }
  // The most frames that a node may get, apart from what sets take.
  uint64_t most() const { return nodes() == 2 ? kFramesEach * 3 / 2 : kFramesEach * 2; }

  TestDevice test{kPages * kPage};
  PageCache* cache = nullptr;
  File* file = nullptr;
  Session session;
  Servers* servers = nullptr;
  uint64_t next_ = 0;
};

TEST_P(BalanceTest, FramesGoToTheNodeThatMissesMoreUpToALimit) {
  ASSERT_TRUE(read_until(most() - kFramesEach / 10));
  const std::vector<uint64_t> pages = pages_of(kBusy);
  for (uint64_t i = 0; i < 20 * pages.size(); ++i) {
    std::byte byte;
    ASSERT_TRUE(session.read(*file, pages[i % pages.size()] * kPage, {&byte, 1}));
  }
  servers->close();
  servers = nullptr;
  EXPECT_LE(used_bytes(), most_bytes());
  EXPECT_GT(cache->frame_count() + kFramesEach / 10, nodes() * kFramesEach);
  EXPECT_LE(cache->frame_count_of(kBusy), most());
  for (uint32_t node = 0; node < nodes(); ++node) {
    EXPECT_GE(cache->frame_count_of(node) + 2, kFramesEach / 2) << node;
    if (node != kBusy) {
      EXPECT_LT(cache->frame_count_of(node), kFramesEach) << node;
    }
  }
}

TEST_P(BalanceTest, ContentStays) {
  std::vector<std::byte> text(kPages * kPage, std::byte{'c'}), got(text.size());
  ASSERT_TRUE(session.write(*file, 0, text));
  ASSERT_TRUE(read_until(kFramesEach * 5 / 4, std::byte{'c'}));
  ASSERT_TRUE(session.read(*file, 0, got));
  EXPECT_TRUE(got == text);
  servers->leave(*file);
  ASSERT_TRUE(session.remove(*file));
  EXPECT_TRUE(test.content() == text);
}

TEST_P(BalanceTest, NothingMovesUnlessItIsWanted) {
  open(false);
  const std::vector<uint64_t> pages = pages_of(kBusy);
  for (uint64_t i = 0; i < 10 * pages.size(); ++i) {
    std::byte byte;
    ASSERT_TRUE(session.read(*file, pages[i % pages.size()] * kPage, {&byte, 1}));
  }
  for (uint32_t node = 0; node < nodes(); ++node) EXPECT_EQ(cache->frame_count_of(node), kFramesEach);
}

TEST_P(BalanceTest, AResizeMakesAllAlike) {
  ASSERT_TRUE(read_until(kFramesEach * 5 / 4));
  ASSERT_TRUE(session.resize(cache->options().memory_bytes));
  for (uint32_t node = 0; node < nodes(); ++node) EXPECT_EQ(cache->frame_count_of(node), kFramesEach);
  ASSERT_TRUE(read_until(kFramesEach * 5 / 4));
}

TEST_P(BalanceTest, NothingGrowsBeforeWhatIsToShrinkHas) {
  open(true, 10'000'000);
  ASSERT_TRUE(read_until(kFramesEach * 5 / 4));
  servers->close();
  servers = nullptr;
  std::vector<View> views;
  for (const uint64_t page : pages_of(kBusy)) {
    auto view = session.view(*file, page * kPage, 1);
    if (!view) break;
    views.push_back(std::move(*view));
  }
  ASSERT_FALSE(session.resize(cache->options().memory_bytes));
  EXPECT_LE(used_bytes(), most_bytes());
  views.clear();
  ASSERT_TRUE(session.resize(cache->options().memory_bytes));
  for (uint32_t node = 0; node < nodes(); ++node) EXPECT_EQ(cache->frame_count_of(node), kFramesEach);
}

// Each set of other nodes is full of views.
TEST_P(BalanceTest, PagesThatAreHeldStayAndItIsTriedAgain) {
  open(true, 1'000'000);
  servers->close();
  std::vector<View> views;
  for (uint32_t node = 0; node < nodes(); ++node) {
    uint64_t count = 0;
    for (const uint64_t page : node == kBusy ? std::vector<uint64_t>() : pages_of(node)) {
      if (count == kFramesEach) break;
      if (auto view = session.view(*file, page * kPage, 1)) {
        views.push_back(std::move(*view));
        ++count;
      }
    }
  }
  EXPECT_EQ(views.size(), (nodes() - 1) * kFramesEach);
  servers = *Servers::open(*cache, {});
  // Each attempt lasts a millisecond; a change of size stops it.
  for (const bool resizes : {false, true}) {
    for (int i = 0; i < 20; ++i) {
      miss(kFramesEach / 2);
      std::this_thread::sleep_for(std::chrono::microseconds(resizes ? 500 : 2000));
      if (!resizes) continue;
      auto resized = session.resize(cache->options().memory_bytes);
      ASSERT_TRUE(resized) << resized.error().message;
    }
    EXPECT_LE(used_bytes(), most_bytes());
  }
  for (const View& view : views) EXPECT_EQ(view.bytes()[0], std::byte{0});
  EXPECT_LE(used_bytes(), most_bytes());
  views.clear();
  EXPECT_TRUE(read_until(most() - kFramesEach / 10));
}

TEST_P(BalanceTest, FilesThatServersHaveLeftAreLeftAlone) {
  // All pages in other nodes are dirty pages of the file that is left.
  TestDevice other_device(kPages * kPage);
  File* const other = *cache->add(other_device.device);
  servers->close();
  for (uint64_t page = 0; page < kPages; ++page)
    if (cache->node_of(other->key(page)) != kBusy) {
      ASSERT_TRUE(session.write(*other, page * kPage, std::vector(kPage, std::byte{'d'})));
    }
  servers = *Servers::open(*cache, {});
  servers->leave(*other);
  miss(4 * kFramesEach * nodes());
  auto removed = session.remove(*other);
  EXPECT_TRUE(removed) << removed.error().message;
  EXPECT_TRUE(read_until(kFramesEach * 5 / 4));
}

// A move gives way to a resize.
TEST_P(BalanceTest, TheSizeChangesAtAnyTime) {
  for (uint64_t round = 0; round < 300; ++round) {
    miss(kFramesEach / 4 + round % 3);
    auto resized = session.resize(cache->options().memory_bytes);
    ASSERT_TRUE(resized) << resized.error().message;
    EXPECT_LE(used_bytes(), most_bytes());
  }
  EXPECT_TRUE(read_until(most() - kFramesEach / 10)) << "frames move on";
}

TEST_P(BalanceTest, ServersAreClosedMeanwhile) {
  const std::vector<uint64_t> pages = pages_of(kBusy);
  std::mt19937_64 random(nodes());
  uint64_t at = 0;
  for (int round = 0; round < 100; ++round) {
    for (uint64_t i = random() % 300; i > 0; --i) {
      std::byte byte;
      ASSERT_TRUE(session.read(*file, pages[at++ % pages.size()] * kPage, {&byte, 1}));
    }
    if (round % 3 == 0) servers->leave(*file);
    servers->close();
    EXPECT_LE(used_bytes(), most_bytes());
    servers = *Servers::open(*cache, {});
  }
  EXPECT_TRUE(read_until(most() - kFramesEach / 10));
}

INSTANTIATE_TEST_SUITE_P(All, BalanceTest, testing::Values(2, 4),
                         [](const auto& parameter) { return "of" + std::to_string(parameter.param); });

}  // namespace
}  // namespace pagecache
