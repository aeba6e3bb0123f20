#include "sys/lifeline.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace sys {
namespace {

// A pipe by which another process says when to go on.
struct Gate {
  int ends[2];
  Gate() { EXPECT_EQ(pipe(ends), 0); }
  ~Gate() {
    close(ends[0]);
    close(ends[1]);
  }
  void open_once() { EXPECT_EQ(write(ends[1], "g", 1), 1); }
  void wait() {
    char byte;
    if (read(ends[0], &byte, 1) != 1) _exit(9);
  }
};

void expect_end(pid_t child) {
  int status;
  ASSERT_EQ(waitpid(child, &status, 0), child);
}

TEST(Lifeline, LastsAsLongAsTheChild) {
  Gate gate;
  Lifeline line;
  ASSERT_TRUE(line.open());
  const pid_t child = fork();
  if (child == 0) {
    line.forget();
    gate.wait();
    _exit(0);
  }
  line.let_go();
  EXPECT_FALSE(line.is_over());
  EXPECT_FALSE(line.is_over());
  gate.open_once();
  expect_end(child);
  EXPECT_TRUE(line.is_over());
  line.close();
}

TEST(Lifeline, EndsWhenTheChildIsKilled) {
  Lifeline line;
  ASSERT_TRUE(line.open());
  const pid_t child = fork();
  if (child == 0)
    for (;;) pause();
  line.let_go();
  EXPECT_FALSE(line.is_over());
  kill(child, SIGKILL);
  expect_end(child);
  EXPECT_TRUE(line.is_over());
  line.close();
}

TEST(Lifeline, EndsWhenTheChildExecs) {
  Gate execed;
  Lifeline line;
  ASSERT_TRUE(line.open());
  const pid_t child = fork();
  if (child == 0) {
    line.forget();
    dup2(execed.ends[1], 1);
    execl("/bin/sh", "sh", "-c", "echo; sleep 60", nullptr);
    _exit(1);
  }
  line.let_go();
  execed.wait();
  EXPECT_TRUE(line.is_over());
  kill(child, SIGKILL);
  expect_end(child);
  line.close();
}

// A child that closes every descriptor it can find, and ends before a child of its own.
TEST(Lifeline, LastsAsLongAsAGrandchild) {
  Gate gate;
  Lifeline line;
  ASSERT_TRUE(line.open());
  const pid_t child = fork();
  if (child == 0) {
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      for (int i = 3; i < 2000; ++i)
        if (i != gate.ends[0]) close(i);
      gate.wait();
    }
    _exit(0);
  }
  line.let_go();
  expect_end(child);
  EXPECT_FALSE(line.is_over());
  gate.open_once();
  for (int tries = 0; tries < 1000 && !line.is_over(); ++tries) usleep(10'000);
  EXPECT_TRUE(line.is_over());
  line.close();
}

// The kernel would send SIGXFSZ, which ends most programs.
TEST(Lifeline, IsRefusedWhereFilesMayNotBeAsLarge) {
  EXPECT_EXIT(
      {
        rlimit limit;
        limit.rlim_cur = limit.rlim_max = 100;
        setrlimit(RLIMIT_FSIZE, &limit);
        Lifeline line;
        const auto opened = line.open();
        _exit(!opened && opened.error().number == EFBIG ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace sys
