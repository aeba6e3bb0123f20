#include "sys/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "sys/kernel.h"
#include "sys/test_interrupted_calls.h"

namespace sys {
namespace {

int open_null() {
  int descriptor = open("/dev/null", O_RDWR);
  EXPECT_GE(descriptor, 0);
  return descriptor;
}

bool is_open(int descriptor) { return fcntl(descriptor, F_GETFD) >= 0; }

TEST(OwnDescriptor, IsHighCloseOnExecAndRemembered) {
  int low = open_null();
  auto own = own_descriptor(low);
  ASSERT_TRUE(own.has_value());
  EXPECT_GE(*own, 100);
  EXPECT_EQ(fcntl(*own, F_GETFD), FD_CLOEXEC);
  EXPECT_FALSE(is_open(low));
  EXPECT_TRUE(is_own_descriptor(*own));
  EXPECT_FALSE(is_own_descriptor(low));
  close_own_descriptor(*own);
  EXPECT_FALSE(is_open(*own));
  EXPECT_FALSE(is_own_descriptor(*own));
}

TEST(OwnDescriptor, OthersAreNotClosed) {
  int other = open_null();
  close_own_descriptor(other);
  EXPECT_TRUE(is_open(other));
  close(other);
  EXPECT_FALSE(is_own_descriptor(-1));
  EXPECT_FALSE(is_own_descriptor(0));
}

TEST(OwnDescriptor, PairsAreOwnedOrClosed) {
  int pair[2] = {open_null(), open_null()};
  const int low[2] = {pair[0], pair[1]};
  ASSERT_TRUE(own_descriptor_pair(pair));
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(is_own_descriptor(pair[i]));
    EXPECT_FALSE(is_open(low[i]));
    close_own_descriptor(pair[i]);
  }
  // The second one cannot be moved, since it is not open.
  const size_t before = own_descriptors({});
  int half[2] = {open_null(), -1};
  const int first = half[0];
  EXPECT_FALSE(own_descriptor_pair(half));
  EXPECT_FALSE(is_open(first));
  EXPECT_EQ(own_descriptors({}), before);
}

TEST(OwnDescriptor, ListIsAscendingAndCountsBeyondItsRoom) {
  size_t before = own_descriptors({});
  std::vector<int> owned;
  // A lower number is occupied for a while, so that the last one taken is not the highest.
  owned.push_back(own_descriptor(open_null()).value());
  const int lowest = owned[0];
  close_own_descriptor(owned[0]);
  owned.clear();
  const int null = open_null();
  ASSERT_EQ(dup2(null, lowest), lowest);
  close(null);
  for (int i = 0; i < 4; ++i) owned.push_back(own_descriptor(open_null()).value());
  close(lowest);
  owned.push_back(own_descriptor(open_null()).value());
  EXPECT_EQ(owned.back(), lowest);
  std::vector<int> listed(kMaxOwnDescriptors);
  size_t count = own_descriptors(listed);
  ASSERT_EQ(count, before + 5);
  listed.resize(count);
  EXPECT_TRUE(std::is_sorted(listed.begin(), listed.end()));
  for (int descriptor : owned)
    EXPECT_TRUE(std::count(listed.begin(), listed.end(), descriptor) == 1) << descriptor;
  int few[2];
  EXPECT_EQ(own_descriptors(few), count);
  EXPECT_EQ(few[0], listed[0]);
  EXPECT_EQ(few[1], listed[1]);
  for (int descriptor : owned) close_own_descriptor(descriptor);
  EXPECT_EQ(own_descriptors({}), before);
}

TEST(OwnDescriptor, FullIsAnErrorThatLeavesTheOriginalOpen) {
  std::vector<int> owned;
  int low = -1;
  for (size_t i = 0; i <= kMaxOwnDescriptors; ++i) {
    low = open_null();
    auto own = own_descriptor(low);
    if (!own) {
      EXPECT_EQ(own.error().number, EMFILE);
      break;
    }
    owned.push_back(*own);
    low = -1;
  }
  ASSERT_GE(low, 0) << "more descriptors were taken than can be remembered";
  EXPECT_TRUE(is_open(low));
  close(low);
  for (int descriptor : owned) close_own_descriptor(descriptor);
}

TEST(OwnDescriptor, WorksUnderALowLimit) {
  EXPECT_EXIT(
      {
        rlimit limit;
        limit.rlim_cur = limit.rlim_max = 64;
        setrlimit(RLIMIT_NOFILE, &limit);
        int low = open("/dev/null", O_RDONLY);
        auto own = own_descriptor(low);
        _exit(own && is_open(*own) && is_own_descriptor(*own) && fcntl(*own, F_GETFD) == FD_CLOEXEC ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(ErrorOutput, OutlivesTheProgramsClose) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 2);
    keep_error_output();
    close(2);
    base::log("frames ", 7);
    _exit(error_output() > 2 && is_own_descriptor(error_output()) ? 0 : 1);
  }
  close(ends[1]);
  char text[64] = {};
  ssize_t n = read(ends[0], text, sizeof text - 1);
  EXPECT_STREQ(text, "spillway: frames 7\n") << n;
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  close(ends[0]);
}

// What a child writes to its descriptor 2, a pipe, up to its end, which comes when nobody holds the pipe any more.
template <class F>
std::string said_by(F child) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t process = fork();
  if (process == 0) {
    dup2(ends[1], 2);
    close(ends[0]);
    close(ends[1]);
    keep_error_output();
    child();
    pause();
  }
  close(ends[1]);
  std::string all;
  char text[64];
  for (ssize_t n; (n = read(ends[0], text, sizeof text)) > 0;) all.append(text, static_cast<size_t>(n));
  kill(process, SIGKILL);
  int status = -1;
  EXPECT_EQ(waitpid(process, &status, 0), process);
  EXPECT_TRUE(WIFSIGNALED(status)) << status;
  close(ends[0]);
  return all;
}

TEST(ErrorOutput, LeftItIsDescriptor2WhileThatIsTheSame) {
  EXPECT_EQ(said_by([] {
              leave_error_output();
              base::log("still there");
              int saved = dup(2);
              dup2(open_null(), 2);
              if (error_output() != -1) _exit(1);
              base::log("nowhere");
              dup2(saved, 2);
              close(saved);
              base::log("back");
              close(2);
              if (error_output() != -1 || open_null() != 2) _exit(2);
              base::log("nowhere");
            }),
            "spillway: still there\nspillway: back\n");
}

TEST(ErrorOutput, IsLeftWhenWhatAReaderWaitsForIsReplaced) {
  EXPECT_EQ(said_by([] {
              error_output_replaced();
              if (error_output() <= 2) _exit(1);  // nothing has been replaced
              dup2(open_null(), 2);
              if (error_output() <= 2) _exit(2);
              base::log("before");
              error_output_replaced();
              if (error_output() != -1) _exit(3);
            }),
            "spillway: before\n");
}

TEST(ErrorOutput, AReaderThatHasLeftDoesNotEndTheProgram) {
  EXPECT_EXIT(
      {
        int ends[2];
        if (pipe(ends) != 0 || dup2(ends[1], 2) != 2) _exit(1);
        close(ends[0]);
        close(ends[1]);
        base::log("nobody reads this");
        sigset_t pending;
        sigpending(&pending);
        _exit(sigismember(&pending, SIGPIPE) == 0 ? 0 : 2);
      },
      testing::ExitedWithCode(0), "");
}

TEST(ErrorOutput, AFileThatMayNotBecomeLongerDoesNotEndTheProgram) {
  EXPECT_EXIT(
      {
        const int file = open(testing::TempDir().c_str(), O_TMPFILE | O_RDWR, 0600);
        rlimit limit;
        limit.rlim_cur = limit.rlim_max = 0;
        if (dup2(file, 2) != 2 || setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(1);
        base::log("there is no room for this");
        _exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(ErrorOutput, IsKeptWhenNobodyWaitsForItsEnd) {
  EXPECT_EXIT(
      {
        dup2(open_null(), 2);
        keep_error_output();
        close(2);
        error_output_replaced();
        _exit(error_output() > 2 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(ErrorOutput, IsNowhereInAProcessThatStartedWithoutOne) {
  EXPECT_EXIT(
      {
        close(2);
        keep_error_output();
        _exit(open_null() == 2 && error_output() == -1 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(ErrorOutput, IsBorrowedByAThreadWithDescriptorsOfItsOwn) {
  EXPECT_EQ(said_by([] {
              leave_error_output();
              std::thread([] {
                constexpr unsigned kUnshare = 2;
                if (syscall(SYS_close_range, 0, ~0u, kUnshare) != 0) _exit(1);
                if (error_output() != -1) _exit(2);
                borrow_error_output();
                base::log("borrowed");
              }).join();
              dup2(open_null(), 2);
            }),
            "spillway: borrowed\n");
}

#if !__has_feature(thread_sanitizer) && \
    !__has_feature(address_sanitizer)  // they need system calls of their own
TEST(AllocateFile, SignalsDoNotKeepItFromItsEnd) {
  const pid_t child = fork();
  if (child == 0) {
    const int file = memfd_create("allocated", MFD_CLOEXEC);
    struct stat facts = {};
    const bool is_done = interrupt_allocations() && allocate_file(file, 4096, 8192) == 0;
    _exit(is_done && fstat(file, &facts) == 0 && facts.st_size == 12'288 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}
#endif

TEST(RandomBytes, FillsAllAndDiffers) {
  unsigned char a[600] = {}, b[600] = {};
  random_bytes(a);
  random_bytes(b);
  EXPECT_FALSE(std::equal(a, a + 600, b));
  EXPECT_NE(std::count(a + 500, a + 600, 0), 100);
  random_bytes({});
}

TEST(FolderOf, IsAFoldersName) {
  EXPECT_EQ(folder_of("a/b/store"), "a/b");
  EXPECT_EQ(folder_of("/a/store"), "/a");
  EXPECT_EQ(folder_of("/store"), "/");
  EXPECT_EQ(folder_of("store"), ".");
}

TEST(SyncName, SaysWhatWentWrong) {
  const std::string path = testing::TempDir() + "spillway-sync-name-" + std::to_string(getpid());
  EXPECT_EQ(sync_name(path), 0) << "it is about the folder";
  EXPECT_EQ(sync_name(path + "/file"), -ENOENT);
  EXPECT_EQ(sync_name("/proc/self/cmdline/file"), -ENOTDIR);
  EXPECT_EQ(sync_name("/proc/self/file"), 0) << "a file system that syncs no folders";
  EXPECT_EQ(sync_name(std::string(4095, 'a') + "/file"), -ENAMETOOLONG);
  ASSERT_EQ(mkdir(path.c_str(), 0300), 0);
  EXPECT_EQ(sync_name(path + "/file"), 0) << "a folder that may not be read, unless by root";
  rmdir(path.c_str());
  const int next = open_null();
  close(next);
  rlimit before;
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none = {static_cast<rlim_t>(next), before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  EXPECT_EQ(sync_name(path), -EMFILE);
  setrlimit(RLIMIT_NOFILE, &before);
}

// Like /proc/self/status, with the groups of a user first.
TEST(NumberInFile, IsFoundHoweverLongTheFile) {
  const int file = memfd_create("a test", MFD_CLOEXEC);
  ASSERT_GE(file, 0);
  const auto write_all = [&](const std::string& text) {
    EXPECT_EQ(ftruncate(file, 0), 0);
    EXPECT_EQ(pwrite(file, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  };
  for (size_t before : {0u, 10u, 3900u, 4096u, 20'000u}) {
    for (size_t i = 0; i < 200; ++i) {
      const std::string groups = "Groups:" + std::string(before + i, '7');
      write_all(groups + "\nVmHWM:\t    1234 kB\nVmRSS:\t     567 kB\n");
      ASSERT_EQ(number_in_file(file, "\nVmHWM:"), 1234u) << groups.size();
      ASSERT_EQ(number_in_file(file, "\nVmRSS:"), 567u) << groups.size();
      ASSERT_EQ(number_in_file(file, "\nRssFile:"), 0u) << groups.size();
    }
  }
  close(file);
}

TEST(ReadSmallFile, EndsWithZeroAndIsCutOff) {
  char text[4096];
  long n = read_small_file("/proc/self/stat", text);
  ASSERT_GT(n, 10);
  EXPECT_EQ(static_cast<size_t>(n), std::string(text).size());
  EXPECT_EQ(std::to_string(getpid()), std::string(text).substr(0, std::string(text).find(' ')));
  char little[4] = {'x', 'x', 'x', 'x'};
  EXPECT_EQ(read_small_file("/proc/meminfo", little), 3);
  EXPECT_STREQ(little, "Mem");
  EXPECT_EQ(read_small_file("/nowhere/at/all", text), -ENOENT);
}

}  // namespace
}  // namespace sys
