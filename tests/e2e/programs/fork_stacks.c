// fork on stacks that the program made in its heap: parent and child go on on the same addresses, each on its own.
// levels: O0 O2
// memory: 2M
// expect: cache.evictions>=100
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include "e2e.h"

enum { kWords = 600000, kStack = 1 << 17 };

static unsigned* data;
static ucontext_t back, inside;
static int result = -1;

static int holds(unsigned by) {
  for (unsigned i = 0; i < kWords; ++i)
    if (data[i] != i + by) return 0;
  return 1;
}

static int recurse(int depth, unsigned by) {
  volatile int kept[100];
  for (int i = 0; i < 100; ++i) kept[i] = depth + i + (int)by;
  int sum = depth == 0 ? (holds(by) ? 0 : 1000000) : recurse(depth - 1, by);
  for (int i = 0; i < 100; ++i) sum += kept[i] != depth + i + (int)by;
  return sum;
}

static volatile int counted;
static void count(int number) {
  (void)number;
  counted = counted + 1;
}

static void run_inside(void) {
  volatile int mark[200];
  for (int turn = 0; turn < 3; ++turn) {
    for (int i = 0; i < 200; ++i) mark[i] = i * turn;
    pid_t child = fork();
    if (child == 0) {
      for (int i = 0; i < 200; ++i)
        if (mark[i] != i * turn) _exit(3);
      for (int i = 0; i < 200; ++i) mark[i] = -1;
      if (raise(SIGUSR1) != 0 || counted != 1) _exit(4);
      if (recurse(30, (unsigned)turn) != 0) _exit(5);
      pid_t next = fork();
      if (next == 0) _exit(mark[7] == -1 && recurse(20, (unsigned)turn) == 0 ? 0 : 6);
      for (int i = 0; i < 200; ++i) mark[i] = -2;
      int status;
      if (waitpid(next, &status, 0) != next || status != 0) _exit(7);
      _exit(0);
    }
    for (int i = 0; i < 200; ++i) CHECK(mark[i] == i * turn);
    for (int i = 0; i < 200; ++i) mark[i] = -3;
    for (unsigned i = 0; i < kWords; ++i) data[i] += 1;
    CHECK(recurse(30, (unsigned)turn + 1) == 0);
    expect_end(child);
    for (int i = 0; i < 200; ++i) CHECK(mark[i] == -3);
  }
  result = 0;
}

int main(void) {
  data = malloc(kWords * 4);
  CHECK_SPILLED(data);
  for (unsigned i = 0; i < kWords; ++i) data[i] = i;
  char* stack = malloc(kStack);
  char* other = malloc(1 << 15);
  const stack_t alternate = {.ss_sp = other, .ss_size = 1 << 15};
  CHECK(sigaltstack(&alternate, NULL) == 0);
  const struct sigaction action = {.sa_handler = count, .sa_flags = SA_ONSTACK};
  CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
  CHECK(getcontext(&inside) == 0);
  inside.uc_stack.ss_sp = stack;
  inside.uc_stack.ss_size = kStack;
  inside.uc_link = &back;
  makecontext(&inside, run_inside, 0);
  CHECK(swapcontext(&back, &inside) == 0);
  CHECK(result == 0);
  CHECK(raise(SIGUSR1) == 0 && counted == 1);
  printf("ok\n");
  return 0;
}
