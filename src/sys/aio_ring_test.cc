#include "sys/aio_ring.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <set>
#include <string>

#include "sys/kernel.h"

namespace sys {
namespace {

class AioRingTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = ring.open(kEntries);
    if (!opened) GTEST_SKIP() << opened.error().message;
    file = ::open(testing::TempDir().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    ASSERT_GE(file, 0);
    memset(bytes, 'a', sizeof bytes);
    ASSERT_EQ(pwrite(file, bytes, sizeof bytes, 0), static_cast<ssize_t>(sizeof bytes));
  }
  void TearDown() override {
    ring.close();
    if (file >= 0) close(file);
  }
  // Adds a read of `count` bytes; their content does not matter.
  void add_read(uint64_t user_data, uint64_t count = 1) {
    iocb* entry = ring.next_submission();
    ASSERT_NE(entry, nullptr);
    entry->aio_data = user_data;
    entry->aio_lio_opcode = IOCB_CMD_PREAD;
    entry->aio_fildes = static_cast<uint32_t>(file);
    entry->aio_buf = reinterpret_cast<uint64_t>(bytes);
    entry->aio_nbytes = count;
  }
  // Waits for `wanted` completions and returns their user data; each result must be `count`.
  std::multiset<uint64_t> completed(size_t wanted, int64_t count = 1) {
    std::multiset<uint64_t> all;
    while (all.size() < wanted) {
      uint64_t user_data;
      int64_t result;
      if (ring.next_completion(user_data, result)) {
        EXPECT_EQ(result, count);
        all.insert(user_data);
      } else {
        EXPECT_GE(ring.wait(), 0);
      }
    }
    return all;
  }

  static constexpr uint32_t kEntries = 5;
  AioRing ring;
  int file = -1;
  char bytes[4096];
};

TEST_F(AioRingTest, CompletionsAreReadFromTheRing) {
  EXPECT_TRUE(ring.is_readable());
  add_read(7);
  ASSERT_EQ(ring.submit(), 1);
  // Buffered reads have completed when submit() returns.
  uint64_t user_data;
  int64_t result;
  ASSERT_TRUE(ring.next_completion(user_data, result));
  EXPECT_EQ(user_data, 7u);
  EXPECT_EQ(result, 1);
  EXPECT_FALSE(ring.next_completion(user_data, result));
  EXPECT_EQ(ring.in_kernel_count(), 0u);
}

TEST_F(AioRingTest, CompletesWhatWasSubmittedOverManyTurns) {
  // Enough to wrap the kernel's ring around; our own wraps around at 5.
  for (uint64_t turn = 0; turn < 500; ++turn) {
    for (uint64_t i = 0; i < 3; ++i) add_read(turn * 10 + i);
    EXPECT_EQ(ring.pending_count(), 3u);
    ASSERT_EQ(ring.submit(), 3);
    EXPECT_EQ(ring.pending_count(), 0u);
    EXPECT_EQ(ring.in_kernel_count(), 3u);
    ASSERT_EQ(completed(3), (std::multiset<uint64_t>{turn * 10, turn * 10 + 1, turn * 10 + 2}));
  }
}

TEST_F(AioRingTest, WaitingFetchesToo) {
  for (uint64_t i = 0; i < 4; ++i) add_read(i);
  ASSERT_EQ(ring.submit(), 4);
  ASSERT_GE(ring.wait(), 1);
  EXPECT_EQ(completed(4), (std::multiset<uint64_t>{0, 1, 2, 3}));
}

TEST_F(AioRingTest, FullIsNull) {
  for (uint64_t i = 0; i < kEntries; ++i) add_read(i);
  EXPECT_EQ(ring.next_submission(), nullptr);
  EXPECT_EQ(ring.submit(), static_cast<long>(kEntries));
  completed(kEntries);
  EXPECT_NE(ring.next_submission(), nullptr);
}

TEST_F(AioRingTest, TheFirstThatIsRefusedStaysPending) {
  add_read(1);
  add_read(2);
  iocb* bad = ring.next_submission();
  bad->aio_data = 3;
  bad->aio_fildes = ~0u;
  add_read(4);
  EXPECT_EQ(ring.submit(), 2) << "those before it";
  EXPECT_EQ(ring.pending_count(), 2u);
  EXPECT_EQ(ring.submit(), -EBADF);
  EXPECT_EQ(ring.take_first(), 3u);
  EXPECT_EQ(ring.submit(), 1);
  EXPECT_EQ(completed(3), (std::multiset<uint64_t>{1, 2, 4}));
}

TEST_F(AioRingTest, ARingThatIsNotKnownIsLeftAlone) {
  ring.leave_ring_alone();
  for (uint64_t turn = 0; turn < 50; ++turn) {
    for (uint64_t i = 0; i < 4; ++i) add_read(turn * 10 + i);
    ASSERT_EQ(ring.submit(), 4);
    uint64_t user_data;
    int64_t result;
    ASSERT_TRUE(ring.next_completion(user_data, result));
    auto others = completed(3);
    others.insert(user_data);
    ASSERT_EQ(others, (std::multiset<uint64_t>{turn * 10, turn * 10 + 1, turn * 10 + 2, turn * 10 + 3}));
  }
}

// The addresses of this process's rings, which are also the ids of their contexts.
std::set<aio_context_t> contexts() {
  std::ifstream maps("/proc/self/maps");
  std::set<aio_context_t> all;
  for (std::string line; std::getline(maps, line);)
    if (line.find("[aio]") != std::string::npos) all.insert(std::stoull(line, nullptr, 16));
  return all;
}

TEST_F(AioRingTest, AChildMayOnlyClose) {
  add_read(1);
  ASSERT_EQ(ring.submit(), 1);
  ASSERT_EQ(contexts().size(), 1u);
  const aio_context_t parents = *contexts().begin();
  pid_t child = fork();
  if (child == 0) {
    if (!contexts().empty()) _exit(1);  // the child must not be able to store to the parent's
    // A context of the child's own gets the address of the parent's, and must survive the closing of that.
    aio_context_t own = 0;
    for (int i = 0; i < 64 && own != parents; ++i) {
      own = 0;
      if (syscall(SYS_io_setup, kEntries, &own) != 0) _exit(2);
    }
    if (own != parents) _exit(3);
    ring.close();
    _exit(syscall(SYS_io_destroy, own) == 0 ? 0 : 4);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(completed(1), (std::multiset<uint64_t>{1}));
}

TEST_F(AioRingTest, AChildHasItsOwn) {
  pid_t child = fork();
  if (child == 0) {
    ring.close();
    if (!ring.open(kEntries)) _exit(1);
    add_read(2);
    if (ring.submit() != 1) _exit(2);
    _exit(completed(1).contains(2) ? 0 : 3);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(AioRingTest, OpensAgain) {
  ring.close();
  ring.close();  // again: nothing
  ASSERT_TRUE(ring.open(1).has_value());
  add_read(9);
  EXPECT_EQ(ring.submit(), 1);
  EXPECT_EQ(completed(1), (std::multiset<uint64_t>{9}));
}

TEST(AioRing, MoreThanTheSystemHasIsRefused) {
  AioRing ring;
  auto opened = ring.open(1 << 24);
  ASSERT_FALSE(opened.has_value());
  EXPECT_TRUE(opened.error().number == EAGAIN || opened.error().number == EINVAL) << opened.error().message;
  ring.close();
}

}  // namespace
}  // namespace sys
