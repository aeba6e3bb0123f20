// The interceptors of system calls with buffers, vectors and structures in spilled memory: each
// would get EFAULT if it passed one on.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/blkzoned.h>
#include <linux/dm-ioctl.h>
#include <linux/fs.h>
#include <linux/perf_event.h>
#include <linux/sockios.h>
#include <linux/usbdevice_fs.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "spill/intercept/control.h"
#include "spill/testing/mirrored.h"

extern "C" {
ssize_t __spill_read(int, void*, size_t);
ssize_t __spill_write(int, const void*, size_t);
ssize_t __spill_pread64(int, void*, size_t, off_t);
ssize_t __spill_pwrite(int, const void*, size_t, off_t);
ssize_t __spill_readv(int, const iovec*, int);
ssize_t __spill_writev(int, const iovec*, int);
ssize_t __spill_preadv(int, const iovec*, int, off_t);
ssize_t __spill_pwritev(int, const iovec*, int, off_t);
ssize_t __spill_preadv2(int, const iovec*, int, off_t, int);
ssize_t __spill_pwritev2(int, const iovec*, int, off_t, int);
ssize_t __spill_process_vm_readv(pid_t, const iovec*, size_t, const iovec*, size_t, unsigned long);
ssize_t __spill_process_vm_writev(pid_t, const iovec*, size_t, const iovec*, size_t, unsigned long);
int __spill_clock_gettime(clockid_t, timespec*);
tm* __spill_gmtime_r(const time_t*, tm*);
time_t __spill_timegm(tm*);
size_t __spill_strftime(char*, size_t, const char*, const tm*);
char* __spill_strptime(const char*, const char*, tm*);
int __spill_nanosleep(const timespec*, timespec*);
unsigned __spill_sleep(unsigned);
int __spill_usleep(useconds_t);
int __spill_poll(pollfd*, nfds_t, int);
int __spill_select(int, fd_set*, fd_set*, fd_set*, timeval*);
int __spill_epoll_ctl(int, int, int, epoll_event*);
int __spill_epoll_wait(int, epoll_event*, int, int);
int __spill_pipe(int*);
int __spill_fcntl(int, int, ...);
int __spill_ioctl(int, unsigned long, ...);
int __spill_prctl(int, ...);
pid_t __spill_waitpid(pid_t, int*, int);
int __spill_sigaddset(sigset_t*, int);
int __spill_sigemptyset(sigset_t*);
int __spill_sigprocmask(int, const sigset_t*, sigset_t*);
int __spill_uname(utsname*);
int __spill_getrlimit(__rlimit_resource_t, rlimit*);
char* __spill_getenv(const char*);
int __spill_setenv(const char*, const char*, int);
int __spill_putenv(char*);
ssize_t __spill_getrandom(void*, size_t, unsigned);
ssize_t __spill_msgrcv(int, void*, size_t, long, int);
}

