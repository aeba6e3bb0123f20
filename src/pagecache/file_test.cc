// Files with checksums: where their bytes are, and which damage is detected.
#include "pagecache/file.h"

#include <random>

#include "base/checksum.h"
#include "pagecache/test_cache.h"

namespace pagecache {
namespace {

constexpr uint64_t kPage = 4096, kData = kPage - File::kChecksumBytes;

std::vector<std::byte> random_bytes(uint64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(count);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

TEST(FileTest, BytesGoOnInTheNextPage) {
  for (const unsigned page_shift : {12u, 14u, 16u}) {
    const uint64_t page_bytes = uint64_t{1} << page_shift, data_bytes = page_bytes - 8;
    TestDevice test(5 * page_bytes + 4096);
    const File file(test.device, 7, page_shift, {.checksums = true});
    EXPECT_EQ(file.bytes(), (page_shift == 12 ? 6 : 5) * data_bytes);
    EXPECT_EQ(file.page_data_bytes(), data_bytes);
    uint64_t page = 0, begin = 0;
    for (uint64_t offset = 0; offset < file.bytes(); ++offset) {
      const File::Position at = file.position_of(offset);
      ASSERT_EQ(at.page, page);
      ASSERT_EQ(at.begin, begin);
      if (++begin == data_bytes) ++page, begin = 0;
    }
  }
}

TEST(FileTest, WithoutChecksumsTheyAreTheDevices) {
  TestDevice test(5 * kPage);
  const File file(test.device, 7, 13, {});
  EXPECT_EQ(file.bytes(), 5 * kPage);
  EXPECT_EQ(file.position_of(10'000).page, 1u);
  EXPECT_EQ(file.position_of(10'000).begin, 10'000u - 8192u);
  EXPECT_EQ(file.data_bytes_of(2), kPage);
}

// The format is as documented.
TEST(FileTest, TheChecksumIsThePagesAndItsPlaces) {
  TestDevice test(10 * kPage);
  const File file(test.device, 7, 12, {.checksums = true});
  auto page = random_bytes(kPage, 1);
  file.seal(0, page.data());
  uint64_t checksum;
  memcpy(&checksum, page.data() + kData, sizeof checksum);
  EXPECT_EQ(checksum, base::checksum(page.data(), kData) ^ 0xe220a8397b1dcdaf);
  EXPECT_TRUE(file.is_intact(0, page.data()));
  EXPECT_FALSE(file.is_intact(1, page.data()));
}

TEST(FileTest, EachBitOfAPageCounts) {
  TestDevice test(10 * kPage);
  const File file(test.device, 7, 12, {.checksums = true});
  auto page = random_bytes(kPage, 2);
  file.seal(3, page.data());
  for (size_t bit = 0; bit < 8 * kPage; ++bit) {
    const auto mask = static_cast<std::byte>(1 << bit % 8);
    page[bit / 8] ^= mask;
    ASSERT_FALSE(file.is_intact(3, page.data())) << bit;
    page[bit / 8] ^= mask;
  }
  EXPECT_TRUE(file.is_intact(3, page.data()));
}

TEST(FileTest, APageOfZerosWasNeverWritten) {
  TestDevice test(10 * kPage);
  const File file(test.device, 7, 12, {.checksums = true});
  std::vector<std::byte> page(kPage);
  EXPECT_TRUE(file.is_intact(3, page.data()));
  for (const size_t at : {size_t{0}, size_t{1}, size_t{2000}, kData - 1, kData, kPage - 1}) {
    page[at] = std::byte{1};
    EXPECT_FALSE(file.is_intact(3, page.data())) << at;
    page[at] = std::byte{0};
  }
  // All bytes equal but not zero, and no checksum.
  memset(page.data(), 7, kData);
  EXPECT_FALSE(file.is_intact(3, page.data()));
}

class CheckedFileTest : public testing::Test {
 protected:
  void SetUp() override { open(); }
  void TearDown() override { close(); }
  void open() {
    cache = *PageCache::open(with_frames(20));
    file = *cache->add(test.device, {.checksums = true});
    session.open(*cache);
  }
  void close() {
    session.close();
    cache->close();
  }
  // Syncs, and opens the device in a new cache.
  void open_again() {
    ASSERT_TRUE(session.sync(*file));
    close();
    open();
  }
  // Changes bytes on the device, past the cache.
  void change(uint64_t offset, const std::function<void(std::span<std::byte>)>& act) {
    storage::BufferPool pool;
    const storage::Buffer buffer(pool, kPage);
    storage::Queue* const queue = *test.device.open_queue(1);
    storage::PieceIo read(storage::Operation::kRead, offset / kPage * kPage, buffer.bytes().data(), kPage);
    queue->run(read);
    act(buffer.bytes().subspan(offset % kPage));
    storage::PieceIo write(storage::Operation::kWrite, offset / kPage * kPage, buffer.bytes().data(), kPage);
    queue->run(write);
    test.device.close_queue(queue);
  }

  static constexpr uint64_t kPages = 60;
  TestDevice test{kPages * kPage};
  PageCache* cache = nullptr;
  File* file = nullptr;
  Session session;
};

TEST_F(CheckedFileTest, WhatWasWrittenIsRead) {
  auto model = random_bytes(kPages * kData, 1);
  ASSERT_EQ(file->bytes(), model.size());
  ASSERT_TRUE(session.write(*file, 0, model));
  std::mt19937_64 random(2);
  for (int round = 0; round < 3000; ++round) {
    const uint64_t offset = random() % model.size();
    const uint64_t bytes = std::min(random() % (round % 10 == 0 ? 40'000 : 300), model.size() - offset);
    if (round % 2 == 0) {
      const auto changed = random_bytes(bytes, random());
      std::ranges::copy(changed, model.begin() + static_cast<ptrdiff_t>(offset));
      ASSERT_TRUE(session.write(*file, offset, changed));
    } else {
      std::vector<std::byte> found(bytes);
      ASSERT_TRUE(session.read(*file, offset, found));
      ASSERT_TRUE(std::ranges::equal(found, std::span(model).subspan(offset, bytes)));
    }
    if (round % 1000 == 999) open_again();
  }
  std::vector<std::byte> found(model.size());
  ASSERT_TRUE(session.read(*file, 0, found));
  EXPECT_EQ(found, model);
  EXPECT_EQ(session.counts().damaged, 0u);
  // Each page also has its checksum on the device.
  ASSERT_TRUE(session.sync(*file));
  const auto content = test.content();
  for (uint64_t page = 0; page < kPages; ++page) {
    EXPECT_TRUE(file->is_intact(page, content.data() + page * kPage));
    EXPECT_EQ(0, memcmp(content.data() + page * kPage, model.data() + page * kData, kData));
  }
}

TEST_F(CheckedFileTest, RangesEndWithTheFile) {
  std::vector<std::byte> bytes(100);
  EXPECT_TRUE(session.write(*file, file->bytes() - 100, bytes));
  EXPECT_EQ(session.write(*file, file->bytes() - 99, bytes).error().number, EINVAL);
  EXPECT_EQ(session.read(*file, file->bytes(), bytes).error().number, EINVAL);
  EXPECT_FALSE(session.try_read(*file, file->bytes() - 1, bytes));
}

TEST_F(CheckedFileTest, DamageIsTold) {
  const auto model = random_bytes(kPages * kData, 1);
  ASSERT_TRUE(session.write(*file, 0, model));
  open_again();
  change(5 * kPage + 100, [](std::span<std::byte> bytes) { bytes[0] ^= std::byte{4}; });
  std::vector<std::byte> one(1), all(model.size());
  for (int i = 0; i < 2; ++i) {
    const auto read = session.read(*file, 5 * kData, one);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().number, EBADMSG);
    EXPECT_STREQ(
        read.error().message,
        "page cache: page 5 of failing, at offset 20480, has not its checksum: it is damaged, or the "
        "file was not made with checksums of pages of 4096 bytes; write the whole page anew, or "
        "restore the file");
  }
  EXPECT_EQ(session.view(*file, 5 * kData, 10).error().number, EBADMSG);
  EXPECT_EQ(session.write(*file, 5 * kData + 1, one).error().number, EBADMSG);
  EXPECT_EQ(session.read(*file, 0, all).error().number, EBADMSG);
  EXPECT_EQ(session.counts().damaged, 5u);
  // Other pages can be read, and so can this one after it has been written.
  EXPECT_TRUE(session.read(*file, 6 * kData, one));
  ASSERT_TRUE(session.write(*file, 5 * kData, std::span(model).subspan(5 * kData, kData)));
  open_again();
  ASSERT_TRUE(session.read(*file, 0, all));
  EXPECT_EQ(all, model);
}

TEST_F(CheckedFileTest, PagesThatHaveChangedPlacesAreDamaged) {
  const auto model = random_bytes(kPages * kData, 1);
  ASSERT_TRUE(session.write(*file, 0, model));
  open_again();
  const auto other = test.content(8 * kPage, kPage);
  change(9 * kPage, [&](std::span<std::byte> bytes) { std::ranges::copy(other, bytes.begin()); });
  std::vector<std::byte> one(1);
  EXPECT_TRUE(session.read(*file, 8 * kData, one));
  EXPECT_EQ(session.read(*file, 9 * kData, one).error().number, EBADMSG);
}

TEST_F(CheckedFileTest, AFileWithoutChecksumsIsRefused) {
  change(0, [](std::span<std::byte> bytes) { bytes[0] = std::byte{1}; });
  std::vector<std::byte> one(1);
  EXPECT_EQ(session.read(*file, 0, one).error().number, EBADMSG);
  EXPECT_TRUE(session.read(*file, kData, one)) << "nobody has written there";
}

TEST_F(CheckedFileTest, AFailedReadIsNoDamage) {
  test.device.fail(Failing::kReads, EIO);
  std::vector<std::byte> one(1);
  EXPECT_EQ(session.read(*file, 0, one).error().number, EIO);
  EXPECT_EQ(session.counts().damaged, 0u);
  EXPECT_EQ(session.counts().reads, 0u);
}

TEST(CheckedFileSizeTest, LessThanAPageHoldsNothing) {
  TestDevice test(4096);
  PageCache* const cache = *PageCache::open({.memory_bytes = 1 << 20, .page_bytes = 8192});
  const auto added = cache->add(test.device, {.checksums = true});
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().number, EINVAL);
  EXPECT_STREQ(added.error().message,
               "page cache: failing has 4096 bytes, less than a page with a checksum, 8192");
  EXPECT_TRUE(cache->add(test.device));
  cache->close();
}

}  // namespace
}  // namespace pagecache
