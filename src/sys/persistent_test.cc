#include "sys/persistent.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "sys/memory.h"

namespace sys {
namespace {

TEST(Persistent, AMappedFileIsTheFile) {
  const int file = ::open(testing::TempDir().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  ASSERT_GE(file, 0);
  ASSERT_EQ(ftruncate(file, 8192), 0);
  auto mapped = map_file(file, 8192, false);
  ASSERT_TRUE(mapped) << mapped.error().message;
  (*mapped)[5000] = 'x';
  if (fork() == 0) {
    (*mapped)[5001] = 'y';
    _exit(0);
  }
  wait(nullptr);
  char bytes[2];
  ASSERT_EQ(pread(file, bytes, 2, 5000), 2);
  EXPECT_EQ(bytes[0], 'x');
  EXPECT_EQ(bytes[1], 'y') << "of the child";
  unmap(*mapped, 8192);
  close(file);
}

TEST(Persistent, WhatIsNotMemoryIsRefused) {
  const int file = ::open(testing::TempDir().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  ASSERT_EQ(ftruncate(file, 8192), 0);
  auto mapped = map_file(file, 8192, true);
  close(file);
  if (mapped) GTEST_SKIP() << testing::TempDir() << " lies in persistent memory";
  EXPECT_EQ(mapped.error().number, EOPNOTSUPP);
}

}  // namespace
}  // namespace sys
