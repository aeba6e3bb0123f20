// Arrays of static storage as stacks, of handlers and of children of clone(). With pages larger than the machine's they may begin and end in
// plain memory, where the cache has no pages; a child's stack is told by its end, behind which lies something else.
// spillcc: -fspill-globals
// levels: O2
// memory: 2M
// pages: 16K 64K
// chaos: 4
// expect: cache.evictions>=10 spill.globals_bytes>=1000000
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "e2e.h"

enum { kBytes = 2000003, kStack = 131072, kLast = 2000, kUsed = 100000 };

static unsigned char data[kBytes];
static unsigned char childs[1 << 18];
static volatile uint64_t handled_at;

static unsigned char byte_of(size_t i) { return (unsigned char)(i * 7 + i / 251); }

static void handle(int number) {
  unsigned char frame[5000];
  memset(frame, number, sizeof frame);
  handled_at = (uint64_t)frame;
  HIDE(number);
  CHECK(frame[777] == SIGUSR1);
}

static void check(size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) CHECK(data[i] == byte_of(i));
}

static void handle_on(unsigned char* stack) {
  const stack_t wanted = {.ss_sp = stack, .ss_size = kStack};
  CHECK(sigaltstack(&wanted, NULL) == 0);
  handled_at = 0;
  CHECK(raise(SIGUSR1) == 0);
  CHECK(handled_at - (uint64_t)stack < kStack);
}

static void handlers(void) {
  for (size_t i = 0; i < kBytes; ++i) data[i] = byte_of(i);
  const struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
  CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
  handle_on(data);
  handle_on(data + kBytes - kLast - kStack);
  const stack_t none = {.ss_flags = SS_DISABLE};
  CHECK(sigaltstack(&none, NULL) == 0);
  check(0, kStack - kUsed);
  check(kStack, kBytes - kLast - kUsed);
  check(kBytes - kLast, kBytes);
}

static int child(void* argument) {
  unsigned char frame[30000];
  memset(frame, 1, sizeof frame);
  HIDE(argument);
  *(int*)argument = frame[777] + data[kBytes / 2];
  _exit(8);
}

static void children(void) {
  for (int i = 0; i < 2; ++i) {
    memset(childs, i, sizeof childs);
    int result = 0, status;
    const int pid = clone(child, childs + sizeof childs, CLONE_VM | CLONE_VFORK | SIGCHLD, &result);
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 8);
    CHECK(result == 1 + byte_of(kBytes / 2));
  }
}

int main(void) {
  handlers();
  children();
  puts("stacks");
  return 0;
}
