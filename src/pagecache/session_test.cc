// Sessions, one at a time: they read what was written; what they do to the device, and how they report its failures.
#include "pagecache/session.h"

#include <unistd.h>

#include <chrono>
#include <random>
#include <thread>

#include "base/statistics.h"
#include "pagecache/test_cache.h"
#include "storage/opening/open.h"
#include "storage/testing/test_slow_device.h"
#include "task/test_tasks.h"

namespace pagecache {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kFileBytes = 200 * kPage;

class SessionTest : public testing::Test {
 protected:
  void SetUp() override { open(32); }
  void TearDown() override { close(); }
  // Opens a cache with `frames`, whose calls do not wait long.
  void open(uint64_t frames) {
    close();
    cache = *PageCache::open(with_frames(frames, {.policy = policy(), .wait_ns_max = 20'000'000}));
    file = *cache->add(test.device);
    session.open(*cache);
  }
  void close() {
    session.close();
    if (cache != nullptr) cache->close();
    cache = nullptr;
  }
  virtual cache::SetPolicy policy() { return cache::SetPolicy::kNrlfu; }

  std::string read(uint64_t offset, size_t bytes) {
    std::string text(bytes, 0);
    auto done = session.read(*file, offset, std::as_writable_bytes(std::span(text)));
    return done ? text : done.error().message;
  }
  std::string write(uint64_t offset, std::string_view text) {
    auto done = session.write(*file, offset, bytes_of(text));
    return done ? "" : done.error().message;
  }
  std::string sync() {
    auto done = session.sync(*file);
    return done ? "" : done.error().message;
  }
  std::string on_device(uint64_t offset, size_t bytes) {
    const std::vector<std::byte> all = test.content();
    return std::string(reinterpret_cast<const char*>(all.data()) + offset, bytes);
  }

