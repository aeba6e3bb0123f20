// The pmem backend's own, over files that are not memory. What every backend promises: conformance_test.cc.
#include "storage/backends/pmem.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "storage/opening/open.h"
#include "storage/testing/test_pmem_cut.h"
#include "storage/testing/test_process.h"
#include "storage/testing/test_queue.h"
#include "sys/files.h"
#include "sys/test_interrupted_calls.h"

namespace storage {
namespace {

class PmemTest : public QueueTest {
 protected:
  void TearDown() override {
    QueueTest::TearDown();
    std::filesystem::remove(path);
  }
  std::string text(const std::string& settings) const { return "pmem:" + path + settings; }
  base::Error refusal(const std::string& device_text) {
    int before[256], after[256];
    const size_t count = sys::own_descriptors(before);
    auto opened = open_device(device_text, {});
    EXPECT_FALSE(opened.has_value()) << device_text;
    if (opened) (*opened)->close();
    EXPECT_EQ(sys::own_descriptors(after), count);
    return opened ? base::Error() : opened.error();
  }
  const std::string path = "/var/tmp/spillway-pmem-" + std::to_string(getpid());
};

TEST_F(PmemTest, AFileIsUsedAsItIs) {
  std::ofstream(path) << std::string(3 * kBlock + 100, 'x');
  open_queue_of(text("?dax=0"));
  EXPECT_EQ(device->capacity_bytes(), 3 * kBlock);
  EXPECT_FALSE(device->discards());
  EXPECT_TRUE(std::string_view(device->name()).starts_with(text("")));
  EXPECT_EQ(run(Operation::kRead, kBlock, kBlock)->bytes[0], 'x');
  run(Operation::kWrite, kBlock, kBlock, 5);
  EXPECT_EQ(run(Operation::kRead, 2 * kBlock, kBlock)->bytes[0], 'x');
  EXPECT_EQ(run(Operation::kFlush, 0, 0)->io.error, 0);
  close();
  std::ifstream file(path);
  std::string content(4 * kBlock, 0);
  file.read(content.data(), static_cast<std::streamsize>(content.size()));
  EXPECT_EQ(file.gcount(), static_cast<std::streamsize>(3 * kBlock + 100));
  EXPECT_EQ(static_cast<unsigned char>(content[kBlock]), TestIo::pattern(kBlock, 5));
  EXPECT_EQ(content[kBlock - 1], 'x');
  EXPECT_EQ(content[2 * kBlock], 'x');
}

TEST_F(PmemTest, AllOfItIsAllocated) {
  open_queue_of(text("?dax=0,size=1M"));
  EXPECT_EQ(device->capacity_bytes(), uint64_t{1} << 20);
  struct stat facts = {};
  ASSERT_EQ(stat(path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_size, 1 << 20);
  EXPECT_GE(facts.st_blocks * 512, 1 << 20);
  close();
  open_queue_of(text("?dax=0,size=512K"));
  EXPECT_EQ(device->capacity_bytes(), uint64_t{512} << 10) << "no more than that";
  close();
  open_queue_of(text("?dax=0,size=2M"));
  EXPECT_EQ(device->capacity_bytes(), uint64_t{2} << 20) << "it grows";
}

#if !__has_feature(thread_sanitizer) && \
    !__has_feature(address_sanitizer)  // they need system calls of their own
TEST_F(PmemTest, SignalsDoNotKeepItFromBeingAllocated) {
  EXPECT_EQ(in_child([&] {
              if (!sys::interrupt_allocations()) return false;
              auto opened = open_device(text("?dax=0,size=1M"), {});
              return opened.has_value() && (*opened)->capacity_bytes() == uint64_t{1} << 20;
            }),
            0);
}
#endif

TEST_F(PmemTest, RefusesWithALine) {
  EXPECT_EQ(refusal(text("?dax=0")).number, EINVAL);
  EXPECT_NE(std::string(refusal(text("?dax=0")).message).find("size=SIZE"), std::string::npos);
  const base::Error plain = refusal(text("?size=1M"));
  if (plain.number == 0) GTEST_SKIP() << "/var/tmp is persistent memory";
  EXPECT_EQ(plain.number, EOPNOTSUPP);
  EXPECT_NE(std::string(plain.message).find("DAX"), std::string::npos) << plain.message;
  EXPECT_EQ(std::filesystem::file_size(path), 0u) << "nothing is changed";
  EXPECT_LT(std::string(plain.message).size(), sizeof plain.message - 1) << "cut off";
}

// Spilling may lose its content; a refusal may not.
TEST_F(PmemTest, WhatIsRefusedKeepsItsContent) {
  const std::string content(3 * kBlock, 'x');
  std::ofstream(path) << content;
  const auto read = [this] {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  constexpr OpenParameters kOverwrite = {.overwrite = true, .spill = true};
  auto plain = open_device(text("?size=1M"), kOverwrite);
  if (plain) {
    (*plain)->close();
    GTEST_SKIP() << "/var/tmp is persistent memory";
  }
  EXPECT_TRUE(read() == content);
  auto used = open_device(text("?dax=0"), kOverwrite);
  ASSERT_TRUE(used) << used.error().message;
  EXPECT_EQ((*used)->capacity_bytes(), 3 * kBlock) << "as large as it is";
  EXPECT_TRUE(std::string_view((*used)->name()).ends_with("(file, mapped by the page cache)"))
      << (*used)->name();
  (*used)->close();
}

// A device has 8 TiB at most: of a larger disk there is no test.
TEST_F(PmemTest, MoreThanThereIsRoomForIsRefusedAndChangesNothing) {
  if (std::filesystem::space("/var/tmp").available >= uint64_t{6} << 40)
    GTEST_SKIP() << "/var/tmp has room for it";
  const base::Error full = refusal(text("?dax=0,size=6T"));
  EXPECT_TRUE(full.number == ENOSPC || full.number == EFBIG) << full.message;
  const std::string content(3 * kBlock, 'x');
  std::ofstream(path) << content;
  EXPECT_FALSE(open_device(text("?dax=0,size=6T"), {.overwrite = true, .spill = true}));
  std::ifstream file(path);
  EXPECT_TRUE(std::string(std::istreambuf_iterator<char>(file), {}) == content);
}

// Another thread may be in the middle of opening or closing one when the process forks, and is not there to finish it in the child.
TEST_F(PmemTest, AChildOfForkOpensQueuesWhateverOthersWereDoing) {
  open_queue_of(text("?dax=0,size=1M"));
  std::atomic<bool> ends{false};
  std::atomic<uint64_t> opened_count{0};
  std::thread other([&] {
    while (!ends) {
      auto opened = device->open_queue(8);
      if (!opened) break;
      device->close_queue(*opened);
      ++opened_count;
    }
  });
  while (opened_count == 0) std::this_thread::yield();
  for (int i = 0; i < 30; ++i)
    EXPECT_EQ(in_child([&] {
                alarm(30);  // ends one that waits for ever
                auto own = device->open_queue(8);
                if (!own || !use(**own, 0)) return false;
                device->close_queue(*own);
                return true;
              }),
              0)
        << i;
  ends = true;
  other.join();
  EXPECT_GT(opened_count, 30u);
}

// Each write that has ended is durable, by lines that were flushed and fenced; reads and flushes take none.
TEST_F(PmemTest, WritesAreDurableWhenTheyEnd) {
  PmemCut memory(std::vector<std::byte>(1 << 20), 0);
  device = &memory.device();
  auto opened = device->open_queue(8);
  ASSERT_TRUE(opened);
  queue = *opened;
  run(Operation::kWrite, 3 * kBlock, 2 * kBlock, 7);
  const std::vector<std::byte> medium = memory.medium(1, 0);
  for (size_t i = 0; i < 2 * kBlock; ++i)
    ASSERT_EQ(static_cast<unsigned char>(medium[3 * kBlock + i]), TestIo::pattern(3 * kBlock + i, 7)) << i;
  EXPECT_EQ(medium[3 * kBlock - 1], std::byte{0});
  EXPECT_EQ(memory.count(), 2 * kBlock / base::kLineBytes + 1);
  run(Operation::kRead, 0, kBlock);
  EXPECT_EQ(memory.count(), 2 * kBlock / base::kLineBytes + 1);
  close();
}

}  // namespace
}  // namespace storage
