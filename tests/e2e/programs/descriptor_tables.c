// Tables of descriptors of some threads' own: in a program of one thread, and in a child of fork, there is nobody else to have another
// one. With several threads they are refused, since the runtime's threads use what each of the program's opens.
// flags: -pthread
// levels: O2
// pages: 4K 16K
// expect: cache.evictions>=100
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "e2e.h"

enum { kBytes = 3 << 20 };

static unsigned char* data;

static int holds(void) {
  for (int i = 0; i < kBytes; i += 64)
    if (data[i] != (unsigned char)(i >> 6)) return 0;
  return 1;
}

// The child's end of a pipe is closed for everybody when it has closed it, though it goes on.
static void let_go_in_child(void) {
  int watched[2], told[2], asked[2];
  CHECK(pipe(watched) == 0 && pipe(told) == 0 && pipe(asked) == 0);
  const pid_t child = fork();
  if (child == 0) {
    close(asked[1]);
    if (close_range((unsigned)watched[1], (unsigned)watched[1], CLOSE_RANGE_UNSHARE) != 0) _exit(2);
    if (write(told[1], "", 1) != 1) _exit(3);
    char byte;
    if (read(asked[0], &byte, 1) != 0) _exit(4);
    _exit(holds() ? 0 : 5);
  }
  close(watched[1]);
  char byte;
  CHECK(read(told[0], &byte, 1) == 1);
  struct pollfd end = {watched[0], POLLIN, 0};
  CHECK(poll(&end, 1, 0) == 1 && (end.revents & POLLHUP) != 0);
  close(asked[1]);
  expect_end(child);
  close(watched[0]), close(told[0]), close(told[1]), close(asked[0]);
}

// What it would be natively is nothing to test.
static void expect_refusal(long result) { CHECK(!runs_spilled() || (result == -1 && errno == ENOTSUP)); }

static void* ask(void* unused) {
  (void)unused;
  expect_refusal(unshare(CLONE_FILES));
  expect_refusal(syscall(SYS_unshare, CLONE_FILES));
  const int file = dup(0);
  expect_refusal(close_range((unsigned)file, (unsigned)file, CLOSE_RANGE_UNSHARE));
  CHECK(!runs_spilled() || fcntl(file, F_GETFD) == 0);
  CHECK(unshare(0) == 0 && close_range((unsigned)file, (unsigned)file, CLOSE_RANGE_CLOEXEC) == 0);
  return NULL;
}

int main(void) {
  if (unshare(CLONE_FILES) != 0) {
    printf("unshare is not permitted here\n");
    return 77;
  }
  data = malloc(kBytes);
  CHECK_SPILLED(data);
  for (int i = 0; i < kBytes; ++i) data[i] = (unsigned char)(i >> 6);
  CHECK(holds());
  let_go_in_child();
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, ask, NULL) == 0 && pthread_join(thread, NULL) == 0);
  CHECK(unshare(CLONE_FILES) == 0);
  CHECK(holds());
  printf("ok\n");
  return 0;
}
