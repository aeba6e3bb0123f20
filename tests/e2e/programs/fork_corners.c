// Rare ways to a copy of the process: clone on a stack from the heap, fork from a thread whose stack is from the heap (which
// spilled memory cannot be), children of vfork while the parent's frames become its own again, new kinds of clone.
// flags: -pthread
// levels: O2
// memory: 2M
// case: clone
// case: thread
// case: vfork
// case: kinds
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "e2e.h"

enum { kWords = 3 << 18, kStack = 1 << 18 };

static unsigned* data;

static int holds(unsigned by) {
  for (unsigned i = 0; i < kWords; i += 64)
    if (data[i] != i + by) return 0;
  return 1;
}
static void fill(unsigned by) {
  for (unsigned i = 0; i < kWords; ++i) data[i] = i + by;
}

static int run_clone(void* argument) {
  volatile char on_stack[1000];
  for (int i = 0; i < 1000; ++i) on_stack[i] = (char)i;
  const unsigned by = *(unsigned*)argument;
  if (!holds(by)) return 3;
  fill(by + 100);
  return holds(by + 100) && on_stack[77] == 77 ? 0 : 4;
}

static void* fork_in_thread(void* unused) {
  (void)unused;
  for (int n = 0; n < 3; ++n) {
    const pid_t child = fork();
    if (child == 0) _exit(holds(0) ? 0 : 3);
    if (is_spilled(__builtin_frame_address(0)))
      CHECK(child == -1 && errno == ENOTSUP);
    else
      expect_end(child);
  }
  return NULL;
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  data = malloc(kWords * sizeof *data);
  CHECK_SPILLED(data);
  fill(0);
  char* stack = malloc(kStack);
  CHECK_SPILLED(stack);
  if (strcmp(argv[1], "clone") == 0) {
    unsigned by = 0;
    for (; by < 3; ++by) {
      const pid_t child = clone(run_clone, stack + kStack, SIGCHLD, &by);
      fill(by + 1);
      expect_end(child);
      CHECK(holds(by + 1));
    }
  } else if (strcmp(argv[1], "thread") == 0) {
    pthread_attr_t attributes;
    char* aligned = stack + (-(uintptr_t)stack & 4095);
    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstack(&attributes, aligned, kStack - 8192) == 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, &attributes, fork_in_thread, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    // Others may, and it is the others' memory then.
    const pid_t child = fork();
    if (child == 0) _exit(holds(0) ? 0 : 3);
    expect_end(child);
  } else if (strcmp(argv[1], "vfork") == 0) {
    for (int turn = 0; turn < 3; ++turn) {
      const pid_t child = fork();
      if (child == 0) _exit(0);
      expect_end(child);
      uint64_t random = 1;
      for (int n = 0; n < 40; ++n) {
        const pid_t shares = vfork();
        if (shares == 0) {
          for (int i = 0; i < 4000; ++i) {
            const unsigned at = next_random(&random) % (kWords / 8);
            data[at] = at;
          }
          _exit(0);
        }
        expect_end(shares);
      }
      CHECK(holds(0));
    }
  } else {
    // Nothing is begun.
    const long copy = syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0);
    if (copy == 0) _exit(0);
    if (runs_spilled())
      CHECK(copy == -1 && errno == ENOTSUP);
    else if (copy > 0)
      expect_end((pid_t)copy);
    uint64_t how[8] = {0, 0, 0, 0, SIGCHLD};
    const long third = syscall(SYS_clone3, how, sizeof how);
    if (third == 0) _exit(0);
    if (runs_spilled())
      CHECK(third == -1 && errno == ENOSYS);
    else if (third > 0)
      expect_end((pid_t)third);
    // The kernel cannot store to the child's word; what it tells its parent is stored.
    int* word = malloc(sizeof *word);
    CHECK_SPILLED(word);
    *word = 0;
    if (runs_spilled()) {
      const int flags = CLONE_CHILD_SETTID | SIGCHLD;
      CHECK(clone(run_clone, stack + kStack, flags, NULL, NULL, NULL, word) == -1 && errno == ENOTSUP);
      errno = 0;
      CHECK(syscall(SYS_clone, CLONE_CHILD_CLEARTID | SIGCHLD, 0, 0, word, 0) == -1 && errno == ENOTSUP);
    }
    const long told = syscall(SYS_clone, CLONE_PARENT_SETTID | SIGCHLD, 0, word, 0, 0);
    if (told == 0) _exit(*word == 0 && holds(0) ? 0 : 3);
    CHECK(*word == told);
    expect_end((pid_t)told);
    CHECK(holds(0));
  }
  printf("%s\n", argv[1]);
  return 0;
}
