// memory: 3M
// expect: cache.evictions>=50
//
// Children of clone() that have the memory in common and run on a block of the heap, where their number is stored, too, while their parent stands
// still. If it did not, both would have the same hazard slots: that is refused.
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "e2e.h"

enum { kBytes = 6 << 20, kStack = 256 << 10 };
static unsigned char* all;
static unsigned expected;

static int child(void* argument) {
  unsigned char frame[30000];
  memset(frame, 1, sizeof frame);
  HIDE(argument);
  unsigned sum = 0;
  for (int i = 0; i < kBytes; i += 1021) sum += all[i];
  int* result = argument;
  *result = sum == expected ? frame[777] + 41 : -1;
  _exit(8);
}

int main(void) {
  all = malloc(kBytes);
  CHECK_SPILLED(all);
  for (int i = 0; i < kBytes; ++i) all[i] = (unsigned char)(i * 11);
  for (int i = 0; i < kBytes; i += 1021) expected += all[i];
  for (int i = 0; i < 60; ++i) {
    char* stack = malloc(kStack);
    int *result = malloc(sizeof *result), *number = malloc(sizeof *number);
    *result = *number = 0;
    const int pid =
        clone(child, stack + kStack, CLONE_VM | CLONE_VFORK | CLONE_PARENT_SETTID | SIGCHLD, result, number);
    CHECK(pid > 0 && *number == pid);
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 8);
    CHECK(*result == 42);
    free(result);
    free(number);
    free(stack);
  }
  if (runs_spilled()) {
    static char plain[kStack] __attribute__((aligned(16)));
    errno = 0;
    CHECK(clone(child, plain + kStack, CLONE_VM | SIGCHLD, NULL) == -1 && errno == ENOTSUP);
    errno = 0;
    CHECK(syscall(SYS_clone, CLONE_VM | SIGCHLD, plain + kStack, 0, 0, 0) == -1 && errno == ENOTSUP);
    CHECK(waitpid(-1, NULL, 0) == -1 && errno == ECHILD);
  }
  printf("ok %u\n", expected);
  return 0;
}
