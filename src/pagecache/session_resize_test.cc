// Caches that are resized: their content stays or is on the device; all frames are used; what cannot be done now can be done later.
#include <random>
#include <thread>

#include "pagecache/test_cache.h"
#include "task/test_tasks.h"

namespace pagecache {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kPages = 600;
constexpr uint64_t kFileBytes = kPages * kPage;
constexpr uint64_t kMaxFrames = 300;

class ResizeTest : public testing::TestWithParam<cache::SetPolicy> {
 protected:
  void SetUp() override { open(20, 20'000'000); }
  void TearDown() override { close(); }
  void open(uint64_t frames, uint64_t wait_ns_max) {
    close();
    CacheOptions options = with_frames(frames, {.policy = GetParam(), .wait_ns_max = wait_ns_max});
    options.memory_bytes_max = memory_of(kMaxFrames);
    cache = *PageCache::open(options);
    file = *cache->add(test.device);
    session.open(*cache);
  }
  void close() {
    views.clear();
    session.close();
    if (cache != nullptr) cache->close();
    cache = nullptr;
  }
  uint64_t memory_of(uint64_t frames) { return with_frames(frames, {.policy = GetParam()}).memory_bytes; }
  std::string resize(uint64_t frames) {
    auto done = session.resize(memory_of(frames));
    return done ? "" : done.error().message;
  }
  // The file's nth page whose home is this set in a cache of `count` sets.
  uint64_t page_of_set(uint64_t set, uint64_t count, uint64_t nth) {
    for (uint64_t page = 0;; ++page)
      if ((base::mix(static_cast<uint64_t>(file->key(page))) & (count - 1)) == set && nth-- == 0) return page;
  }
  bool view(uint64_t page) {
    auto made = session.view(*file, page * kPage, kPage);
    if (made) views.push_back(std::move(*made));
    return made.has_value();
  }
  std::string write(uint64_t page, char fill) {
    auto done = session.write(*file, page * kPage, bytes_of(std::string(kPage, fill)));
    return done ? "" : done.error().message;
  }
  std::string read(uint64_t page) {
    std::string text(1, 0);
    auto done = session.read(*file, page * kPage, std::as_writable_bytes(std::span(text)));
    return done ? text : done.error().message;
  }

  TestDevice test{kFileBytes};
  PageCache* cache = nullptr;
  File* file = nullptr;
  Session session;
  std::vector<View> views;
};

TEST_P(ResizeTest, ContentStays) {
  std::mt19937_64 random(1);
  std::vector<std::byte> model = test.content();
  for (const uint64_t frames : {40, 300, 17, 16, 33, 32, 299, 150, 60, 61, 20}) {
    for (int i = 0; i < 150; ++i) {
      const uint64_t page = random() % kPages;
      const std::string text(kPage, static_cast<char>(random()));
      ASSERT_TRUE(session.write(*file, page * kPage, bytes_of(text)));
      memcpy(model.data() + page * kPage, text.data(), kPage);
    }
    ASSERT_EQ(resize(frames), "");
    EXPECT_EQ(cache->frame_count(), frames);
    EXPECT_LT((cache->set_count() - 1) * kMinWays, frames);
    EXPECT_GE(cache->set_count() * kMaxWays, frames);
    std::vector<std::byte> got(kFileBytes);
    ASSERT_TRUE(session.read(*file, 0, got));
    ASSERT_TRUE(got == model) << frames;
  }
  ASSERT_TRUE(session.remove(*file));
  EXPECT_TRUE(test.content() == model);
}

// A page that cannot move stops it before the last set is split.
TEST_P(ResizeTest, HalvesOfSetsKeepNoMoreThanTheirShares) {
  open(128, 1'000'000);
  for (uint64_t page = 0; page < kPages; ++page) EXPECT_EQ(write(page, 'w'), "");
  ASSERT_TRUE(view(page_of_set(15, 16, 0)));
  EXPECT_NE(resize(130), "");
  EXPECT_EQ(cache->set_count(), 15u);
  EXPECT_LE(cache->frame_count(), 130u);
  views.clear();
  EXPECT_EQ(resize(130), "");
  EXPECT_EQ(cache->frame_count(), 130u);
}

TEST_P(ResizeTest, AllFramesAreUsed) {
  open(20, 1000);
  for (const uint64_t frames : {16, 33, 120, 70}) {
    ASSERT_EQ(resize(frames), "");
    for (uint64_t page = 0; page < kPages; ++page) view(page);
    EXPECT_EQ(views.size(), frames);
    views.clear();
  }
}

TEST_P(ResizeTest, WhatHasRoomIsKept) {
  for (uint64_t page = 0; page < 8; ++page) EXPECT_EQ(write(page, 'w'), "");
  for (const uint64_t frames : {200, 300, 100}) ASSERT_EQ(resize(frames), "");
  const SessionCounts before = session.counts();
  for (uint64_t page = 0; page < 8; ++page) EXPECT_EQ(read(page), "w");
  EXPECT_EQ(session.counts().misses, before.misses);
  EXPECT_EQ(before.evictions, 0u);
  EXPECT_EQ(before.writebacks, 0u);
}

TEST_P(ResizeTest, FramesThatLeaveGiveTheirMemoryBack) {
  ASSERT_EQ(resize(128), "");
  std::vector<const std::byte*> frames;
  for (uint64_t page = 0; page < kPages; ++page) {
    EXPECT_EQ(write(page, 'w'), "");
    frames.push_back(session.view(*file, page * kPage, 1)->bytes().data());
  }
  std::ranges::sort(frames);
  frames.erase(std::unique(frames.begin(), frames.end()), frames.end());
  EXPECT_EQ(frames.size(), 128u);
  ASSERT_EQ(resize(20), "");
  for (size_t i = 0; i < frames.size(); ++i) EXPECT_EQ(*frames[i] == std::byte{'w'}, i < 20) << i;
}

TEST_P(ResizeTest, RefusesSizesThatItCannotHave) {
  auto large = session.resize(memory_of(kMaxFrames) + 1);
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().number, EINVAL);
  EXPECT_NE(std::string(large.error().message).find("(memory_bytes_max)"), std::string::npos);
  auto small = session.resize(memory_of(16) - 1);
  ASSERT_FALSE(small);
  EXPECT_EQ(small.error().number, EINVAL);
  EXPECT_EQ(cache->frame_count(), 20u);
  auto refused = PageCache::open({.memory_bytes = 2 << 20, .memory_bytes_max = 1 << 20});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().number, EINVAL);
}

