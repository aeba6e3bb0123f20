// The interceptors of system calls with paths, and with structures about files, in spilled memory.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "spill/testing/mirrored.h"

extern "C" {
int __spill_open(const char*, int, ...);
int __spill_openat64(int, const char*, int, ...);
int __spill_stat(const char*, struct stat*);
int __spill_stat64(const char*, struct stat64*);
int __spill___xstat(int, const char*, struct stat*);
int __spill___lxstat(int, const char*, struct stat*);
int __spill___fxstat(int, int, struct stat*);
int __spill___fxstatat(int, int, const char*, struct stat*, int);
int __spill___xstat64(int, const char*, struct stat64*);
int __spill___lxstat64(int, const char*, struct stat64*);
int __spill___fxstat64(int, int, struct stat64*);
int __spill___fxstatat64(int, int, const char*, struct stat64*, int);
int __spill_access(const char*, int);
int __spill_mkdir(const char*, mode_t);
int __spill_rename(const char*, const char*);
int __spill_symlink(const char*, const char*);
ssize_t __spill_readlink(const char*, char*, size_t);
char* __spill_realpath(const char*, char*);
char* __spill_getcwd(char*, size_t);
int __spill_chdir(const char*);
int __spill_unlink(const char*);
int __spill_rmdir(const char*);
int __spill_mkstemp(char*);
char* __spill_mkdtemp(char*);
DIR* __spill_opendir(const char*);
int __spill_utimensat(int, const char*, const timespec*, int);
}

namespace {

using fake::read_object;
using fake::read_string;
using fake::spilled_object;
using fake::spilled_string;
using Paths = fake::SpillTest;

TEST_F(Paths, MakeFindAndRemove) {
  char* folder = spilled_string(testing::TempDir() + "spillway-paths-XXXXXX");
  ASSERT_EQ(__spill_mkdtemp(folder), folder);
  const std::string base = read_string(folder);
  EXPECT_EQ(base.find("XXXXXX"), std::string::npos);
  auto path = [&](const char* name) { return spilled_string(base + name); };
  const int made = __spill_open(path("/one"), O_CREAT | O_RDWR, 0640);
  ASSERT_GE(made, 0);
  struct stat* status = spilled_object<struct stat>();
  EXPECT_EQ(__spill_stat(path("/one"), status), 0);
  EXPECT_EQ(read_object(status).st_mode & 0777, 0640 & ~umask(0));
  umask(022);
  EXPECT_EQ(__spill___fxstat(1, made, status), 0);
  struct stat64* status64 = spilled_object<struct stat64>();
  EXPECT_EQ(__spill_stat64(path("/one"), status64), 0);
  EXPECT_EQ(read_object(status64).st_ino, read_object(status).st_ino);
  close(made);
  EXPECT_EQ(__spill_access(path("/one"), R_OK), 0);
  EXPECT_EQ(__spill_access(path("/none"), R_OK), -1);
  EXPECT_EQ(errno, ENOENT);
  const timespec times[2] = {{1000, 5}, {2000, 7}};
  char* spilled_times = fake::allocate(sizeof times, 4096 - 9);
  spill::copy(spilled_times, times, sizeof times);
  EXPECT_EQ(__spill_utimensat(AT_FDCWD, path("/one"), reinterpret_cast<timespec*>(spilled_times), 0), 0);
  EXPECT_EQ(__spill_stat(path("/one"), status), 0);
  EXPECT_EQ(read_object(status).st_mtim.tv_sec, 2000);
  EXPECT_EQ(__spill_rename(path("/one"), path("/two")), 0);
  EXPECT_EQ(__spill_symlink(spilled_string("two"), path("/link")), 0);
  char* to = fake::allocate(PATH_MAX, 4090);
  EXPECT_EQ(__spill_readlink(path("/link"), to, PATH_MAX), 3);
  EXPECT_EQ(read_string(to), "two");
  EXPECT_EQ(__spill_realpath(path("/link"), to), to);
  EXPECT_EQ(read_string(to), base + "/two");
  EXPECT_EQ(__spill_mkdir(path("/sub"), 0755), 0);
  char* here = fake::allocate(PATH_MAX, 4000);
  ASSERT_EQ(__spill_getcwd(here, PATH_MAX), here);
  EXPECT_EQ(__spill_chdir(path("/sub")), 0);
  EXPECT_EQ(read_string(__spill_getcwd(to, PATH_MAX)), base + "/sub");
  EXPECT_EQ(__spill_getcwd(to, 3), nullptr);
  EXPECT_EQ(errno, ERANGE);
  EXPECT_EQ(__spill_chdir(here), 0);
  DIR* open_folder = __spill_opendir(folder);
  ASSERT_NE(open_folder, nullptr);
  const int two = __spill_openat64(dirfd(open_folder), spilled_string("two"), O_RDONLY);
  EXPECT_GE(two, 0);
  close(two);
  closedir(open_folder);
  char* temporary = spilled_string(base + "/XXXXXX");
  close(__spill_mkstemp(temporary));
  EXPECT_EQ(__spill_unlink(temporary), 0);
  for (const char* name : {"/two", "/link"}) EXPECT_EQ(__spill_unlink(path(name)), 0);
  EXPECT_EQ(__spill_rmdir(path("/sub")), 0);
  EXPECT_EQ(__spill_rmdir(folder), 0);
}

// For programs that were built against a C library before 2.33.
TEST_F(Paths, StatusByOlderNames) {
  char* folder = spilled_string(testing::TempDir() + "spillway-status-XXXXXX");
  ASSERT_EQ(__spill_mkdtemp(folder), folder);
  const std::string base = read_string(folder);
  const char *path = spilled_string(base + "/file"), *link = spilled_string(base + "/link");
  const int file = __spill_open(path, O_CREAT | O_RDWR, 0600);
  ASSERT_EQ(ftruncate(file, 1234), 0);
  ASSERT_EQ(__spill_symlink(spilled_string("file"), link), 0);
  const int at = open(base.c_str(), O_RDONLY | O_DIRECTORY);
  struct stat* status = spilled_object<struct stat>();
  struct stat64* status64 = spilled_object<struct stat64>();
  const auto expect = [](int result, auto* known, off_t bytes) {
    EXPECT_EQ(result, 0);
    EXPECT_EQ(read_object(known).st_size, bytes);
  };
  expect(__spill___xstat(1, link, status), status, 1234);
  expect(__spill___lxstat(1, link, status), status, 4);
  expect(__spill___fxstat(1, file, status), status, 1234);
  expect(__spill___fxstatat(1, at, spilled_string("link"), status, AT_SYMLINK_NOFOLLOW), status, 4);
  expect(__spill___xstat64(1, link, status64), status64, 1234);
  expect(__spill___lxstat64(1, link, status64), status64, 4);
  expect(__spill___fxstat64(1, file, status64), status64, 1234);
  expect(__spill___fxstatat64(1, at, spilled_string("link"), status64, AT_SYMLINK_NOFOLLOW), status64, 4);
  close(file);
  close(at);
  for (const char* name : {path, link}) EXPECT_EQ(__spill_unlink(name), 0);
  EXPECT_EQ(__spill_rmdir(folder), 0);
}

}  // namespace
