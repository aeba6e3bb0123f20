#include "sys/write_watch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>

#include "base/ids.h"
#include "sys/memory.h"

namespace sys {
namespace {

constexpr uint64_t kOs = base::kOsPageBytes;
constexpr uint64_t kPages = WriteWatch::kMaxPages;

// By system calls of the test's own: an open() that fails by mistake must not look like a kernel that does not know writes.
bool kernel_knows_writes() {
  constexpr uint64_t kOfSharedMemory = uint64_t{1} << 12, kAsynchronous = uint64_t{1} << 15;
  const auto faults = static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY));
  if (faults < 0) return false;
  uffdio_api api = {};
  api.api = UFFD_API;
  const bool answers = ::ioctl(faults, UFFDIO_API, &api) == 0;
  ::close(faults);
  return answers && (api.features & kOfSharedMemory) != 0 && (api.features & kAsynchronous) != 0;
}

TEST(WriteWatch, OpensWhereTheKernelKnowsWrites) {
  if (!kernel_knows_writes()) GTEST_SKIP() << "a kernel that does not know which pages were written";
  WriteWatch watch;
  const auto opened = watch.open();
  EXPECT_TRUE(opened.has_value()) << opened.error().message;
  watch.close();
}

// Shared memory mapped twice, of which the first mapping is watched.
class WriteWatchTest : public testing::Test {
 protected:
  void SetUp() override {
    if (auto opened = watch.open(); !opened) GTEST_SKIP() << opened.error().message;
    auto file = create_memory_file(kPages * kOs, "watched");
    ASSERT_TRUE(file);
    memory = *map_shared(*file, 0, kPages * kOs, Access::kReadWrite);
    other = *map_shared(*file, 0, kPages * kOs, Access::kReadWrite);
    ASSERT_TRUE(watch.add(memory, kPages * kOs));
    memset(memory, 1, kPages * kOs);
  }
  void TearDown() override { watch.close(); }

  // 'u' for each untouched page, '.' for the others.
  std::string untouched(uint64_t first, uint64_t count) {
    uint64_t bits[kPages / 64];
    memset(bits, 0xff, sizeof bits);
    watch.find_untouched(memory + first * kOs, count, bits);
    std::string text;
    for (uint64_t i = 0; i < count; ++i) text += (bits[i / 64] >> (i % 64) & 1) != 0 ? 'u' : '.';
    return text;
  }

  WriteWatch watch;
  char* memory = nullptr;
  char* other = nullptr;
};

TEST_F(WriteWatchTest, APageIsUntouchedFromProtectionToItsFirstStore) {
  EXPECT_EQ(untouched(0, 4), "....");
  ASSERT_TRUE(watch.protect(memory + kOs, 3 * kOs));
  EXPECT_EQ(untouched(0, 5), ".uuu.");
  EXPECT_EQ(memory[2 * kOs], 1);
  EXPECT_EQ(untouched(0, 5), ".uuu.") << "reading is no store";
  memory[3 * kOs - 1] = 7;
  EXPECT_EQ(untouched(0, 5), ".u.u.");
  EXPECT_EQ(other[3 * kOs - 1], 7);
  ASSERT_TRUE(watch.protect(memory + 2 * kOs, kOs));
  EXPECT_EQ(untouched(0, 5), ".uuu.");
}

TEST_F(WriteWatchTest, AStoreOfTheSameValueIsAStore) {
  ASSERT_TRUE(watch.protect(memory, 2 * kOs));
  static_cast<volatile char*>(memory)[0] = 1;
  EXPECT_EQ(untouched(0, 2), ".u");
}

TEST_F(WriteWatchTest, StoresByTheOtherMappingLeaveNoTrace) {
  ASSERT_TRUE(watch.protect(memory, 2 * kOs));
  other[0] = 7;
  EXPECT_EQ(untouched(0, 2), "uu");
  EXPECT_EQ(memory[0], 7);
}

TEST_F(WriteWatchTest, TheKernelsStoresAreSeen) {
  ASSERT_TRUE(watch.protect(memory, 4 * kOs));
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
  ASSERT_EQ(::read(ends[0], memory + kOs, 1), 1);
  close(ends[0]);
  close(ends[1]);
  EXPECT_EQ(untouched(0, 4), "u.uu");
}

TEST_F(WriteWatchTest, StoresOfOtherThreadsAreSeen) {
  ASSERT_TRUE(watch.protect(memory, 64 * kOs));
  std::thread storing([&] {
    for (uint64_t page = 0; page < 64; page += 2) memory[page * kOs] = 9;
  });
  storing.join();
  std::string expected;
  for (int i = 0; i < 32; ++i) expected += ".u";
  EXPECT_EQ(untouched(0, 64), expected);
}

// There are more regions than one system call returns.
TEST_F(WriteWatchTest, EveryPageOfALongRangeIsToldApart) {
  ASSERT_TRUE(watch.protect(memory, kPages * kOs));
  std::string expected(kPages, 'u');
  for (uint64_t page = 0; page < kPages; page += 3) {
    memory[page * kOs + page] = 9;
    expected[page] = '.';
  }
  EXPECT_EQ(untouched(0, kPages), expected);
  EXPECT_EQ(untouched(64, 70), expected.substr(64, 70));
}

TEST_F(WriteWatchTest, APageThatIsNotInMemoryIsNotUntouched) {
  ASSERT_TRUE(watch.protect(memory, 4 * kOs));
  ASSERT_EQ(madvise(memory + kOs, kOs, MADV_REMOVE), 0);
  EXPECT_EQ(untouched(0, 4), "u.uu");
}

TEST(WriteWatch, MemoryThatWasNotAddedCannotBeProtected) {
  WriteWatch watch;
  if (auto opened = watch.open(); !opened) GTEST_SKIP() << opened.error().message;
  auto memory = map_anonymous(kOs, "a page");
  ASSERT_TRUE(memory);
  (*memory)[0] = 1;
  EXPECT_FALSE(watch.protect(*memory, kOs));
  uint64_t bits = ~uint64_t{0};
  watch.find_untouched(*memory, 1, &bits);
  EXPECT_EQ(bits, 0u);
  unmap(*memory, kOs);
  watch.close();
}

}  // namespace
}  // namespace sys
