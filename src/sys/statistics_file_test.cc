#include "sys/statistics_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

namespace sys {
namespace {

class StatisticsFileTest : public testing::Test {
 protected:
  StatisticsFileTest() {
    folder_ = std::filesystem::temp_directory_path() / ("spillway-statistics-" + std::to_string(getpid()));
    std::filesystem::create_directory(folder_);
  }
  ~StatisticsFileTest() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string content(const std::string& name) const {
    std::ifstream file(folder_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Writes a file by one put() of the text. Returns 0, or the error's errno value.
  static int write(const std::string& at, const char* text) {
    StatisticsFile file(at);
    base::Text<256> line;
    line << text;
    file.put(line);
    const auto finished = file.finish();
    return finished ? 0 : finished.error().number;
  }
  // Limits the size of this process's files, and writes one by two puts of five bytes. Returns 0, or the error's errno value.
  int write_twice_within(rlim_t bytes) const {
    const rlimit limit = {.rlim_cur = bytes, .rlim_max = bytes};
    setrlimit(RLIMIT_FSIZE, &limit);
    StatisticsFile file(path("all"));
    base::Text<16> part;
    part << "12345";
    file.put(part);
    file.put(part);
    const auto finished = file.finish();
    return finished ? 0 : finished.error().number;
  }
  size_t files() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  std::filesystem::path folder_;
};

TEST_F(StatisticsFileTest, IsThereWhenItIsWhole) {
  ASSERT_EQ(write(path("all"), "before"), 0);
  StatisticsFile file(path("all"));
  base::Text<16> part;
  part << "one\n";
  file.put(part);
  part << "two\n";
  file.put(part);
  EXPECT_EQ(file.path(), path("all"));
  EXPECT_EQ(content("all"), "before");
  ASSERT_TRUE(file.finish());
  EXPECT_EQ(content("all"), "one\none\ntwo\n");
  EXPECT_EQ(files(), 1u);
}

// As programs do that one command starts with the same environment.
TEST_F(StatisticsFileTest, ProcessesThatEndAtTheSameTimeWriteWholeFiles) {
  StatisticsFile file(path("all"));
  base::Text<16> part;
  part << "one\n";
  file.put(part);
  const pid_t other = fork();
  if (other == 0) _exit(write(path("all"), "of another process\n") == 0 ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(other, &status, 0), other);
  EXPECT_EQ(status, 0);
  file.put(part);
  EXPECT_EQ(content("all"), "of another process\n");
  ASSERT_TRUE(file.finish());
  EXPECT_EQ(content("all"), "one\none\n");
  EXPECT_EQ(files(), 1u);
}

TEST_F(StatisticsFileTest, ProcessIdStandsForEachMark) {
  const std::string id = std::to_string(getpid());
  ASSERT_EQ(write(path("%p-%p"), "twice"), 0);
  EXPECT_EQ(content(id + "-" + id), "twice");
  ASSERT_EQ(write(path("a%p"), "at the end"), 0);
  EXPECT_EQ(content("a" + id), "at the end");
  ASSERT_EQ(write(path("p%%pp%"), "beside what is none"), 0);
  EXPECT_EQ(content("p%" + id + "p%"), "beside what is none");
  EXPECT_EQ(files(), 3u);
}

TEST_F(StatisticsFileTest, WhatCannotBeMadeIsToldOf) {
  EXPECT_EQ(write(path("no/folder"), "text"), ENOENT);
  std::filesystem::create_directory(folder_ / "taken");
  EXPECT_EQ(write(path("taken"), "text"), EISDIR);
  StatisticsFile file(path("no/folder"));
  const auto finished = file.finish();
  ASSERT_FALSE(finished);
  EXPECT_STREQ(finished.error().message, base::error_name(ENOENT));
}

TEST_F(StatisticsFileTest, APipeIsWrittenTo) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(write(path("pipe"), "text"), ENXIO);
  const int reader = open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  EXPECT_EQ(write(path("pipe"), "text"), 0);
  char got[16] = {};
  EXPECT_EQ(read(reader, got, sizeof got), 4);
  EXPECT_STREQ(got, "text");
  close(reader);
  EXPECT_EQ(files(), 1u);
}

// A signal handler of the program runs while the pipe is full.
TEST_F(StatisticsFileTest, AWriteThatIsInterruptedGoesOn) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  const int reader = open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  const int writer = open(path("pipe").c_str(), O_WRONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  ASSERT_GE(writer, 0);
  while (::write(writer, "x", 1) == 1) {
  }
  close(writer);
  struct sigaction action = {}, before = {};
  action.sa_handler = [](int) {};
  ASSERT_EQ(sigaction(SIGALRM, &action, &before), 0);
  std::thread slow([reader] {
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, nullptr);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    std::string all(1 << 20, 0);
    EXPECT_GT(::read(reader, all.data(), all.size()), 0);
  });
  const itimerval timer = {.it_interval = {}, .it_value = {.tv_sec = 0, .tv_usec = 100'000}};
  EXPECT_EQ(setitimer(ITIMER_REAL, &timer, nullptr), 0);
  EXPECT_EQ(write(path("pipe"), "text"), 0);
  slow.join();
  char got[16] = {};
  EXPECT_EQ(read(reader, got, sizeof got), 4) << "what had filled the pipe has been read";
  EXPECT_STREQ(got, "text");
  sigaction(SIGALRM, &before, nullptr);
  close(reader);
}

// This must not end the program.
TEST_F(StatisticsFileTest, WhoReadsAPipeMayLeave) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  const int reader = open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  StatisticsFile file(path("pipe"));
  close(reader);
  base::Text<16> part;
  part << "text";
  file.put(part);
  const auto finished = file.finish();
  ASSERT_FALSE(finished);
  EXPECT_EQ(finished.error().number, EPIPE);
}

// Else root would have no /dev/null any more.
TEST_F(StatisticsFileTest, ADeviceIsNotReplaced) {
  std::filesystem::create_symlink("/dev/null", folder_ / "null");
  EXPECT_EQ(write(path("null"), "text"), 0);
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "null"));
  EXPECT_EQ(files(), 1u);
}

TEST_F(StatisticsFileTest, ASocketIsNotReplaced) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string at = path("socket");
  ASSERT_LT(at.size(), sizeof address.sun_path);
  at.copy(address.sun_path, at.size());
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_GE(listener, 0);
  ASSERT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(write(at, "text"), ENXIO);
  EXPECT_TRUE(std::filesystem::is_socket(at));
  EXPECT_EQ(files(), 1u);
  close(listener);
}

