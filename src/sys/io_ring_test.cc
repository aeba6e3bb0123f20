#include "sys/io_ring.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>
#include <string>
#include <thread>

#include "sys/files.h"
#include "sys/kernel.h"
#include "sys/nap.h"

namespace sys {
namespace {

class IoRingTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = ring.open(4);
    if (!opened) GTEST_SKIP() << opened.error().message;
  }
  void TearDown() override { ring.close(); }
  void add_nop(uint64_t user_data) {
    io_uring_sqe* entry = ring.next_submission();
    ASSERT_NE(entry, nullptr);
    entry->opcode = IORING_OP_NOP;
    entry->user_data = user_data;
  }
  void add_nops(uint64_t first, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) ASSERT_NO_FATAL_FAILURE(add_nop(first + i));
  }
  std::multiset<uint64_t> completed() {
    std::multiset<uint64_t> all;
    uint64_t user_data;
    int32_t result;
    while (ring.next_completion(user_data, result)) {
      EXPECT_EQ(result, 0);
      all.insert(user_data);
    }
    return all;
  }
  IoRing ring;
};

TEST_F(IoRingTest, CompletesWhatWasSubmittedOverManyTurns) {
  EXPECT_GE(ring.entry_count(), 4u);
  for (uint64_t turn = 0; turn < 20; ++turn) {
    ASSERT_NO_FATAL_FAILURE(add_nops(turn * 10, 3));
    EXPECT_EQ(ring.pending_count(), 3u);
    EXPECT_EQ(ring.enter(3), 3);
    EXPECT_EQ(ring.pending_count(), 0u);
    EXPECT_EQ(completed(), (std::multiset<uint64_t>{turn * 10, turn * 10 + 1, turn * 10 + 2}));
  }
}

TEST_F(IoRingTest, GivesItsDescriptorBack) {
  int before[256], after[256];
  size_t open_count = own_descriptors(before);
  ring.close();
  EXPECT_EQ(own_descriptors(after), open_count - 1);
  ring.close();  // again: nothing
  EXPECT_EQ(own_descriptors(after), open_count - 1);
  ASSERT_TRUE(ring.open(1).has_value());
}

struct Way {
  const char* name;
  IoRingUse use;
};

class IoRingWays : public IoRingTest, public testing::WithParamInterface<Way> {
 protected:
  void SetUp() override {
    auto opened = ring.open(4, GetParam().use);
    if (!opened) GTEST_SKIP() << opened.error().message;
  }
};

TEST_P(IoRingWays, CompletesWhatWasSubmittedOverManyTurns) {
  for (uint64_t turn = 0; turn < 50; ++turn) {
    ASSERT_NO_FATAL_FAILURE(add_nops(turn * 10, 4));
    EXPECT_EQ(ring.pending_count(), 4u);
    EXPECT_GE(ring.enter(turn % 5), 0);
    EXPECT_EQ(ring.pending_count(), 0u);
    std::multiset<uint64_t> all = completed();
    EXPECT_GE(all.size(), turn % 5);
    while (all.size() < 4) {
      if (ring.needs_enter()) ring.enter(0);
      all.merge(completed());
    }
    EXPECT_EQ(all, (std::multiset<uint64_t>{turn * 10, turn * 10 + 1, turn * 10 + 2, turn * 10 + 3}));
    // The kernel's thread falls asleep.
    if (turn % 10 == 9) nap(3'000'000 * IoRing::kKernelThreadIdleMs);
  }
}

TEST_P(IoRingWays, FullIsNull) {
  ASSERT_NO_FATAL_FAILURE(add_nops(0, ring.entry_count()));
  EXPECT_EQ(ring.next_submission(), nullptr);
  EXPECT_GE(ring.enter(ring.entry_count()), 0);
  EXPECT_EQ(completed().size(), ring.entry_count());
  EXPECT_NE(ring.next_submission(), nullptr);
}

// At once, even before a thread of the kernel says that it took the entries.
TEST_P(IoRingWays, WhatHasCompletedMakesRoom) {
  for (uint64_t turn = 0; turn < 20'000; ++turn) {
    ASSERT_NO_FATAL_FAILURE(add_nops(0, ring.entry_count())) << turn;
    ASSERT_GE(ring.enter(0), 0);
    for (size_t count = 0; count < ring.entry_count(); count += completed().size())
      if (ring.needs_enter()) ring.enter(0);
  }
}

