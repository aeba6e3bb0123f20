// A parent that ends first, as of a daemon, or is killed: its child has all it needs, and goes on for long. A child that is
// killed: its parent goes on, and uses storage again.
// case: daemon
// case: killed_parent
// case: killed_child
// case: closes
// expect: cache.evictions>=200
#define _GNU_SOURCE
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "e2e.h"

enum { kWords = 600000 };

static unsigned* data;

static void fill(unsigned by) {
  for (unsigned i = 0; i < kWords; ++i) data[i] = i * 5 + by;
}
static int holds(unsigned by) {
  for (unsigned i = 0; i < kWords; ++i)
    if (data[i] != i * 5 + by) return 0;
  return 1;
}

// What a daemon does, whose parent is gone: reads, changes, allocates, makes children.
static void serve(int report) {
  if (!holds(0)) _exit(3);
  for (unsigned turn = 1; turn <= 3; ++turn) {
    fill(turn);
    pid_t child = fork();
    if (child == 0) _exit(holds(turn) ? 0 : 4);
    fill(turn + 10);
    int status;
    if (waitpid(child, &status, 0) != child || status != 0) _exit(5);
    if (!holds(turn + 10)) _exit(6);
  }
  char* more = calloc(1, 1 << 20);
  for (int i = 0; i < 1 << 20; ++i)
    if (more[i] != 0) _exit(7);
  if (write(report, "k", 1) != 1) _exit(8);
  _exit(0);
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  data = malloc(kWords * 4);
  CHECK_SPILLED(data);
  fill(0);
  int report[2];
  CHECK(pipe(report) == 0);
  char byte = 0;
  if (strcmp(argv[1], "killed_child") == 0) {
    for (unsigned turn = 0; turn < 8; ++turn) {
      pid_t child = fork();
      if (child == 0)
        for (;;) fill(turn + 100);
      fill(turn + 1);
      if (turn % 2 == 0) usleep(30000);
      kill(child, SIGKILL);
      int status;
      CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
      CHECK(holds(turn + 1));
    }
  } else if (strcmp(argv[1], "closes") == 0) {
    // It closes whatever descriptors it finds: those of the runtime stay, by compiled code.
    pid_t child = fork();
    if (child == 0) {
      for (int i = 3; i < 2000; ++i)
        if (i != report[1]) close(i);
      serve(report[1]);
    }
    fill(50);
    expect_end(child);
    CHECK(holds(50));
  } else {
    // The process in the middle makes the daemon and is gone.
    pid_t middle = fork();
    if (middle == 0) {
      if (setsid() < 0) _exit(9);
      if (fork() == 0) {
        close(report[0]);
        usleep(argv[1][0] == 'd' ? 50000 : 0);
        serve(report[1]);
      }
      if (argv[1][0] == 'k') {
        fill(77);
        raise(SIGKILL);
      }
      _exit(0);
    }
    int status;
    CHECK(waitpid(middle, &status, 0) == middle);
    close(report[1]);
    fill(60);
    CHECK(read(report[0], &byte, 1) == 1 && byte == 'k');
    CHECK(holds(60));
  }
  printf("%s\n", argv[1]);
  return 0;
}
