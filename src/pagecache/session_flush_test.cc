// Dirty pages that are written back before their frames are needed, and neighbours that are written along with a page: which ones, in how many
// writes, and what happens if they cannot be written.
#include <random>
#include <thread>

#include "base/statistics.h"
#include "pagecache/request_queue.h"
#include "pagecache/test_cache.h"
#include "storage/decorators/latency.h"
#include "sys/kernel.h"

namespace pagecache {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kPages = 1000;

// Pages leave in the order in which they were last used.
class SessionFlushTest : public testing::Test {
 protected:
  void SetUp() override { open(16, 1); }
  void TearDown() override { close(); }
  void open(uint64_t frames, double dirty_share_max) {
    close();
    cache = *PageCache::open(
        with_frames(frames, {.policy = cache::SetPolicy::kLru, .dirty_share_max = dirty_share_max}));
    file = *cache->add(test.device);
    session.open(*cache);
  }
  void close() {
    close_servers();
    session.close();
    if (cache != nullptr) cache->close();
    cache = nullptr;
  }
  void serve(const ServersOptions& options = {}) { servers = *Servers::open(*cache, options); }
  void close_servers() {
    if (servers != nullptr) servers->close();
    servers = nullptr;
  }

  void write(uint64_t page) {
    auto done = session.write(*file, page * kPage, bytes_of(std::string(kPage, 'w')));
    EXPECT_TRUE(done) << done.error().message;
  }
  void read(uint64_t page) {
    std::byte byte;
    auto done = session.read(*file, page * kPage, std::span(&byte, 1));
    EXPECT_TRUE(done) << done.error().message;
  }
  // Fills one set: the first four pages are clean, the others are dirty, and no neighbours of each other.
  void fill_set() {
    for (uint64_t page = 500; page < 504; ++page) read(page);
    for (uint64_t i = 0; i < 12; ++i) write(2 * i);
  }
  bool is_on_device(uint64_t page) { return test.content(page * kPage, kPage)[0] == std::byte{'w'}; }
  uint64_t flushed() { return servers->flush_counts().pages; }
  // Waits until `pages` have been flushed, or it is clear that they will not be.
  void expect_flushed(uint64_t pages) {
    for (int i = 0; i < 60000 && flushed() < pages; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(flushed(), pages);
  }

  void expect_dirty(uint64_t pages) {
    for (int i = 0; i < 60000 && cache->dirty_count() != pages; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(cache->dirty_count(), pages);
  }

  // The servers' only task waits for a view.
  void keep_servers_busy() {
    held_file = *cache->add(held.device);
    view = *session.view(*held_file, 0, 1);
    queue.open(*servers, 1);
    request.kind = Request::Kind::kWrite;
    request.file = held_file;
    request.bytes = {&request_byte, 1};
    Request* const one[] = {&request};
    queue.submit(one);
    queue.poll();
  }
  void let_servers_go_on() {
    view.reset();
    queue.close();
  }

  TestDevice test{kPages * kPage}, held{kPage};
  PageCache* cache = nullptr;
  File* file = nullptr;
  Session session;
  Servers* servers = nullptr;
  File* held_file = nullptr;
  View view;
  RequestQueue queue;
  Request request;
  std::byte request_byte = {};
};

TEST_F(SessionFlushTest, PagesThatWouldLeaveSoonAreWrittenFirst) {
  fill_set();
  serve();
  EXPECT_EQ(cache->dirty_count(), 12u);
  read(600);
  expect_flushed(5);  // three clean pages leave before
  EXPECT_EQ(cache->dirty_count(), 7u);
  EXPECT_EQ(servers->flush_counts().writes, 5u);
  for (uint64_t i = 0; i < 12; ++i) EXPECT_EQ(is_on_device(2 * i), i < 5) << i;
  // Calls that need their frames do not write.
  for (uint64_t page = 601; page < 609; ++page) read(page);
  EXPECT_EQ(session.counts().writebacks, 0u);
  EXPECT_EQ(session.counts().evictions, 9u);
}

TEST_F(SessionFlushTest, WithoutServersNothingIsWrittenBeforeItHasTo) {
  open(16, 0.1);
  fill_set();
  for (uint64_t page = 600; page < 604; ++page) read(page);
  EXPECT_EQ(cache->dirty_count(), 12u);
  serve();
  close_servers();
  write(600);
  EXPECT_EQ(cache->dirty_count(), 13u);
  EXPECT_EQ(session.counts().writebacks, 0u);
}

TEST_F(SessionFlushTest, WhoNeedsAFrameTakesARunAlong) {
  for (const uint64_t page : {100, 99, 104, 102, 101, 90, 91, 103, 200, 201, 202, 203, 204, 205, 206, 208})
    write(page);
  const uint64_t before = base::statistics.storage_writes.get();
  read(600);
  EXPECT_EQ(base::statistics.storage_writes.get() - before, 1u);
  EXPECT_EQ(session.counts().writebacks, 6u);
  for (uint64_t page = 99; page <= 104; ++page) EXPECT_TRUE(is_on_device(page)) << page;
  EXPECT_EQ(cache->dirty_count(), 10u);
}

TEST_F(SessionFlushTest, RunsEndWithTheFile) {
  for (uint64_t page = 0; page < 8; ++page) write(page);
  for (uint64_t page = kPages - 8; page < kPages; ++page) write(page);
  TestDevice other_device(8 * kPage);
  File& other = **cache->add(other_device.device);
  const auto write_other = [&] {
    for (uint64_t page = 0; page < 8; ++page)
      EXPECT_TRUE(session.write(other, page * kPage, bytes_of(std::string(kPage, 'o'))));
  };
  write_other();
  for (uint64_t page = 0; page < 8; ++page) write(page);
  write_other();
  EXPECT_TRUE(session.sync(*file));
  EXPECT_TRUE(session.remove(other));
  EXPECT_EQ(test.content(0, 8 * kPage), std::vector(8 * kPage, std::byte{'w'}));
  EXPECT_EQ(test.content((kPages - 8) * kPage, 8 * kPage), std::vector(8 * kPage, std::byte{'w'}));
  EXPECT_EQ(other_device.content(), std::vector(8 * kPage, std::byte{'o'}));
  EXPECT_EQ(cache->dirty_count(), 0u);
  close();
}

TEST_F(SessionFlushTest, RunsOfManySetsAreFewWrites) {
  open(128, 0.1);
  for (uint64_t page = 0; page < 20; ++page) write(page);
  serve();
  EXPECT_EQ(cache->dirty_count(), 20u);
  // Some pages of its set are flushed, one of them with its neighbours, 16 in all.
  const uint64_t before = base::statistics.storage_writes.get();
  write(500);
  expect_dirty(4);
  EXPECT_EQ(flushed(), 17u);
  EXPECT_EQ(servers->flush_counts().writes, 2u);
  EXPECT_EQ(base::statistics.storage_writes.get() - before, 2u);
}

TEST_F(SessionFlushTest, ManyRunsAreWrittenInBatches) {
  constexpr uint64_t kRuns = 9, kRun = 12;
  open(256, 0.35);
  for (uint64_t i = 0; i < kRuns * kRun; ++i) write(i / kRun * 100 + i % kRun);
  serve({.tasks_each = 1});
  keep_servers_busy();
  for (uint64_t page = 50; page < 70; page += 2) write(page);
  EXPECT_EQ(session.counts().writebacks, 0u);
  let_servers_go_on();
  for (int i = 0; i < 60000 && flushed() <= 64; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_GT(flushed(), 64u);
  EXPECT_LT(servers->flush_counts().writes, flushed() / 4);
  servers->leave(*file);
  EXPECT_TRUE(session.remove(*file));
  for (uint64_t i = 0; i < kRuns * kRun; ++i) EXPECT_TRUE(is_on_device(i / kRun * 100 + i % kRun)) << i;
}

TEST_F(SessionFlushTest, PagesGoToTheirFiles) {
  TestDevice other_device(kPages * kPage);
  File& other = **cache->add(other_device.device);
  for (uint64_t page = 500; page < 504; ++page) read(page);
  for (uint64_t i = 0; i < 12; ++i) {
    if (i % 2 == 0)
      write(2 * i);
    else
      EXPECT_TRUE(session.write(other, 2 * i * kPage, bytes_of(std::string(kPage, 'o'))));
  }
  serve();
  read(600);
  expect_flushed(5);
  for (uint64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(is_on_device(2 * i), i % 2 == 0) << i;
    EXPECT_EQ(other_device.content(2 * i * kPage, kPage)[0],
              std::byte{i % 2 == 0 ? uint8_t{0} : uint8_t{'o'}});
  }
  close();
}

TEST_F(SessionFlushTest, WhoOnlyWritesLeavesSoManyDirty) {
  open(64, 0.25);
  serve();
  std::mt19937_64 random(1);
  for (int i = 0; i < 5000; ++i) {
    write(random() % kPages);
    // A page whose flush has just begun may still be counted.
    ASSERT_LE(cache->dirty_count(), 64 / 4 + 64 / 8 + 1);
  }
  // A page may be skipped while it is written to; the next page that becomes dirty makes servers flush again.
  for (int i = 0; i < 1000 && cache->dirty_count() > 64 / 4; ++i) {
    write(random() % kPages);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_LE(cache->dirty_count(), 64u / 4);
  EXPECT_GT(flushed(), 0u);
}

TEST_F(SessionFlushTest, WhoOnlyWritesCleansSomeWhenFlushersAreLate) {
  open(64, 0.25);
  serve({.tasks_each = 1});
  keep_servers_busy();
  std::mt19937_64 random(1);
  const auto change = [](std::span<std::byte> bytes, uint64_t) { bytes[0] = std::byte{'u'}; };
  for (int i = 0; i < 1000; ++i) {
    const uint64_t page = random() % kPages;
    if (i % 2 == 0)
      write(page);
    else
      EXPECT_TRUE(session.update(*file, page * kPage, 1, change));
    ASSERT_LE(cache->dirty_count(), 64 / 4 + 64 / 8);
  }
  EXPECT_GT(session.counts().writebacks, 0u);
  EXPECT_EQ(flushed(), 0u);
  let_servers_go_on();
}

TEST_F(SessionFlushTest, APageThatCannotBeWrittenStaysDirty) {
  fill_set();
  serve();
  test.device.fail(Failing::kWrites, EIO, 1, 8);
  read(600);
  while (!test.device.has_failed()) std::this_thread::yield();
  // Servers do not retry on their own: three of the eight failures are left.
  expect_dirty(12);
  EXPECT_EQ(flushed(), 0u);
  auto synced = session.sync(*file);
  ASSERT_FALSE(synced);
  EXPECT_EQ(std::string(synced.error().message),
            "page cache: cannot write failing at offset 0: input/output error");
  test.device.fail(Failing::kNothing, 0);
  EXPECT_LT(cache->dirty_count(), 12u);
  EXPECT_TRUE(session.sync(*file));
  EXPECT_EQ(cache->dirty_count(), 0u);
}

TEST_F(SessionFlushTest, ThoseThatFailAreTriedAgainWithTheNextMiss) {
  fill_set();
  serve();
  test.device.fail(Failing::kWrites, EIO, 1, 5);
  read(600);
  while (!test.device.has_failed()) std::this_thread::yield();
  expect_dirty(12);
  read(601);
  expect_flushed(6);
  EXPECT_EQ(cache->dirty_count(), 6u);
}

// In a run, another page may be at fault than the one whose frame is needed.
TEST_F(SessionFlushTest, WhoNeedsAFrameIsToldOfItsPageOnly) {
  for (uint64_t page = 0; page < 16; ++page) write(page);
  test.device.fail(Failing::kWrites, EIO, 1, 1);
  read(600);
  EXPECT_TRUE(test.device.has_failed());
  EXPECT_EQ(session.counts().writebacks, 1u);
  EXPECT_EQ(cache->dirty_count(), 15u);
  test.device.fail(Failing::kWrites, EIO);
  write(600);
  std::byte byte;
  auto done = session.read(*file, 601 * kPage, std::span(&byte, 1));
  ASSERT_FALSE(done);
  EXPECT_EQ(std::string(done.error().message),
            "page cache: cannot write failing at offset 4096: input/output error");
  EXPECT_EQ(cache->dirty_count(), 16u);
  test.device.fail(Failing::kNothing, 0);
}

TEST_F(SessionFlushTest, WhatNeedsNoWaitDoesNotClean) {
  open(64, 0.25);
  serve();
  read(900);
  write(901);
  test.device.fail(Failing::kWrites, EIO);
  for (uint64_t page = 0; page < 30; ++page) write(2 * page);
  const std::string text = "x";
  expect_dirty(31);
  EXPECT_FALSE(session.try_write(*file, 900 * kPage, bytes_of(text)));
  EXPECT_TRUE(session.try_write(*file, 58 * kPage, bytes_of(text)));
  test.device.fail(Failing::kNothing, 0);
  EXPECT_TRUE(session.sync(*file));
  EXPECT_TRUE(session.try_write(*file, 900 * kPage, bytes_of(text)));
}

TEST_F(SessionFlushTest, AFileThatServersHaveLeftIsNotFlushed) {
  fill_set();
  serve();
  read(600);
  expect_flushed(5);
  EXPECT_FALSE(session.remove(*file));
  fill_set();
  servers->leave(*file);
  const uint64_t before = flushed();
  for (uint64_t page = 601; page < 603; ++page) read(page);
  expect_flushed(before);
  EXPECT_TRUE(session.remove(*file));
  // Another file, perhaps with the same number, is flushed.
  file = *cache->add(test.device);
  fill_set();
  read(600);
  expect_flushed(before + 5);
  // So is a file for which there have been requests since.
  servers->leave(*file);
  queue.open(*servers, 1);
  request.file = file;
  request.offset = 601 * kPage;
  request.bytes = {&request_byte, 1};
  Request* const one[] = {&request};
  queue.run(one);
  fill_set();
  read(602);
  for (int i = 0; i < 60000 && flushed() == before + 5; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_GT(flushed(), before + 5);
  queue.close();
}

TEST_F(SessionFlushTest, AFileIsLeftWhenItsFlushHasEnded) {
  storage::Device* const slow = *storage::make_latency_device(
      *storage::make_memory_device(kPages * kPage), {.mean_us = 20'000, .channel_count = 16, .sleeps = true});
  file = *cache->add(*slow);
  fill_set();
  serve();
  read(600);
  while (cache->dirty_count() != 7) std::this_thread::yield();  // until its writes are under way
  servers->leave(*file);
  EXPECT_EQ(flushed(), 5u);
  EXPECT_TRUE(session.remove(*file));
  close();
  slow->close();
}

// Pages whose frames nobody needs.
class AgeTest : public testing::Test {
 protected:
  void open(uint64_t dirty_ns_max, uint32_t nodes = 1) {
    cache = *PageCache::open(
        with_frames(64 * nodes, {.dirty_share_max = 1, .dirty_ns_max = dirty_ns_max, .nodes = nodes}));
    file = *cache->add(test.device);
    session.open(*cache);
    servers = *Servers::open(*cache, {.threads = 2});
  }
  void TearDown() override {
    servers->close();
    session.close();
    cache->close();
  }
  void write(uint64_t page) {
    ASSERT_TRUE(session.write(*file, page * kPage, bytes_of(std::string(100, 'w'))));
  }
  // Waits until `pages` have been flushed since the cache was opened.
  void wait_until_flushed(uint64_t pages) {
    for (int i = 0; i < 60000 && servers->flush_counts().pages < pages; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(servers->flush_counts().pages, pages);
    EXPECT_EQ(cache->dirty_count(), 0u);
  }

  TestDevice test{kPages * kPage};
  PageCache* cache = nullptr;
  File* file = nullptr;
  Servers* servers = nullptr;
  Session session;
};

constexpr uint64_t kMillisecond = 1'000'000;

TEST_F(AgeTest, PagesThatAreDirtyForLongAreWritten) {
  open(200 * kMillisecond, 2);
  for (uint64_t page = 0; page < 8; ++page) write(page);
  write(500);
  wait_until_flushed(9);
  EXPECT_LE(servers->flush_counts().writes, 5u) << "neighbours together";
  EXPECT_EQ(test.content(7 * kPage, kPage)[0], std::byte{'w'});
  EXPECT_EQ(test.content(500 * kPage, kPage)[0], std::byte{'w'});
  // And again.
  write(3);
  wait_until_flushed(10);
}

TEST_F(AgeTest, OthersStay) {
  open(2000 * kMillisecond);
  const uint64_t begin_ns = sys::monotonic_ns();
  while (sys::monotonic_ns() - begin_ns < 200 * kMillisecond) write(3);
  const uint64_t flushed = servers->flush_counts().pages;
  if (sys::monotonic_ns() - begin_ns < 900 * kMillisecond) EXPECT_EQ(flushed, 0u);
  wait_until_flushed(1);
  EXPECT_GE(sys::monotonic_ns() - begin_ns, 1000 * kMillisecond) << "half the time";
}

TEST_F(AgeTest, ForEverIfSaid) {
  open(0);
  write(3);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(cache->dirty_count(), 1u);
}

TEST_F(AgeTest, APageThatCannotBeWrittenIsTriedAgain) {
  open(20 * kMillisecond);
  test.device.fail(Failing::kWrites, EIO);
  write(3);
  for (int i = 0; i < 60000 && !test.device.has_failed(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(test.device.has_failed());
  test.device.fail(Failing::kNothing, 0);
  wait_until_flushed(1);
}

// A worker polls the queues of only 16.
TEST_F(AgeTest, AnyNumberOfFiles) {
  constexpr uint64_t kFiles = 20;
  open(20 * kMillisecond);
  std::vector<std::unique_ptr<TestDevice>> devices;
  std::vector<File*> files;
  for (uint64_t i = 0; i < kFiles; ++i) {
    devices.push_back(std::make_unique<TestDevice>(4 * kPage));
    files.push_back(*cache->add(devices[i]->device));
    ASSERT_TRUE(session.write(*files[i], kPage, bytes_of("w")));
  }
  wait_until_flushed(kFiles);
  RequestQueue queue;
  queue.open(*servers, 1);
  for (uint64_t i = 0; i < kFiles; ++i) {
    EXPECT_EQ(devices[i]->content(kPage, kPage)[0], std::byte{'w'});
    std::byte byte;
    Request request;
    request.file = files[i];
    request.bytes = {&byte, 1};
    Request* const one[] = {&request};
    queue.run(one);
    EXPECT_TRUE(request.result) << request.result.error().message;
  }
  queue.close();
  servers->close();
  session.close();
  cache->close();
  open(0);  // the devices are destroyed before it
}

TEST_F(AgeTest, AFileThatIsLeftIsLeftAlone) {
  open(20 * kMillisecond);
  servers->leave(*file);
  write(3);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(cache->dirty_count(), 1u);
  ASSERT_TRUE(session.remove(*file));
}

// The sweeper's hour need not be waited for.
TEST_F(AgeTest, ServersCloseWhileTheyWait) {
  open(3600 * 1000 * kMillisecond);
  write(3);
}

}  // namespace
}  // namespace pagecache