// Like /dev/stdout, when what the program prints goes to a file.
TEST_F(StatisticsFileTest, WhatAProgramPrintsStays) {
  const int printed = open(path("printed").c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_GE(printed, 0);
  ASSERT_EQ(::write(printed, "before ", 7), 7);
  EXPECT_EQ(write("/proc/self/fd/" + std::to_string(printed), "text"), 0);
  EXPECT_EQ(content("printed"), "before text");
  close(printed);
}

TEST_F(StatisticsFileTest, ADiskIsRefused) {
  if (mknod(path("disk").c_str(), S_IFBLK | 0600, makedev(7, 250)) != 0)
    GTEST_SKIP() << "no devices can be made here";
  EXPECT_EQ(write(path("disk"), "text"), EINVAL);
  EXPECT_TRUE(std::filesystem::is_block_file(folder_ / "disk"));
}

// A name that is cut off would be another file's.
TEST_F(StatisticsFileTest, NameThatIsTooLongIsToldOf) {
  std::string name = path("");
  name.append(StatisticsFile::kMaxPathBytes - 1 - name.size(), '/');
  EXPECT_EQ(write(name + "x", "fits"), 0);
  EXPECT_EQ(write(name + "xy", "text"), ENAMETOOLONG);
  EXPECT_EQ(content("x"), "fits");
  EXPECT_EQ(files(), 1u);
}

TEST_F(StatisticsFileTest, FileThatIsNotWholeIsNotRenamed) {
  ASSERT_EQ(write(path("all"), "before"), 0);
  EXPECT_EXIT(_exit(write_twice_within(4) == ENOSPC ? 0 : 1), testing::ExitedWithCode(0), "");
  EXPECT_EQ(content("all"), "before");
}

// The kernel would send SIGXFSZ, which ends most programs.
TEST_F(StatisticsFileTest, AFileThatMayNotBecomeLongerEndsNoProgram) {
  EXPECT_EXIT(_exit(write_twice_within(5) == EFBIG ? 0 : 1), testing::ExitedWithCode(0), "");
  EXPECT_EQ(files(), 0u);
}

}  // namespace
}  // namespace sys
