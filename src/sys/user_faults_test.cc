#include "sys/user_faults.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <vector>

#include "base/ids.h"

namespace sys {
namespace {

constexpr uint64_t kPage = base::kOsPageBytes;

class UserFaultsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (auto opened = faults_.open(); !opened) GTEST_SKIP() << opened.error().message;
    memory_ = map();
    side_ = map();
    std::memset(filled_, 'x', sizeof filled_);
  }
  void TearDown() override { faults_.close(); }

  uint64_t map() {
    void* mapped = mmap(nullptr, 8 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const auto address = reinterpret_cast<uint64_t>(mapped);
    EXPECT_TRUE(faults_.add(address, 8 * kPage));
    return address;
  }
  static char& at(uint64_t address) { return *reinterpret_cast<char*>(address); }

  UserFaults faults_;
  uint64_t memory_ = 0;
  uint64_t side_ = 0;
  alignas(kPage) char filled_[2 * kPage];
};

TEST_F(UserFaultsTest, ALoadWaitsUntilItsPageIsThere) {
  char seen = 0;
  std::thread loader([&] { seen = at(memory_ + 100); });
  uint64_t missing[4];
  ASSERT_EQ(faults_.wait(missing), 1u);
  EXPECT_EQ(missing[0], memory_);
  EXPECT_EQ(faults_.copy(memory_, filled_, kPage), static_cast<long>(kPage));
  loader.join();
  EXPECT_EQ(seen, 'x');
}

TEST_F(UserFaultsTest, ASystemCallWaitsToo) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  long written = 0;
  std::thread writer([&] { written = write(ends[1], &at(memory_ + kPage), 10); });
  uint64_t missing[4];
  ASSERT_EQ(faults_.wait(missing), 1u);
  EXPECT_EQ(missing[0], memory_ + kPage);
  EXPECT_EQ(faults_.copy(memory_ + kPage, filled_, kPage), static_cast<long>(kPage));
  writer.join();
  EXPECT_EQ(written, 10);
  char got[10];
  EXPECT_EQ(read(ends[0], got, 10), 10);
  EXPECT_EQ(got[9], 'x');
  close(ends[0]);
  close(ends[1]);
}

TEST_F(UserFaultsTest, AMovedPageIsGoneFromItsAddressAndWholeAtTheOther) {
  ASSERT_EQ(faults_.copy(memory_, filled_, 2 * kPage), static_cast<long>(2 * kPage));
  at(memory_ + kPage + 5) = 'y';
  ASSERT_EQ(faults_.move(side_ + 3 * kPage, memory_, 2 * kPage), static_cast<long>(2 * kPage));
  EXPECT_EQ(at(side_ + 3 * kPage), 'x');
  EXPECT_EQ(at(side_ + 4 * kPage + 5), 'y');
  char seen = 0;
  std::thread loader([&] { seen = at(memory_ + kPage + 5); });
  uint64_t missing[4];
  ASSERT_EQ(faults_.wait(missing), 1u);
  EXPECT_EQ(faults_.move(missing[0], side_ + 4 * kPage, kPage), static_cast<long>(kPage));
  loader.join();
  EXPECT_EQ(seen, 'y');
}

TEST_F(UserFaultsTest, WhatCannotBeDoneIsSaid) {
  ASSERT_EQ(faults_.copy(memory_, filled_, kPage), static_cast<long>(kPage));
  EXPECT_EQ(faults_.copy(memory_, filled_, kPage), -EEXIST);
  EXPECT_EQ(faults_.move(side_, memory_ + kPage, kPage), -ENOENT);
  mprotect(&at(memory_), kPage, PROT_READ);
  EXPECT_EQ(faults_.move(side_, memory_, kPage), -EINVAL);
}

// Up to the first page that could not be moved.
TEST_F(UserFaultsTest, PartOfAMoveIsCounted) {
  ASSERT_EQ(faults_.copy(memory_, filled_, 2 * kPage), static_cast<long>(2 * kPage));
  EXPECT_EQ(faults_.move(side_, memory_, 4 * kPage), static_cast<long>(2 * kPage));
}

}  // namespace
}  // namespace sys