TEST_P(IoRingWays, WhatIsTakenBackIsNotSubmitted) {
  ASSERT_NO_FATAL_FAILURE(add_nops(1, 3));
  EXPECT_EQ(ring.take_back(), 3u);
  EXPECT_EQ(ring.take_back(), 2u);
  ASSERT_NO_FATAL_FAILURE(add_nop(7));
  // A thread of the kernel takes entries without anybody entering; it must not have seen what was taken back.
  ASSERT_GE(ring.enter(2), 0);
  EXPECT_EQ(completed(), (std::multiset<uint64_t>{1, 7}));
}

// Somebody else closes its descriptor; a thread of the kernel goes on as long as the rings are mapped, until it falls asleep.
TEST_P(IoRingWays, ABrokenRingHandsOverOrKeeps) {
  static char memory[1 << 22];
  const int file = ::open(testing::TempDir().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  ASSERT_GE(file, 0);
  ASSERT_EQ(write(file, memory, sizeof memory), static_cast<ssize_t>(sizeof memory));
  uint64_t user_data;
  int32_t result;
  for (uint64_t turn = 0; turn < 200; ++turn) {
    if (turn % 40 == 0) {
      ring.close();
      ASSERT_TRUE(ring.open(4, GetParam().use));
      ASSERT_TRUE(ring.fix_files({&file, 1}));
      ASSERT_NO_FATAL_FAILURE(add_nop(1));
      ASSERT_GE(ring.enter(1), 0);
      ASSERT_EQ(completed().size(), 1u);
      close(ring.descriptor());
    }
    // The kernel's thread falls asleep.
    if (turn % 40 == 35) nap(3'000'000 * IoRing::kKernelThreadIdleMs);
    std::multiset<uint64_t> begun, ended;
    for (uint64_t i = turn * 10; i < turn * 10 + 4; ++i) {
      io_uring_sqe* entry = ring.next_submission();
      ASSERT_NE(entry, nullptr);
      entry->opcode = IORING_OP_READ;
      entry->flags = IOSQE_FIXED_FILE;
      entry->addr = reinterpret_cast<uint64_t>(memory);
      entry->len = sizeof memory;
      entry->user_data = i;
      begun.insert(i);
      if (i % 2 == 0) continue;
      // This fails while the kernel's thread is busy with earlier ones, which take some time.
      ring.enter(1);
      nap(1'000);
    }
    while (ring.pending_count() > 0) ended.insert(ring.take_back());
    const uint64_t limit_ns = monotonic_ns() + 60'000'000'000;
    while (ended.size() < begun.size() && monotonic_ns() < limit_ns)
      while (ring.next_completion(user_data, result)) ended.insert(user_data);
    ASSERT_EQ(ended, begun) << turn;
  }
  close(file);
  nap(10'000'000);
  EXPECT_FALSE(ring.next_completion(user_data, result)) << "what was taken back was submitted";
}

TEST_P(IoRingWays, ReadsRegisteredFilesIntoRegisteredMemory) {
  const int file = ::open(testing::TempDir().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  ASSERT_GE(file, 0);
  const std::string text(100, 'x');
  ASSERT_EQ(write(file, text.data(), text.size()), 100);
  ASSERT_TRUE(ring.fix_files({&file, 1}));
  close(file);  // the ring keeps it open
  alignas(4096) static char memory[2][4096];
  memset(memory, 0, sizeof memory);
  const iovec pieces[] = {{memory[0], 4096}, {memory[1], 4096}};
  if (!ring.fix_memory(pieces, 2)) GTEST_SKIP() << "memory cannot be locked here";
  for (uint16_t piece : {uint16_t{0}, uint16_t{1}}) {
    io_uring_sqe* entry = ring.next_submission();
    ASSERT_NE(entry, nullptr);
    entry->opcode = IORING_OP_READ_FIXED;
    entry->flags = IOSQE_FIXED_FILE;
    entry->addr = reinterpret_cast<uint64_t>(memory[piece]);
    entry->len = 4096;
    entry->buf_index = piece;
  }
  EXPECT_GE(ring.enter(2), 0);
  uint64_t user_data;
  int32_t result;
  for (char* read : memory) {
    ASSERT_TRUE(ring.next_completion(user_data, result));
    EXPECT_EQ(result, 100);
    EXPECT_EQ(std::string(read), text);
  }
  EXPECT_TRUE(ring.fix_memory(pieces, 1)) << "again, something else";
}

INSTANTIATE_TEST_SUITE_P(Ways, IoRingWays,
                         testing::Values(Way{"plain", {}}, Way{"of_one_thread", {.by_one_thread = true}},
                                         Way{"with_kernel_thread", {.kernel_thread = true}},
                                         Way{"of_commands", {.takes_commands = true}},
                                         Way{"of_one_threads_commands",
                                             {.by_one_thread = true, .takes_commands = true}}),
                         [](const auto& parameter) { return std::string(parameter.param.name); });

// What is left of one command would become part of the next.
TEST(IoRing, EntriesForCommandsAreZeroedToTheirEnd) {
  IoRing ring;
  if (auto opened = ring.open(2, {.takes_commands = true}); !opened) GTEST_SKIP() << opened.error().message;
  for (int turn = 0; turn < 3; ++turn) {
    for (uint32_t i = 0; i < ring.entry_count(); ++i) {
      io_uring_sqe* entry = ring.next_submission();
      ASSERT_NE(entry, nullptr);
      for (uint32_t at = 0; at < IoRing::kCommandBytes; ++at)
        ASSERT_EQ(entry->cmd[at], 0) << turn << ' ' << at;
      memset(entry->cmd, 0xee, IoRing::kCommandBytes);
    }
    while (ring.pending_count() > 0) ring.take_back();
  }
  ring.close();
}

TEST(IoRing, OfOneThreadRefusesAnother) {
  IoRing ring;
  if (auto opened = ring.open(4, {.by_one_thread = true}); !opened) GTEST_SKIP() << opened.error().message;
  io_uring_params parameters = {};
  parameters.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
  const long known = ::syscall(SYS_io_uring_setup, 4, &parameters);
  if (known < 0) {
    ring.close();
    GTEST_SKIP() << "a kernel without rings of one thread";
  }
  ::close(static_cast<int>(known));
  long result = 0;
  std::thread([&] {
    ring.next_submission()->opcode = IORING_OP_NOP;
    result = ring.enter(0);
  }).join();
  ring.close();
  EXPECT_EQ(result, -EEXIST);
}

// Otherwise whoever opens the file again would find it in use.
TEST(IoRing, ClosingLetsGoOfTheFile) {
  const std::string path = testing::TempDir() + "spillway-ring-" + std::to_string(getpid());
  const auto opened_and_locked = [&] {
    const int file = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    const bool locked = flock(file, LOCK_EX | LOCK_NB) == 0;
    if (!locked) close(file);
    return locked ? file : -1;
  };
  for (bool by_one_thread : {false, true}) {
    IoRing ring;
    if (auto opened = ring.open(4, {.by_one_thread = by_one_thread}); !opened)
      GTEST_SKIP() << opened.error().message;
    const int file = opened_and_locked();
    ASSERT_GE(file, 0);
    ASSERT_TRUE(ring.fix_files({&file, 1}));
    close(file);
    EXPECT_EQ(opened_and_locked(), -1) << "the ring has it";
    ring.close();
    const int again = opened_and_locked();
    EXPECT_GE(again, 0);
    close(again);
  }
  unlink(path.c_str());
}

TEST_F(IoRingTest, WhatIsNotThereIsNotRegistered) {
  const iovec nothing = {nullptr, 4096};
  EXPECT_FALSE(ring.fix_memory(&nothing, 1));
  const int none = 12345;
  EXPECT_FALSE(ring.fix_files({&none, 1}));
  const int file = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(file, 0);
  EXPECT_TRUE(ring.fix_files({&file, 1})) << "after a refusal";
  EXPECT_DEATH(ring.fix_files({&file, 1}), "files_are_fixed_");
  close(file);
}

}  // namespace
}  // namespace sys
