#include "storage/opening/store_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include "storage/testing/test_process.h"

namespace storage {
namespace {

constexpr int64_t kMissing = -1;

class StoreFilesTest : public testing::Test {
 protected:
  StoreFilesTest() {
    folder = testing::TempDir() + "spillway-store-files-" + std::to_string(getpid());
    std::filesystem::create_directory(folder);
  }
  ~StoreFilesTest() override { std::filesystem::remove_all(folder); }

  std::string path(const std::string& name) const { return folder + "/" + name; }
  void make_file(const std::string& name, int64_t bytes) const {
    const int descriptor = ::open(path(name).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    ASSERT_GE(descriptor, 0);
    EXPECT_EQ(ftruncate(descriptor, bytes), 0);
    close(descriptor);
  }
  int64_t bytes_of(const std::string& name) const {
    struct stat facts = {};
    return stat(path(name).c_str(), &facts) == 0 ? facts.st_size : kMissing;
  }

  std::string folder;
};

TEST_F(StoreFilesTest, AreAsTheyWereUnlessKept) {
  const std::string text =
      "stripe:[" + path("a") + ",fault:[" + path("b") + "],aio:" + path("c") + "]?unit=4K";
  make_file("b", 5000);
  make_file("c", 1 << 20);
  for (const bool keeps : {false, true}) {
    {
      StoreFiles files;
      ASSERT_TRUE(files.open(text));
      EXPECT_TRUE(files.needs_capacity());
      ASSERT_TRUE(files.set_sizes(100'000));
      EXPECT_EQ(bytes_of("a"), 36864) << "a third, in whole units";
      EXPECT_EQ(bytes_of("b"), 36864);
      EXPECT_EQ(bytes_of("c"), 1 << 20) << "none gets smaller";
      if (keeps) files.keep();
    }
    EXPECT_EQ(bytes_of("a"), keeps ? 36864 : kMissing);
    EXPECT_EQ(bytes_of("b"), keeps ? 36864 : 5000);
    EXPECT_EQ(bytes_of("c"), 1 << 20);
  }
}

TEST_F(StoreFilesTest, OneThatHasBeenGivenUpMeanwhileIsMadeAnew) {
  const std::string text = path("store");
  StoreFiles second;
  std::atomic<bool> has_opened = false;
  std::thread waiting;
  {
    StoreFiles first;
    ASSERT_TRUE(first.open(text));
    waiting = std::thread([&] {
      auto opened = second.open(text);
      EXPECT_TRUE(opened) << opened.error().message;
      has_opened = true;
    });
    usleep(50'000);
    EXPECT_FALSE(has_opened) << "it is locked";
  }
  waiting.join();
  EXPECT_EQ(bytes_of("store"), 0);
  ASSERT_TRUE(second.set_sizes(1 << 20));
  EXPECT_EQ(bytes_of("store"), 1 << 20);
}

TEST_F(StoreFilesTest, NamesOfNewFilesAreDurable) {
  const std::string made = path("made"), found = path("found");
  make_file("found", 0);
  EXPECT_EQ(in_child([&] {
              if (!fail_call(SYS_fsync, EIO)) return false;
              StoreFiles one, other;
              const auto opened = one.open(made);
              return !opened && opened.error().number == EIO && other.open(found).has_value();
            }),
            0);
  EXPECT_EQ(bytes_of("made"), kMissing);
}

// As on network file systems whose server has none.
TEST_F(StoreFilesTest, WithoutLocksNoNewFileStays) {
  const std::string made = path("made"), found = path("found");
  make_file("found", 7);
  EXPECT_EQ(in_child([&] {
              if (!fail_call(SYS_flock, ENOLCK)) return false;
              for (const std::string& text : {made, found}) {
                StoreFiles files;
                const auto opened = files.open(text);
                if (opened || opened.error().number != ENOLCK) return false;
              }
              return true;
            }),
            0);
  EXPECT_EQ(bytes_of("made"), kMissing);
  EXPECT_EQ(bytes_of("found"), 7);
}

TEST_F(StoreFilesTest, WhatWasMovedThereMeanwhileStays) {
  const std::string text = path("store");
  make_file("other", 7);
  {
    StoreFiles files;
    ASSERT_TRUE(files.open(text));
    ASSERT_TRUE(files.set_sizes(1 << 20));
    std::filesystem::rename(path("other"), text);
  }
  EXPECT_EQ(bytes_of("store"), 7);
}

TEST_F(StoreFilesTest, WhatIsTooLargeIsRefused) {
  const std::string text = "stripe:[" + path("a") + "," + path("b") + "]";
  StoreFiles files;
  ASSERT_TRUE(files.open(text));
  for (const uint64_t bytes : {~uint64_t{0}, ~uint64_t{0} - 4095, (uint64_t{1} << 62) + 1, uint64_t{1} << 62})
    EXPECT_EQ(files.set_sizes(bytes).error().number, EFBIG) << bytes;
}

TEST_F(StoreFilesTest, WhatIsInUseIsSaid) {
  const std::string text = path("store"), stripe = "stripe:[" + path("a") + "," + path("a") + "]";
  StoreFiles first, second, twice;
  ASSERT_TRUE(first.open(text));
  EXPECT_EQ(second.open(text).error().number, EBUSY);
  EXPECT_EQ(twice.open(stripe).error().number, EBUSY);
}

TEST_F(StoreFilesTest, ChildrenDoNotKeepTheLocks) {
  const std::string text = path("store");
  std::optional<IdleChild> child;
  {
    StoreFiles first;
    ASSERT_TRUE(first.open(text));
    first.keep();
    child.emplace();
  }
  StoreFiles second;
  const auto opened = second.open(text);
  EXPECT_TRUE(opened) << opened.error().message;
}

TEST_F(StoreFilesTest, ALinkToNothingIsRefused) {
  ASSERT_EQ(symlink(path("none").c_str(), path("link").c_str()), 0);
  const std::string text = path("link");
  StoreFiles files;
  const auto opened = files.open(text);
  ASSERT_FALSE(opened);
  EXPECT_NE(std::string(opened.error().message).find("a link to a file that is not there"),
            std::string::npos);
  EXPECT_EQ(bytes_of("none"), kMissing);
}

}  // namespace
}  // namespace storage