namespace {

using fake::content;
using fake::Mirrored;
using fake::read_object;
using fake::read_string;
using fake::spilled_object;
using fake::spilled_string;

class Io : public fake::SpillTest {
 protected:
  void SetUp() override {
    SpillTest::SetUp();
    std::string name = testing::TempDir() + "spillway-io-XXXXXX";
    file = mkstemp(name.data());
    unlink(name.c_str());
  }
  void TearDown() override {
    close(file);
    SpillTest::TearDown();
  }
  int file = -1;
};

TEST_F(Io, FilesSmallAndLarge) {
  for (size_t n : {size_t{0}, size_t{1}, size_t{4096}, size_t{65536}, size_t{65537}, size_t{500'001}}) {
    const std::string bytes = content(n);
    Mirrored from(bytes, 4090);
    Mirrored to(n + 10, 4001);
    ASSERT_EQ(ftruncate(file, 0), 0);
    lseek(file, 3, SEEK_SET);
    EXPECT_EQ(__spill_write(file, from.spilled, n), static_cast<ssize_t>(n));
    EXPECT_EQ(lseek(file, 0, SEEK_CUR), static_cast<off_t>(n + 3));
    lseek(file, 3, SEEK_SET);
    EXPECT_EQ(__spill_read(file, to.spilled, n + 10),
              static_cast<ssize_t>(n));  // short at the end of the file
    to.twin.replace(0, n, bytes);
    to.expect_equal("read");
    EXPECT_EQ(__spill_pwrite(file, from.spilled, n, 3 + static_cast<off_t>(n)), static_cast<ssize_t>(n));
    EXPECT_EQ(lseek(file, 0, SEEK_CUR), static_cast<off_t>(n + 3));
    EXPECT_EQ(__spill_pread64(file, to.spilled, n, 3 + static_cast<off_t>(n)), static_cast<ssize_t>(n));
    to.expect_equal("pread64");
  }
  errno = 0;
  EXPECT_EQ(__spill_read(-1, fake::allocate(100, 0), 100), -1);
  EXPECT_EQ(errno, EBADF);
  EXPECT_EQ(__spill_write(-1, fake::allocate(100'000, 0), 100'000), -1);
  EXPECT_EQ(errno, EBADF);
}

TEST_F(Io, Vectors) {
  for (size_t scale : {size_t{10}, size_t{90'000}}) {
    const std::string bytes = content(3 * scale);
    Mirrored from(bytes, 4090), to(3 * scale, 4001);
    std::string plain(scale, '\0');
    iovec parts[3] = {{from.spilled, scale},
                      {const_cast<char*>(bytes.data()) + scale, scale},
                      {from.spilled + 2 * scale, scale}};
    auto* vector = reinterpret_cast<iovec*>(fake::allocate(sizeof parts, 4096 - 24));
    spill::copy(vector, parts, sizeof parts);
    lseek(file, 0, SEEK_SET);
    EXPECT_EQ(__spill_writev(file, vector, 3), static_cast<ssize_t>(3 * scale));
    EXPECT_EQ(__spill_pwritev(file, parts, 3, 1'000'000), static_cast<ssize_t>(3 * scale));
    iovec targets[3] = {{to.spilled, scale}, {plain.data(), scale}, {to.spilled + 2 * scale, scale}};
    spill::copy(vector, targets, sizeof targets);
    for (int positioned = 0; positioned < 2; ++positioned) {
      lseek(file, 0, SEEK_SET);
      const ssize_t n =
          positioned == 0 ? __spill_readv(file, vector, 3) : __spill_preadv(file, targets, 3, 1'000'000);
      EXPECT_EQ(n, static_cast<ssize_t>(3 * scale));
      to.twin.replace(0, scale, bytes.substr(0, scale));
      to.twin.replace(2 * scale, scale, bytes.substr(2 * scale));
      to.expect_equal("readv");
      EXPECT_EQ(plain, bytes.substr(scale, scale));
      to.fill(0, std::string(3 * scale, '\0').data(), 3 * scale);
      plain.assign(scale, '\0');
    }
  }
  errno = 0;
  EXPECT_EQ(__spill_readv(file, reinterpret_cast<iovec*>(fake::allocate(16, 0)), 5000), -1);
  EXPECT_EQ(errno, EINVAL);
}

// All bytes, at an offset and at the file's position.
TEST_F(Io, VectorsWithFlags) {
  const std::string bytes = content(2'500'000);
  Mirrored from(bytes, 4090), to(bytes.size(), 4001);
  const auto n = static_cast<ssize_t>(bytes.size());
  iovec parts[2] = {{from.spilled, 1000}, {from.spilled + 1000, bytes.size() - 1000}};
  iovec targets[2] = {{to.spilled, 70'000}, {to.spilled + 70'000, bytes.size() - 70'000}};
  for (off_t offset : {off_t{-1}, off_t{12'345}}) {
    ASSERT_EQ(ftruncate(file, 0), 0);
    lseek(file, 77, SEEK_SET);
    EXPECT_EQ(__spill_pwritev2(file, parts, 2, offset, 0), n);
    EXPECT_EQ(lseek(file, 0, SEEK_CUR), offset == -1 ? 77 + n : 77);
    lseek(file, 77, SEEK_SET);
    EXPECT_EQ(__spill_preadv2(file, targets, 2, offset, 0), n);
    to.twin = bytes;
    to.expect_equal("preadv2");
    to.fill(0, std::string(bytes.size(), '\0').data(), bytes.size());
  }
  errno = 0;
  EXPECT_EQ(__spill_pwritev2(file, parts, 2, 0, 1 << 30), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

// What fits the limit is written, and the next call is told by a signal.
TEST_F(Io, LimitOfFileSizesBetweenTwoPieces) {
  static int signals = 0;
  const char* from = fake::allocate(300'000, 0);
  constexpr rlim_t kLimit = 4 * 7 * 4096;  // the fake runtime allows 7 pins
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, [](int) { ++signals; });
  const rlimit limit = {kLimit, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const ssize_t written = __spill_pwrite(file, from, 300'000, 0);
  const int signals_before = signals;
  const ssize_t more = __spill_pwrite(file, from, 300'000, kLimit);
  const int error = errno;
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(written, static_cast<ssize_t>(kLimit));
  EXPECT_EQ(signals_before, 0);
  EXPECT_EQ(more, -1);
  EXPECT_EQ(error, EFBIG);
  EXPECT_EQ(signals, 1);
  signal(SIGXFSZ, SIG_DFL);
}

// The kernel's limit holds even if the call takes several system calls: programs may keep the result in an int.
TEST_F(Io, NoCallMovesMoreThanTheKernelsWould) {
  const int null = open("/dev/null", O_WRONLY);
  std::string plain(3 << 20, 'x');
  std::vector<iovec> parts(1000, iovec{plain.data(), plain.size()});
  EXPECT_EQ(writev(null, parts.data(), 1000), 0x7ffff000);
  parts[0] = {fake::allocate(1, 4095), 1};
  EXPECT_EQ(__spill_writev(null, parts.data(), 1000), 0x7ffff000);
  close(null);
}

// Piece by piece, with buffers that end at different places there.
TEST_F(Io, MemoryOfProcesses) {
  const std::string bytes = content(300'000);
  std::string there(300'000, '\0');
  Mirrored here(bytes, 4090);
  iovec local[2] = {{here.spilled, 100'001}, {here.spilled + 100'001, 199'999}};
  iovec remote[3] = {
      {there.data(), 65'000}, {there.data() + 65'000, 2'000}, {there.data() + 67'000, 233'000}};
  EXPECT_EQ(__spill_process_vm_writev(getpid(), local, 2, remote, 3, 0), 300'000);
  EXPECT_TRUE(there == bytes);
  there.replace(0, there.size(), content(300'000));  // in place
  remote[2].iov_len = 200'000;                       // less than the room for it
  EXPECT_EQ(__spill_process_vm_readv(getpid(), local, 2, remote, 3, 0), 267'000);
  here.twin.replace(0, 267'000, there.substr(0, 267'000));
  here.expect_equal("process_vm_readv");
  remote[1].iov_base = nullptr;
  EXPECT_EQ(__spill_process_vm_readv(getpid(), local, 2, remote, 3, 0), 65'000);
  errno = 0;
  remote[0].iov_base = nullptr;
  EXPECT_EQ(__spill_process_vm_readv(getpid(), local, 2, remote, 3, 0), -1);
  EXPECT_EQ(errno, EFAULT);
}

// What the program aligned for direct I/O reaches the kernel aligned, also when other arguments are copied.
TEST_F(Io, DirectVectors) {
  char name[] = "direct-io-test-XXXXXX";
  close(mkstemp(name));
  const int direct = open(name, O_RDWR | O_DIRECT);
  unlink(name);
  if (direct < 0) GTEST_SKIP() << "no direct I/O where the test runs";
  for (size_t n : {size_t{8192}, size_t{1} << 20}) {
    const std::string bytes = content(n);
    Mirrored from(bytes, 0), to(n, 0);
    const iovec halves[2] = {{from.spilled, n / 2}, {from.spilled + n / 2, n / 2}};
    const iovec targets[2] = {{to.spilled, n / 2}, {to.spilled + n / 2, n / 2}};
    auto* vector = reinterpret_cast<iovec*>(fake::allocate(sizeof halves, 100));
    spill::copy(vector, halves, sizeof halves);
    lseek(direct, 0, SEEK_SET);
    EXPECT_EQ(__spill_writev(direct, vector, 2), static_cast<ssize_t>(n));
    EXPECT_EQ(__spill_pwritev(direct, vector, 2, static_cast<off_t>(n)), static_cast<ssize_t>(n));
    spill::copy(vector, targets, sizeof targets);
    lseek(direct, 0, SEEK_SET);
    EXPECT_EQ(__spill_readv(direct, vector, 2), static_cast<ssize_t>(n));
    to.twin = bytes;
    to.expect_equal("readv");
    to.fill(0, std::string(n, '\0').data(), n);
    EXPECT_EQ(__spill_preadv(direct, vector, 2, static_cast<off_t>(n)), static_cast<ssize_t>(n));
    to.twin = bytes;
    to.expect_equal("preadv");
    to.fill(0, std::string(n, '\0').data(), n);
    EXPECT_EQ(__spill_pread64(direct, to.spilled, n, 0), static_cast<ssize_t>(n));
    to.twin = bytes;
    to.expect_equal("pread");
    EXPECT_EQ(__spill_pwrite(direct, from.spilled, n, 0), static_cast<ssize_t>(n));
  }
  close(direct);
}

TEST_F(Io, PipesWriteEverythingAndReadWhatIsThere) {
  fake::set_moving(false);
  int* ends = spilled_object<int[2]>()[0];
  ASSERT_EQ(__spill_pipe(ends), 0);
  const int in = read_object(ends), out = read_object(ends + 1);
  const std::string bytes = content(300'000);
  const char* from = spilled_string(bytes);
  std::thread writer([&] {
    fake::enter_thread();
    EXPECT_EQ(__spill_write(out, from, bytes.size()), static_cast<ssize_t>(bytes.size()));  // blocks
    close(out);
  });
  Mirrored to(bytes.size(), 4000);
  size_t done = 0;
  for (ssize_t n; (n = __spill_read(in, to.spilled + done, bytes.size())) > 0;)
    done += static_cast<size_t>(n);
  writer.join();
  EXPECT_EQ(done, bytes.size());
  to.twin = bytes;
  to.expect_equal("pipe");
  close(in);
  signal(SIGPIPE, SIG_IGN);
  int broken[2];
  ASSERT_EQ(pipe(broken), 0);
  close(broken[0]);
  EXPECT_EQ(__spill_write(broken[1], from, bytes.size()), -1);
  EXPECT_EQ(errno, EPIPE);
  close(broken[1]);
  int full[2];
  ASSERT_EQ(pipe2(full, O_NONBLOCK), 0);
  EXPECT_EQ(__spill_write(full[1], from, bytes.size()), 65536);  // what fits
  EXPECT_EQ(__spill_write(full[1], from, bytes.size()), -1);
  EXPECT_EQ(errno, EAGAIN);
  close(full[0]);
  close(full[1]);
}

// A vector whose buffers end anywhere among the pieces that one system call takes.
TEST_F(Io, VectorsThroughPipes) {
  fake::set_moving(false);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::string bytes = content(240'000);
  const char* from = spilled_string(bytes);
  std::vector<iovec> parts;
  for (size_t at = 0, n = 30'001; at < bytes.size(); at += n, n += 7'000)
    parts.push_back({const_cast<char*>(from) + at, std::min(n, bytes.size() - at)});
  std::string got;
  std::thread reader([&] {
    char piece[5000];
    for (ssize_t n; (n = read(ends[0], piece, sizeof piece)) > 0;) got.append(piece, static_cast<size_t>(n));
  });
  EXPECT_EQ(__spill_writev(ends[1], parts.data(), static_cast<int>(parts.size())),
            static_cast<ssize_t>(bytes.size()));
  close(ends[1]);
  reader.join();
  close(ends[0]);
  EXPECT_TRUE(got == bytes);

  // What a call did not write is not skipped.
  ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);
  ASSERT_EQ(write(ends[1], bytes.data(), 100), 100);
  const ssize_t written = __spill_write(ends[1], from, bytes.size());
  int waiting = 0;
  ioctl(ends[0], FIONREAD, &waiting);
  EXPECT_LT(written, 65'536);
  EXPECT_EQ(written, waiting - 100);
  close(ends[0]);
  close(ends[1]);
}

TEST_F(Io, Times) {
  timespec* now = spilled_object<timespec>();
  EXPECT_EQ(__spill_clock_gettime(CLOCK_REALTIME, now), 0);
  EXPECT_GT(read_object(now).tv_sec, 1'000'000);
  tm* calendar = spilled_object<tm>();
  EXPECT_EQ(__spill_gmtime_r(spilled_object<time_t>(86400 * 365), calendar), calendar);
  EXPECT_EQ(read_object(calendar).tm_year, 71);
  char* to = fake::allocate(40, 4090);
  EXPECT_EQ(__spill_strftime(to, 40, spilled_string("%Y-%m-%d"), calendar), 10u);
  EXPECT_EQ(read_string(to), "1971-01-01");
  EXPECT_EQ(__spill_strftime(to, 10, "%Y-%m-%d", calendar), 0u);
  // No more room than the text needs, and texts that are longer than the first attempt.
  char* end = fake::allocate(11, 4096 - 11);
  EXPECT_EQ(__spill_strftime(end, ~size_t{0}, "%Y-%m-%d", calendar), 10u);
  EXPECT_EQ(read_string(end), "1971-01-01");
  const std::string many(1000, '-');
  char* long_text = fake::allocate(1005, 4090);
  EXPECT_EQ(__spill_strftime(long_text, 1004, (many + "%Y").c_str(), calendar), 0u);
  EXPECT_EQ(__spill_strftime(long_text, 1005, (many + "%Y").c_str(), calendar), 1004u);
  EXPECT_EQ(read_string(long_text), many + "1971");
  const char* date = spilled_string("2020-02-03 rest");
  EXPECT_EQ(__spill_strptime(date, spilled_string("%Y-%m-%d"), calendar), date + 10);
  EXPECT_EQ(__spill_timegm(calendar), 1580688000);
  // A line at the end of memory, without a 0.
  const std::string line = "2020-02-04\n";
  char* last = fake::allocate(line.size(), 4096 - line.size());
  spill::copy(last, line.data(), line.size());
  EXPECT_EQ(__spill_strptime(last, "%Y-%m-%d", calendar), last + 10);
  EXPECT_EQ(read_object(calendar).tm_mday, 4);
  EXPECT_EQ(__spill_nanosleep(spilled_object<timespec>({0, 1000}), nullptr), 0);
}

TEST_F(Io, WaitingForDescriptors) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  pollfd* polled = spilled_object<pollfd>({ends[0], POLLIN, 0});
  EXPECT_EQ(__spill_poll(polled, 1, 1000), 1);
  EXPECT_EQ(read_object(polled).revents, POLLIN);
  fd_set reads;
  FD_ZERO(&reads);
  FD_SET(ends[0], &reads);
  fd_set* spilled_reads = spilled_object(reads);
  EXPECT_EQ(__spill_select(ends[0] + 1, spilled_reads, nullptr, nullptr, spilled_object<timeval>({1, 0})), 1);
  reads = read_object(spilled_reads);
  EXPECT_TRUE(FD_ISSET(ends[0], &reads));
  const int epoll = epoll_create1(0);
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u64 = 77;
  EXPECT_EQ(__spill_epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], spilled_object(event)), 0);
  auto* events = reinterpret_cast<epoll_event*>(fake::allocate(5 * sizeof(epoll_event), 4090));
  EXPECT_EQ(__spill_epoll_wait(epoll, events, 5, 1000), 1);
  EXPECT_EQ(uint64_t{read_object(events).data.u64}, 77u);  // a packed struct: no reference to it
  // Room for more than is copied at once.
  constexpr int kMany = 20'000;
  auto* many = reinterpret_cast<epoll_event*>(fake::allocate(kMany * sizeof(epoll_event), 4090));
  EXPECT_EQ(__spill_epoll_wait(epoll, many, kMany, 1000), 1);
  EXPECT_EQ(uint64_t{read_object(many).data.u64}, 77u);
  // Where nothing is.
  auto* none = reinterpret_cast<epoll_event*>(fake::allocate(1, 0) + 4096);
  EXPECT_EQ(__spill_epoll_ctl(epoll, EPOLL_CTL_DEL, ends[0], none), 0);
  EXPECT_EQ(__spill_epoll_wait(epoll, many, kMany, 0), 0);
  for (int descriptor : {epoll, ends[0], ends[1]}) close(descriptor);
}

// Programs pass the number of descriptors that there might be, which is more than the sets have room for.
TEST_F(Io, SetsEndWhereTheTableOfDescriptorsDoes) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  fd_set reads;
  FD_ZERO(&reads);
  FD_SET(ends[0], &reads);
  FD_SET(ends[1], &reads);
  // With nothing mapped after it.
  auto* last = reinterpret_cast<fd_set*>(fake::allocate(sizeof reads, 4096 - sizeof reads));
  spill::copy(last, &reads, sizeof reads);
  timeval at_once = {};
  EXPECT_EQ(__spill_select(1 << 20, last, nullptr, nullptr, &at_once), 1);
  reads = read_object(last);
  EXPECT_TRUE(FD_ISSET(ends[0], &reads));
  EXPECT_FALSE(FD_ISSET(ends[1], &reads));
  close(ends[0]);
  close(ends[1]);
}

// Otherwise many waiting threads would leave no frames to the others.
TEST_F(Io, WhoWaitsHoldsNothing) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  char byte = 'x';
  const iovec one = {&byte, 1};
  EXPECT_TRUE(fake::lets_go([&] { EXPECT_EQ(__spill_writev(ends[1], &one, 1), 1); }));
  EXPECT_TRUE(fake::lets_go([&] { EXPECT_EQ(__spill_readv(ends[0], &one, 1), 1); }));
  EXPECT_TRUE(fake::lets_go([&] { EXPECT_EQ(__spill_write(ends[1], &byte, 1), 1); }));
  EXPECT_TRUE(fake::lets_go([&] { EXPECT_EQ(__spill_read(ends[0], &byte, 1), 1); }));
  EXPECT_TRUE(fake::lets_go([] { EXPECT_EQ(__spill_sleep(0), 0u); }));
  EXPECT_TRUE(fake::lets_go([] { EXPECT_EQ(__spill_usleep(1), 0); }));
  close(ends[0]);
  close(ends[1]);
}

// Until the thread sleeps, and stays asleep: in the call that it was about to make.
void wait_until_asleep(pid_t thread) {
  const std::string path = "/proc/self/task/" + std::to_string(thread) + "/stat";
  for (int tries = 0, looks = 0; tries < 60'000 && looks < 50; ++tries) {
    std::string line;
    std::getline(std::ifstream(path), line);
    const size_t name_end = line.rfind(") ");
    looks = name_end != line.npos && line[name_end + 2] == 'S' ? looks + 1 : 0;
    usleep(1000);
  }
}

// Another thread may set meanwhile what the next call is to wait for.
TEST_F(Io, PollStoresWhatCameOnly) {
  fake::set_moving(false);
  const pid_t waits = gettid();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  char* at = fake::allocate(2 * sizeof(pollfd), 4096 - 12);
  const pollfd before[2] = {{ends[0], POLLIN, 0}, {-1, POLLIN, 77}};
  spill::copy(at, before, sizeof before);
  std::thread other([&] {
    fake::enter_thread();
    wait_until_asleep(waits);
    pollfd changed = {ends[1], POLLOUT, 0};
    // By the kernel: the thread sanitizer would report it as the race that it is.
    const iovec from = {&changed, sizeof changed};
    const iovec to[2] = {{spill::hold(at + 8, spill::kHoldA), 4}, {spill::hold(at + 12, spill::kHoldB), 4}};
    EXPECT_EQ(process_vm_writev(getpid(), &from, 1, to, 2, 0), static_cast<ssize_t>(sizeof changed));
    EXPECT_EQ(write(ends[1], "x", 1), 1);
  });
  EXPECT_EQ(__spill_poll(reinterpret_cast<pollfd*>(at), 2, 60'000), 1);
  other.join();
  const auto* after = reinterpret_cast<const pollfd*>(at);
  EXPECT_EQ(read_object(after).fd, ends[0]);
  EXPECT_EQ(read_object(after).revents, POLLIN);
  EXPECT_EQ(read_object(after + 1).fd, ends[1]);
  EXPECT_EQ(read_object(after + 1).events, POLLOUT);
  EXPECT_EQ(read_object(after + 1).revents, 0);
  close(ends[0]);
  close(ends[1]);
}

// A message that fits, in less room than the call is told, with nothing mapped after it.
TEST_F(Io, OfAMessageOnlyWhatCameIsStored) {
  struct Message {
    long type;
    char text[8];
  };
  const int queue = msgget(IPC_PRIVATE, 0600);
  if (queue < 0) GTEST_SKIP() << "there are no messages where the test runs";
  const Message sent = {3, "message"};
  EXPECT_EQ(msgsnd(queue, &sent, sizeof sent.text, 0), 0);
  char* to = fake::allocate(sizeof(Message), 4096 - sizeof(Message));
  EXPECT_EQ(__spill_msgrcv(queue, to, 100, 0, 0), static_cast<ssize_t>(sizeof sent.text));
  const Message received = read_object(reinterpret_cast<Message*>(to));
  EXPECT_EQ(received.type, 3);
  EXPECT_STREQ(received.text, "message");
  EXPECT_EQ(__spill_msgrcv(queue, to, 100, 0, IPC_NOWAIT), -1);
  EXPECT_EQ(errno, ENOMSG);
  EXPECT_EQ(read_object(reinterpret_cast<Message*>(to)).type, 3);
  msgctl(queue, IPC_RMID, nullptr);
}

// Another thread may set meanwhile what it wants locked.
TEST_F(Io, ALockIsOnlyRead) {
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  const int other_file = open(path.c_str(), O_RDWR);
  ASSERT_GE(other_file, 0);
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  ASSERT_EQ(fcntl(other_file, F_OFD_SETLK, &lock), 0);
  fake::set_moving(false);
  const pid_t waits = gettid();
  struct flock* spilled_lock = spilled_object(lock);
  std::thread other([&] {
    fake::enter_thread();
    wait_until_asleep(waits);
    const short changed = F_RDLCK;
    // By the kernel, as above.
    const iovec from = {const_cast<short*>(&changed), sizeof changed};
    const iovec to = {spill::hold(&spilled_lock->l_type, spill::kHoldA), sizeof changed};
    EXPECT_EQ(process_vm_writev(getpid(), &from, 1, &to, 1, 0), static_cast<ssize_t>(sizeof changed));
    lock.l_type = F_UNLCK;
    EXPECT_EQ(fcntl(other_file, F_OFD_SETLK, &lock), 0);
  });
  EXPECT_EQ(__spill_fcntl(file, F_OFD_SETLKW, spilled_lock), 0);
  other.join();
  EXPECT_EQ(read_object(spilled_lock).l_type, F_RDLCK);
  close(other_file);
}

TEST_F(Io, ProcessesSignalsAndTheSystem) {
  const pid_t child = fork();
  if (child == 0) _exit(9);
  int* status = spilled_object<int>();
  EXPECT_EQ(__spill_waitpid(child, status, 0), child);
  EXPECT_EQ(WEXITSTATUS(read_object(status)), 9);
  sigset_t* set = spilled_object<sigset_t>();
  sigset_t* old = spilled_object<sigset_t>();
  EXPECT_EQ(__spill_sigemptyset(set), 0);
  EXPECT_EQ(__spill_sigaddset(set, SIGUSR1), 0);
  EXPECT_EQ(__spill_sigprocmask(SIG_BLOCK, set, nullptr), 0);
  EXPECT_EQ(__spill_sigprocmask(SIG_UNBLOCK, set, old), 0);
  const sigset_t plain_old = read_object(old);
  EXPECT_EQ(sigismember(&plain_old, SIGUSR1), 1);
  utsname* name = spilled_object<utsname>();
  EXPECT_EQ(__spill_uname(name), 0);
  EXPECT_EQ(read_string(reinterpret_cast<char*>(name)), "Linux");
  rlimit* limit = spilled_object<rlimit>();
  EXPECT_EQ(__spill_getrlimit(RLIMIT_NOFILE, limit), 0);
  EXPECT_GT(read_object(limit).rlim_max, 0u);
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  struct flock* spilled_lock = spilled_object(lock);
  EXPECT_EQ(__spill_fcntl(file, F_SETLK, spilled_lock), 0);
  EXPECT_EQ(__spill_fcntl(file, F_GETLK, spilled_lock), 0);
  EXPECT_EQ(read_object(spilled_lock).l_type, F_UNLCK);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "12345", 5), 5);
  int* readable = spilled_object<int>();
  EXPECT_EQ(__spill_ioctl(ends[0], FIONREAD, readable), 0);
  EXPECT_EQ(read_object(readable), 5);
  winsize* window = spilled_object<winsize>();
  EXPECT_EQ(__spill_ioctl(ends[0], TIOCGWINSZ, window), -1);
  EXPECT_NE(errno, EFAULT);
  close(ends[0]);
  close(ends[1]);
  // An integer at the end of mapped memory.
  auto* last = reinterpret_cast<int*>(fake::allocate(sizeof(int), 4096 - sizeof(int)));
  const int stream = socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(__spill_ioctl(stream, SIOCOUTQNSD, last), 0);
  close(stream);
  if (__spill_ioctl(file, FS_IOC_GETFLAGS, last) != 0) EXPECT_NE(errno, EFAULT);
  char* thread_name = fake::allocate(16, 4090);
  EXPECT_EQ(__spill_prctl(PR_SET_NAME, spilled_string("renamed")), 0);
  EXPECT_EQ(__spill_prctl(PR_GET_NAME, thread_name), 0);
  EXPECT_EQ(read_string(thread_name), "renamed");
  // A longer one is cut, and need not end.
  char* endless = fake::allocate(16, 4096 - 16);
  spill::copy(endless, "0123456789abcdef", 16);
  EXPECT_EQ(__spill_prctl(PR_SET_NAME, endless), 0);
  EXPECT_EQ(__spill_prctl(PR_GET_NAME, thread_name), 0);
  EXPECT_EQ(read_string(thread_name), "0123456789abcde");
  const int copy = __spill_fcntl(file, F_DUPFD, 50);
  EXPECT_GE(copy, 50);
  close(copy);
}

// For these the kernel accesses more than their number says, or keeps the address.
TEST_F(Io, RequestsAreAsLongAsTheirMemorySays) {
  const uint32_t count = 3000;
  auto* zones = reinterpret_cast<blk_zone_report*>(fake::allocate(sizeof(blk_zone_report), 4088));
  spill::copy(&zones->nr_zones, &count, sizeof count);
  EXPECT_EQ(spill::ioctl_argument_bytes(BLKREPORTZONE, zones), sizeof *zones + count * sizeof(blk_zone));
  auto* key = reinterpret_cast<fscrypt_add_key_arg*>(fake::allocate(sizeof(fscrypt_add_key_arg), 4088));
  spill::copy(&key->raw_size, &count, sizeof count);
  EXPECT_EQ(spill::ioctl_argument_bytes(FS_IOC_ADD_ENCRYPTION_KEY, key), sizeof *key + count);
  fscrypt_get_policy_ex_arg policy = {};
  policy.policy_size = sizeof policy.policy;
  EXPECT_EQ(spill::ioctl_argument_bytes(FS_IOC_GET_ENCRYPTION_POLICY_EX, spilled_object(policy)), 32u);
  auto* devices = reinterpret_cast<dm_ioctl*>(fake::allocate(sizeof(dm_ioctl), 4088));
  spill::copy(&devices->data_size, &count, sizeof count);
  EXPECT_EQ(spill::ioctl_argument_bytes(DM_LIST_DEVICES, devices), count);
  EXPECT_EQ(spill::ioctl_argument_bytes(PERF_EVENT_IOC_SET_FILTER, spilled_string("pid != 0")), 9u);
  EXPECT_EQ(spill::ioctl_argument_bytes(USBDEVFS_SUBMITURB, fake::allocate(sizeof(usbdevfs_urb), 0)), 0u);
}

// One call returns all that is asked for.
TEST_F(Io, RandomBytes) {
  Mirrored to(200'000, 4090);
  const std::string zeros(100, '\0');
  EXPECT_EQ(__spill_getrandom(to.spilled, to.size(), 0), static_cast<ssize_t>(to.size()));
  const std::string bytes = to.now();
  EXPECT_NE(bytes.substr(65'500, 100), zeros);
  EXPECT_NE(bytes.substr(bytes.size() - 100), zeros);
  EXPECT_EQ(__spill_getrandom(to.spilled, 100'000, 1 << 30), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(Io, Environment) {
  EXPECT_EQ(__spill_setenv(spilled_string("SPILL_A"), spilled_string("one"), 1), 0);
  EXPECT_STREQ(__spill_getenv(spilled_string("SPILL_A")), "one");
  char* text = spilled_string("SPILL_B=two=2");
  EXPECT_EQ(__spill_putenv(text), 0);
  spill::copy(text, "#######", 7);
  EXPECT_STREQ(getenv("SPILL_B"), "two=2");
  EXPECT_EQ(__spill_putenv(spilled_string("SPILL_B")), 0);
  EXPECT_EQ(getenv("SPILL_B"), nullptr);
}

}  // namespace
