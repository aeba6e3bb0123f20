// A child of fork that goes on: what it reads is what its parent had, what it stores is its own, or, when it comes too
// late, it ends by itself with one line that says why. Its parent goes on with its memory as it was.
// case: store
// case: allocate
// case: miss
// case: prompt
// case: late
// case: foreign
// stderr: ^(spillway: a child of fork that goes on without exec [^\n]*\n)?$
// chaos: 0
// expect: cache.evictions>=500
#include <sys/wait.h>
#include <unistd.h>
#include "e2e.h"

enum { kWords = 400000 };

// Until the parent is out of fork: by then it is late.
static void wait_for_parent(const int gone_on[2]) {
  char go;
  if (read(gone_on[0], &go, 1) != 1) _exit(4);
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  unsigned* data = malloc(kWords * 4);
  CHECK_SPILLED(data);
  for (unsigned i = 0; i < kWords; ++i) data[i] = i * 3;
  data[5] += 1;
  char* strings[30];
  for (int n = 0; n < 30; ++n) {
    strings[n] = malloc(3000);
    snprintf(strings[n], 3000, "string number %d", n);
  }
  int ends[2], gone_on[2];
  CHECK(pipe(ends) == 0 && pipe(gone_on) == 0);
  // Assembly with the address in a register is not translated: its page is mapped at its own address.
  char byte;
  __asm__ volatile("movb (%1), %0" : "=q"(byte) : "r"(strings[3]) : "memory");
  pid_t child = fork();
  if (child == 0) {
    if (strcmp(argv[1], "store") == 0) data[5] = 777;
    if (strcmp(argv[1], "allocate") == 0) {
      char* own = malloc(100);
      strcpy(own, "memory of the child's own is plain");
      if (write(ends[1], own, strlen(own)) == (ssize_t)strlen(own)) _exit(0);
    }
    if (strcmp(argv[1], "miss") == 0)
      for (unsigned i = 0; i < kWords; i += 1000)
        if (data[i] != i * 3) _exit(3);
    if (strcmp(argv[1], "prompt") == 0 || strcmp(argv[1], "late") == 0) {
      if (argv[1][0] == 'l') wait_for_parent(gone_on);
      char text[40];
      for (int n = 0; n < 30; ++n) {
        snprintf(text, sizeof text, "string number %d", n);
        if (strcmp(text, strings[n]) != 0) _exit(3);
      }
      _exit(0);
    }
    if (strcmp(argv[1], "foreign") == 0) {
      wait_for_parent(gone_on);
      __asm__ volatile("movb (%1), %0" : "=q"(byte) : "r"(strings[3]) : "memory");
      _exit(byte == 's' ? 0 : 3);
    }
    if (data[5] != (strcmp(argv[1], "store") == 0 ? 777 : 16)) _exit(3);
    _exit(0);
  }
  CHECK(write(gone_on[1], "g", 1) == 1);
  // Whatever the child reads, its parent uses the frames for other pages meanwhile.
  for (int round = 0; round < 3; ++round)
    for (unsigned i = 6; i < kWords; ++i) CHECK(data[i] == i * 3);
  for (int n = 0; n < 30; ++n) memset(strings[n], 'x', 3000);
  int status;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  // With the defaults some of it is plain. Misses may take longer than the parent waits.
  const int late = strcmp(argv[1], "late") == 0 || strcmp(argv[1], "foreign") == 0;
  if (!(late && runs_spilled()) && WEXITSTATUS(status) == 0) {
  } else if (late || strcmp(argv[1], "miss") == 0) {
    CHECK(WEXITSTATUS(status) == 134);
  } else {
    CHECK(WEXITSTATUS(status) == 0);
  }
  CHECK(data[5] == 16);
  for (unsigned i = 6; i < kWords; ++i) CHECK(data[i] == i * 3);
  printf("parent goes on\n");
  return 0;
}
