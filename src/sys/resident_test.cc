#include "sys/resident.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/ids.h"

namespace sys {
namespace {

using base::kOsPageBytes;

constexpr uint64_t kPages = 4096;
constexpr uint64_t kBytes = kPages * kOsPageBytes;

// A mapped file that has no name any more.
class ResidentFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = "resident-test-XXXXXX";
    file = mkstemp(path.data());
    ASSERT_GE(file, 0);
    unlink(path.c_str());
    struct statfs facts;
    ASSERT_EQ(fstatfs(file, &facts), 0);
    if (facts.f_type == TMPFS_MAGIC) GTEST_SKIP() << "the working folder lies in memory";
    ASSERT_EQ(ftruncate(file, kBytes), 0);
    map = static_cast<char*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    ASSERT_NE(map, MAP_FAILED);
    ASSERT_TRUE(resident.open());
  }
  void TearDown() override {
    resident.close();
    if (map != nullptr) munmap(map, kBytes);
    if (file >= 0) close(file);
  }
  uint64_t at(uint64_t page) const { return reinterpret_cast<uint64_t>(map) + page * kOsPageBytes; }

  ResidentFiles resident;
  int file = -1;
  char* map = nullptr;
};

TEST_F(ResidentFilesTest, IsFoundAndTakenOutAndUnchanged) {
  constexpr uint64_t kUnknown = 1;
  const uint64_t before = resident.all_bytes();
  EXPECT_GT(before, 0u);  // this program
  if (resident.count_bytes(at(0), at(kPages), kUnknown) == kUnknown) GTEST_SKIP() << "Linux before 6.7";
  EXPECT_EQ(resident.count_bytes(at(0), at(kPages), kUnknown), 0u);
  EXPECT_EQ(resident.find(at(0), at(kPages)), at(kPages));
  for (uint64_t i = 0; i < kPages; ++i) map[i * kOsPageBytes] = static_cast<char>(i % 251);
  EXPECT_EQ(resident.count_bytes(at(0), at(kPages), kUnknown), kBytes);
  EXPECT_EQ(resident.count_bytes(at(5), at(12), kUnknown), 7 * kOsPageBytes);
  EXPECT_EQ(resident.find(at(77), at(kPages)), at(77));
  EXPECT_GE(resident.all_bytes(), before + kBytes / 2);  // counted in batches
  if (resident.knows_shared()) {
    resident.take_out(at(3), at(kPages - 3));
    EXPECT_EQ(resident.count_bytes(at(0), at(kPages), kUnknown), 6 * kOsPageBytes);
    EXPECT_LT(resident.all_bytes(), before + kBytes / 4);
    for (uint64_t i = 0; i < kPages; ++i) ASSERT_EQ(map[i * kOsPageBytes], static_cast<char>(i % 251));
  }
  ASSERT_EQ(msync(map, kBytes, MS_SYNC), 0);
  ResidentFiles::advise_out(at(0), at(kPages));
  EXPECT_LT(resident.count_bytes(at(0), at(kPages), kUnknown), kBytes / 8);
  for (uint64_t i = 0; i < kPages; ++i) ASSERT_EQ(map[i * kOsPageBytes], static_cast<char>(i % 251));
}

TEST_F(ResidentFilesTest, AFaultBringsOnePageIfSoWished) {
  const auto bytes_after_one_load = [&] {
    resident.take_out(at(0), at(kPages));
    static_cast<void>(*static_cast<volatile char*>(map + 1000 * kOsPageBytes));
    return resident.count_bytes(at(0), at(kPages), 0);
  };
  for (uint64_t i = 0; i < kPages; ++i) map[i * kOsPageBytes] = 1;
  if (!resident.knows_shared() || bytes_after_one_load() <= kOsPageBytes) GTEST_SKIP() << "no such kernel";
  resident.bring_single_pages(at(0), at(kPages));
  if (bytes_after_one_load() > 16 * kOsPageBytes) GTEST_SKIP() << "userfaultfd is refused";
  EXPECT_EQ(bytes_after_one_load(), kOsPageBytes);
}

TEST_F(ResidentFilesTest, TakingOutHarmsNoOtherMemory) {
  constexpr uint64_t kFirst = 100,
                     kSecond = 200;  // private memory from the first to the second, nothing at the second
  const uint64_t private_bytes = (kSecond - kFirst) * kOsPageBytes;
  char* memory = map + kFirst * kOsPageBytes;
  ASSERT_EQ(mmap(memory, private_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file, 0), memory);
  ASSERT_EQ(
      mmap(memory, private_bytes / 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
      memory);
  ASSERT_EQ(munmap(map + kSecond * kOsPageBytes, kOsPageBytes), 0);
  ASSERT_EQ(mprotect(map + kOsPageBytes, kOsPageBytes, PROT_READ), 0);
  for (uint64_t i = 0; i < private_bytes; i += 64) memory[i] = static_cast<char>(i / 64);
  for (uint64_t page : {uint64_t{0}, kSecond + 1, kPages - 1}) map[page * kOsPageBytes] = 5;
  if (resident.knows_shared()) {
    resident.take_out(at(0), at(kPages));
    EXPECT_EQ(resident.count_bytes(at(0), at(kPages), 0), private_bytes);
  }
  ResidentFiles::advise_out(at(0), at(kPages));
  for (uint64_t i = 0; i < private_bytes; i += 64) ASSERT_EQ(memory[i], static_cast<char>(i / 64));
  for (uint64_t page : {uint64_t{0}, kSecond + 1, kPages - 1}) EXPECT_EQ(map[page * kOsPageBytes], 5);
}

}  // namespace
}  // namespace sys