TEST_P(ResizeTest, APageThatIsHeldStopsAGrowth) {
  open(16, 20'000'000);
  const uint64_t page = page_of_set(1, 2, 0);
  EXPECT_EQ(write(page, 'h'), "");
  ASSERT_TRUE(view(page));
  EXPECT_EQ(resize(100),
            "page cache: it stays at 16 pages: one that has to leave or to move is held by others, or views, "
            "for more than 20 ms");
  EXPECT_EQ(cache->set_count(), 1u);
  for (uint64_t other = 0; other < 50; ++other)
    if (other != page) EXPECT_EQ(write(other, 'o'), "");
  EXPECT_EQ(views[0].bytes()[0], std::byte{'h'});
  views.clear();
  EXPECT_EQ(resize(100), "");
  EXPECT_EQ(cache->frame_count(), 100u);
  for (uint64_t other = 0; other < 50; ++other) EXPECT_EQ(read(other), other == page ? "h" : "o");
}

TEST_P(ResizeTest, PagesThatAreHeldStopAShrink) {
  open(64, 20'000'000);
  std::vector<uint64_t> held;
  for (uint64_t nth = 0; nth < 9; ++nth) held.push_back(page_of_set(3, 4, nth));
  for (const uint64_t page : held) {
    EXPECT_EQ(write(page, 'h'), "");
    ASSERT_TRUE(view(page));
  }
  EXPECT_EQ(resize(16).substr(0, 33), "page cache: it stays at 64 pages:");
  // Other calls continue, even in that set.
  for (uint64_t nth = 9; nth < 40; ++nth) EXPECT_EQ(write(page_of_set(3, 4, nth), 'o'), "");
  for (const View& view : views) EXPECT_EQ(view.bytes()[0], std::byte{'h'});
  views.clear();
  EXPECT_EQ(resize(16), "");
  EXPECT_EQ(cache->frame_count(), 16u);
  for (uint64_t nth = 0; nth < 40; ++nth) EXPECT_EQ(read(page_of_set(3, 4, nth)), nth < 9 ? "h" : "o");
}

TEST_P(ResizeTest, PagesThatCannotBeWrittenStay) {
  ASSERT_EQ(resize(128), "");
  for (uint64_t page = 0; page < 200; ++page) EXPECT_EQ(write(page, 'w'), "");
  test.device.fail(Failing::kWrites, EIO);
  EXPECT_NE(resize(16).find("cannot write failing at offset"), std::string::npos);
  EXPECT_GT(cache->frame_count(), 16u);
  test.device.fail(Failing::kNothing, 0);
  EXPECT_EQ(resize(16), "");
  for (uint64_t page = 0; page < 200; ++page) EXPECT_EQ(read(page), "w");
}