  TestDevice test{kFileBytes};
  PageCache* cache = nullptr;
  File* file = nullptr;
  Session session;
};

TEST_F(SessionTest, ReadsWhatWasWritten) {
  EXPECT_EQ(write(10'000, "hello"), "");
  EXPECT_EQ(read(10'000, 5), "hello");
  EXPECT_EQ(read(9'999, 7), std::string("\0hello\0", 7));
  EXPECT_EQ(on_device(10'000, 5), std::string(5, 0));
  EXPECT_EQ(sync(), "");
  EXPECT_EQ(on_device(10'000, 5), "hello");
}

TEST_F(SessionTest, ReadsAPageOnce) {
  read(3 * kPage, 128);
  read(3 * kPage + 500, 128);
  EXPECT_EQ(session.counts().misses, 1u);
  EXPECT_EQ(session.counts().hits, 1u);
  EXPECT_EQ(session.counts().reads, 1u);
}

TEST_F(SessionTest, WhatIsWrittenAsAWholeIsNotRead) {
  EXPECT_EQ(write(kPage, std::string(2 * kPage, 'w')), "");
  EXPECT_EQ(session.counts().reads, 0u);
  EXPECT_EQ(write(5 * kPage + 1, std::string(kPage - 1, 'w')), "");
  EXPECT_EQ(session.counts().reads, 1u);
  EXPECT_EQ(read(2 * kPage, kPage), std::string(kPage, 'w'));
}

TEST_F(SessionTest, PagesThatFollowEachOtherAreWrittenTogether) {
  EXPECT_EQ(write(kPage, std::string(20 * kPage, 'w')), "");
  const uint64_t before = base::statistics.storage_writes.get();
  EXPECT_EQ(sync(), "");
  EXPECT_EQ(base::statistics.storage_writes.get() - before, 1u);
  EXPECT_EQ(session.counts().writebacks, 20u);
  EXPECT_EQ(on_device(kPage, 20 * kPage), std::string(20 * kPage, 'w'));
  // There is nothing left to write.
  EXPECT_EQ(sync(), "");
  EXPECT_EQ(session.counts().writebacks, 20u);
}

TEST_F(SessionTest, RangesEndWithTheFile) {
  EXPECT_EQ(read(kFileBytes - 3, 3), std::string(3, 0));
  EXPECT_EQ(read(kFileBytes, 0), "");
  const std::string refused = "page cache: cannot read 4 bytes at offset 819197: failing has 819200 bytes";
  EXPECT_EQ(read(kFileBytes - 3, 4), refused);
  EXPECT_EQ(write(kFileBytes, "x"),
            "page cache: cannot write 1 bytes at offset 819200: failing has 819200 bytes");
  EXPECT_FALSE(session.view(*file, ~uint64_t{0}, 1));
  EXPECT_FALSE(session.update(*file, ~uint64_t{0} - 1, 5, [](std::span<std::byte>, uint64_t) { FAIL(); }));
}

TEST_F(SessionTest, TheLastPageMayBeShorter) {
  TestDevice odd(5 * kPage);
  PageCache* const large = *PageCache::open(with_frames(16, {.page_bytes = 2 * kPage}));
  File* const odd_file = *large->add(odd.device);
  Session own;
  own.open(*large);
  const std::string all(5 * kPage, 'o');
  ASSERT_TRUE(own.write(*odd_file, 0, bytes_of(all)));
  EXPECT_EQ(own.counts().reads, 0u);
  ASSERT_TRUE(own.remove(*odd_file));
  EXPECT_TRUE(std::ranges::equal(odd.content(), bytes_of(all)));
  File* const again = *large->add(odd.device);
  std::vector<std::byte> got(5 * kPage);
  ASSERT_TRUE(own.read(*again, 0, got));
  EXPECT_TRUE(std::ranges::equal(got, bytes_of(all)));
  EXPECT_FALSE(own.read(*again, 5 * kPage, std::span(got).first(1)));
  own.close();
  large->close();
}

TEST_F(SessionTest, UpdatesSeeWhatIsThere) {
  EXPECT_EQ(write(2 * kPage - 4, "abcdefgh"), "");
  std::vector<uint64_t> offsets;
  const auto add_one = [&](std::span<std::byte> bytes, uint64_t offset) {
    offsets.push_back(offset);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(static_cast<int>(byte) + 1);
  };
  ASSERT_TRUE(session.update(*file, 2 * kPage - 3, 6, add_one));
  EXPECT_EQ(offsets, (std::vector<uint64_t>{2 * kPage - 3, 2 * kPage}));
  EXPECT_EQ(read(2 * kPage - 4, 8), "acdefghh");
}

TEST_F(SessionTest, AReadThatFailsLeavesNothing) {
  test.device.fail(Failing::kReads, EIO, 1, 1);
  EXPECT_EQ(read(kPage, 5), "page cache: cannot read failing at offset 4096: input/output error");
  EXPECT_EQ(read(kPage, 5), std::string(5, 0));
  // After a read of several pages has failed, they are read one by one: the first of them fails alone, too.
  test.device.fail(Failing::kReads, EIO, 1, 2);
  EXPECT_EQ(read(10 * kPage, 5 * kPage),
            "page cache: cannot read failing at offset 40960: input/output error");
  EXPECT_EQ(read(10 * kPage, 5 * kPage), std::string(5 * kPage, 0));
  test.device.fail(Failing::kReads, EIO, 1, 1);
  EXPECT_EQ(read(20 * kPage, 5 * kPage), std::string(5 * kPage, 0));
  EXPECT_TRUE(test.device.has_failed());
  // If a page cannot be read, a part of it cannot be written either.
  test.device.fail(Failing::kReads, EIO, 1, 1);
  EXPECT_EQ(write(50 * kPage, "x"), "page cache: cannot read failing at offset 204800: input/output error");
  EXPECT_EQ(write(50 * kPage, "x"), "");
  EXPECT_EQ(read(50 * kPage, 2), std::string("x\0", 2));
}

TEST_F(SessionTest, PiecesOfAFileAreReadInOneCall) {
  std::string all(100 * kPage, 0);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<char>('a' + i / 1000 % 26);
  ASSERT_EQ(write(0, all), "");
  ASSERT_EQ(sync(), "");
  open(32);
  ASSERT_EQ(read(7 * kPage, 1), all.substr(7 * kPage, 1));  // some pages are in memory
  // More pages than there are frames; pieces across pages, two in one page, and an empty one.
  std::vector<std::pair<uint64_t, size_t>> ranges;
  for (uint64_t i = 0; i < 40; ++i) ranges.emplace_back((i * 37 % 90) * kPage + i, 1 + i * 300);
  ranges.insert(ranges.end(), {{5 * kPage, 10}, {5 * kPage + 5, 10}, {0, 0}, {7 * kPage, 2 * kPage}});
  std::vector<std::string> found;
  for (const auto& [offset, bytes] : ranges) found.emplace_back(bytes, 0);
  std::vector<Piece> pieces;
  for (size_t i = 0; i < ranges.size(); ++i)
    pieces.push_back({.offset = ranges[i].first, .to = std::as_writable_bytes(std::span(found[i]))});
  ASSERT_TRUE(session.read(*file, pieces));
  for (size_t i = 0; i < ranges.size(); ++i)
    EXPECT_EQ(found[i], all.substr(ranges[i].first, ranges[i].second)) << i;

  // Neighbours are one Io, so there is no second one to fail.
  open(32);
  test.device.fail(Failing::kReads, EIO, 2, 1);
  EXPECT_EQ(read(0, 20 * kPage), all.substr(0, 20 * kPage));
  EXPECT_FALSE(test.device.has_failed());

  // If one piece fails, the error is reported, whatever happens to the others.
  open(32);
  std::string first(10, 0), second(10, 0);
  pieces = {{.offset = 40 * kPage, .to = std::as_writable_bytes(std::span(first))},
            {.offset = 42 * kPage, .to = std::as_writable_bytes(std::span(second))}};
  test.device.fail(Failing::kReads, EIO, 2, 1);
  auto failed = session.read(*file, pieces);
  ASSERT_FALSE(failed);
  EXPECT_STREQ(failed.error().message,
               "page cache: cannot read failing at offset 172032: input/output error");
  ASSERT_TRUE(session.read(*file, pieces));
  EXPECT_EQ(second, all.substr(42 * kPage, 10));

  // Nothing is read if one of them is not within the file.
  pieces = {{.offset = 0, .to = pieces[0].to}, {.offset = kFileBytes, .to = pieces[1].to}};
  EXPECT_FALSE(session.read(*file, pieces));
}

TEST_F(SessionTest, WhatCannotBeWrittenStays) {
  EXPECT_EQ(write(kPage, std::string(3 * kPage, 'w')), "");
  test.device.fail(Failing::kWrites, ENOSPC);
  const std::string full = "page cache: cannot write failing at offset 4096: no space left on device";
  EXPECT_EQ(sync(), full);
  EXPECT_EQ(sync(), full);
  EXPECT_EQ(read(kPage, 3 * kPage), std::string(3 * kPage, 'w'));
  EXPECT_EQ(on_device(kPage, 1), std::string(1, 0));
  test.device.fail(Failing::kNothing, 0);
  EXPECT_EQ(sync(), "");
  EXPECT_EQ(on_device(kPage, 3 * kPage), std::string(3 * kPage, 'w'));
}

TEST_F(SessionTest, WhoNeedsRoomIsToldThatThereIsNone) {
  for (uint64_t page = 0; page < 150 && session.counts().writebacks == 0; ++page)
    EXPECT_EQ(write(page * kPage, "w"), "");
  ASSERT_GT(session.counts().writebacks, 0u);
  test.device.fail(Failing::kWrites, EIO);
  std::vector<std::string> said;
  for (uint64_t page = 150; page < 200; ++page)
    if (std::string error = write(page * kPage, "v"); !error.empty()) said.push_back(error);
  ASSERT_FALSE(said.empty());
  EXPECT_NE(said[0].find("cannot write failing at offset"), std::string::npos) << said[0];
  test.device.fail(Failing::kNothing, 0);
  EXPECT_EQ(sync(), "");
}

TEST_F(SessionTest, AFlushThatFailedIsNotForgotten) {
  EXPECT_EQ(write(0, "w"), "");
  test.device.fail(Failing::kFlushes, EIO, 1, 1);
  EXPECT_EQ(sync(), "page cache: cannot flush failing: input/output error");
  EXPECT_EQ(
      sync(),
      "page cache: a flush of failing has failed before: what it has kept of what was written is not known");
  EXPECT_FALSE(session.remove(*file));
  EXPECT_EQ(read(0, 1), "w");
}

// The failed flush of the first session may have lost what the second has written, even if the second's own flush succeeds.
TEST(SessionSyncTest, WhoSyncsDuringAFlushThatFailsIsTold) {
  storage::SlowDevice device;
  PageCache* const cache = *PageCache::open(with_frames(20));
  File* const file = *cache->add(device);
  const auto write_and_sync = [&](uint64_t page) {
    Session session;
    session.open(*cache);
    EXPECT_TRUE(session.write(*file, page * kPage, std::vector<std::byte>(kPage)));
    EXPECT_FALSE(session.sync(*file));
  };
  std::thread first([&] { write_and_sync(0); });
  device.wait_until_begun(1);
  std::thread late([&] { write_and_sync(1); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // until it waits, or almost
  device.allow(1, EIO);
  first.join();
  device.allow(100);
  late.join();
  cache->close();
  device.close();
}

TEST_F(SessionTest, AViewKeepsItsPage) {
  open(16);
  EXPECT_EQ(write(5 * kPage + 7, "hello"), "");
  auto view = session.view(*file, 5 * kPage + 7, 5);
  ASSERT_TRUE(view);
  for (uint64_t page = 6; page < 100; ++page) read(page * kPage, 1);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(view->bytes().data()), 5), "hello");
  // Others may read the page, and nobody may write to it.
  EXPECT_EQ(read(5 * kPage + 7, 5), "hello");
  EXPECT_EQ(
      write(5 * kPage, "x"),
      "page cache: page 5 of failing has to wait for pages that others, or views, hold for more than 20 ms");
  EXPECT_EQ(read(5 * kPage + 7, 5), "hello");
  view->reset();
  EXPECT_EQ(write(5 * kPage, "x"), "");
}

TEST_F(SessionTest, ASetThatIsAllHeldSaysSo) {
  open(16);
  std::vector<View> views;
  for (uint64_t page = 0; page < 16; ++page) views.push_back(*session.view(*file, page * kPage, 1));
  EXPECT_EQ(
      read(16 * kPage, 1),
      "page cache: page 16 of failing has to wait for pages that others, or views, hold for more than 20 ms");
  EXPECT_EQ(read(3 * kPage, 1), std::string(1, 0));
  EXPECT_EQ(read(10 * kPage, 8 * kPage).substr(0, 19), "page cache: page 16");
  views.pop_back();
  EXPECT_EQ(read(16 * kPage, 1), std::string(1, 0));
}

TEST_F(SessionTest, FilesDoNotMix) {
  TestDevice other(kFileBytes);
  File* const second = *cache->add(other.device);
  EXPECT_EQ(write(kPage, "first"), "");
  ASSERT_TRUE(session.write(*second, kPage, bytes_of("other")));
  EXPECT_EQ(read(kPage, 5), "first");
  // The second file's pages leave with it; those of the first stay.
  ASSERT_TRUE(session.remove(*second));
  const uint64_t misses = session.counts().misses;
  EXPECT_EQ(read(kPage, 5), "first");
  EXPECT_EQ(session.counts().misses, misses);
  File* const again = *cache->add(other.device);
  std::string text(5, 0);
  ASSERT_TRUE(session.read(*again, kPage, std::as_writable_bytes(std::span(text))));
  EXPECT_EQ(text, "other");
  EXPECT_EQ(session.counts().misses, misses + 1);
  close();
}

TEST_F(SessionTest, AFileThatHasBecomeShorterIsTold) {
  const std::string path = testing::TempDir() + "/shorter" + std::to_string(getpid());
  FILE* const made = fopen(path.c_str(), "w");
  ASSERT_EQ(ftruncate(fileno(made), 10 * kPage), 0);
  storage::Device* const device = *storage::open_device("file:" + path, {.store = true});
  File* const short_file = *cache->add(*device);
  ASSERT_EQ(ftruncate(fileno(made), 2 * kPage), 0);
  std::string text(5, 'x');
  auto done = session.read(*short_file, 3 * kPage, std::as_writable_bytes(std::span(text)));
  ASSERT_FALSE(done);
  EXPECT_NE(std::string(done.error().message).find("it ends at"), std::string::npos) << done.error().message;
  session.close();
  device->close();
  fclose(made);
  unlink(path.c_str());
}

TEST_F(SessionTest, AFileIsRemovedWhenAllHaveLeftIt) {
  Session other;
  other.open(*cache);
  std::string text(5, 0);
  ASSERT_TRUE(other.read(*file, 0, std::as_writable_bytes(std::span(text))));
  EXPECT_EQ(write(0, "hello"), "");
  auto removed = session.remove(*file);
  ASSERT_FALSE(removed);
  EXPECT_EQ(std::string(removed.error().message), "page cache: failing is in use by 1 other sessions");
  other.leave(*file);
  other.leave(*file);
  EXPECT_TRUE(session.remove(*file));
  EXPECT_EQ(on_device(0, 5), "hello");
}

class PolicyTest : public SessionTest, public testing::WithParamInterface<cache::SetPolicy> {
 protected:
  cache::SetPolicy policy() override { return GetParam(); }
};

// Ranges of all kinds, in a cache of a few pages, compared with a copy of the bytes in memory.
TEST_P(PolicyTest, IsAsAFileInMemory) {
  for (const uint64_t frames : {16, 21, 50}) {
    SCOPED_TRACE(frames);
    open(frames);
    std::mt19937_64 random(frames);
    std::vector<std::byte> model = test.content();
    for (int i = 0; i < 4000; ++i) {
      const uint64_t most = random() % 8 == 0 ? 90 * kPage : random() % 3 == 0 ? 2 * kPage : 300;
      const uint64_t offset = random() % kFileBytes, bytes = std::min(random() % most, kFileBytes - offset);
      const std::span of_model = std::span(model).subspan(offset, bytes);
      switch (random() % 5) {
        case 0:
        case 1: {
          std::string text(bytes, static_cast<char>(random()));
          ASSERT_EQ(write(offset, text), "");
          memcpy(of_model.data(), text.data(), bytes);
          break;
        }
        case 2: {
          const auto add = [&](std::span<std::byte> piece, uint64_t) {
            for (std::byte& byte : piece) byte ^= std::byte{0x5a};
          };
          ASSERT_TRUE(session.update(*file, offset, bytes, add));
          add(of_model, 0);
          break;
        }
        default: {
          std::vector<std::byte> got(bytes);
          ASSERT_TRUE(session.read(*file, offset, got));
          ASSERT_TRUE(std::ranges::equal(got, of_model)) << "step " << i;
        }
      }
      if (random() % 200 == 0) {
        ASSERT_EQ(sync(), "");
        ASSERT_EQ(test.content(), model);
      }
    }
    ASSERT_TRUE(session.remove(*file));
    EXPECT_EQ(test.content(), model);
    EXPECT_GT(session.counts().evictions, 1000u);
    file = *cache->add(test.device);
  }
}

INSTANTIATE_TEST_SUITE_P(All, PolicyTest, testing::ValuesIn(cache::kSetPolicies),
                         [](const auto& parameter) { return cache::name_of(parameter.param); });

// --- tasks ---

class SessionTasksTest : public task::TasksTest {
 protected:
  SessionTasksTest() : TasksTest(1) {}
};

TEST_F(SessionTasksTest, TasksShareASession) {
  TestDevice test(kFileBytes);
  run([&] {
    PageCache* const cache = *PageCache::open(with_frames(20));
    File* const file = *cache->add(test.device);
    Session session;
    session.open(*cache);
    ASSERT_NO_FATAL_FAILURE(count_by_tasks(session, *file, 24, 200, [] {}));
    EXPECT_GT(session.counts().waits, 0u);
    ASSERT_TRUE(session.remove(*file));
    session.close();
    cache->close();
  });
}

}  // namespace
}  // namespace pagecache