TEST_P(ResizeTest, OneAtATime) {
  open(16, 60'000'000'000);
  const uint64_t page = page_of_set(1, 2, 0);
  ASSERT_TRUE(view(page));
  Session other;
  other.open(*cache);
  std::thread resizes([&] { EXPECT_TRUE(other.resize(memory_of(100))); });
  while (other.counts().waits == 0) std::this_thread::yield();
  EXPECT_EQ(resize(30), "page cache: another call is changing its size");
  EXPECT_EQ(read(page), std::string(1, 0));
  views.clear();  // lets the resize continue
  resizes.join();
  EXPECT_EQ(cache->frame_count(), 100u);
  EXPECT_EQ(resize(30), "");
  other.close();
}

// A call that waits for room in a set finds it in the set that a split has made, even if the next split has to wait.
TEST_P(ResizeTest, WhoWaitsIsToldThatThereIsRoomElsewhere) {
  open(16, 60'000'000'000);
  for (uint64_t nth = 0; nth < 16; ++nth) ASSERT_TRUE(view(page_of_set(0, 2, nth)));
  Session other;
  other.open(*cache);
  std::thread reads([&] {
    std::byte byte;
    EXPECT_TRUE(other.read(*file, page_of_set(1, 2, 0) * kPage, std::span(&byte, 1)));
  });
  while (other.counts().waits == 0) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::thread resizes([&] { EXPECT_EQ(resize(64), ""); });
  reads.join();
  EXPECT_EQ(cache->set_count(), 2u);
  views.clear();
  resizes.join();
  EXPECT_EQ(cache->frame_count(), 64u);
  other.close();
}

// The same in a set into which another is merged.
TEST_P(ResizeTest, WhoWaitsIsToldThatPagesOfAnotherSetMayLeave) {
  open(64, 60'000'000'000);
  for (uint64_t nth = 0; nth < 8; ++nth) ASSERT_TRUE(view(page_of_set(1, 4, nth)));
  View first = *session.view(*file, page_of_set(3, 4, 0) * kPage, 1);
  View second = *session.view(*file, page_of_set(2, 4, 0) * kPage, 1);
  Session resizing, other;
  resizing.open(*cache);
  other.open(*cache);
  std::thread resizes([&] { EXPECT_TRUE(resizing.resize(memory_of(16))); });
  while (resizing.counts().waits == 0) std::this_thread::yield();
  EXPECT_EQ(cache->set_count(), 4u);
  std::thread reads([&] {
    std::byte byte;
    EXPECT_TRUE(other.read(*file, page_of_set(1, 4, 8) * kPage, std::span(&byte, 1)));
  });
  while (other.counts().waits == 0) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  first.reset();
  reads.join();
  EXPECT_EQ(cache->set_count(), 3u);
  second.reset();
  views.clear();
  resizes.join();
  EXPECT_EQ(cache->frame_count(), 16u);
  resizing.close();
  other.close();
}

TEST_P(ResizeTest, WhoWaitsIsToldOfNewFrames) {
  open(20, 60'000'000'000);
  for (uint64_t nth = 0; nth < 10; ++nth) ASSERT_TRUE(view(page_of_set(0, 2, nth)));
  Session other;
  other.open(*cache);
  std::thread reads([&] {
    std::byte byte;
    EXPECT_TRUE(other.read(*file, page_of_set(0, 2, 10) * kPage, std::span(&byte, 1)));
  });
  while (other.counts().waits == 0) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(resize(32), "");
  reads.join();
  other.close();
}

INSTANTIATE_TEST_SUITE_P(All, ResizeTest, testing::ValuesIn(cache::kSetPolicies),
                         [](const auto& parameter) { return cache::name_of(parameter.param); });

class ResizeTasksTest : public task::TasksTest {
 protected:
  ResizeTasksTest() : TasksTest(1) {}
};

TEST_F(ResizeTasksTest, ATaskResizesWhatOthersUse) {
  TestDevice test(kFileBytes);
  run([&] {
    CacheOptions options = with_frames(20);
    options.memory_bytes_max = with_frames(100).memory_bytes;
    PageCache* const cache = *PageCache::open(options);
    File* const file = *cache->add(test.device);
    Session session;
    session.open(*cache);
    ASSERT_NO_FATAL_FAILURE(count_by_tasks(session, *file, 8, 400, [&] {
      for (const uint64_t frames : {100, 16, 50, 33, 20})
        EXPECT_TRUE(session.resize(with_frames(frames).memory_bytes));
    }));
    ASSERT_TRUE(session.remove(*file));
    session.close();
    cache->close();
  });
}

}  // namespace
}  // namespace pagecache
