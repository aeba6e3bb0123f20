// A SIGSEGV or SIGBUS that somebody sends does not end the first process of a container, which goes on to pass spilled memory to code that
// spillcc did not compile.
// levels: O2
// expect: cache.evictions>=100
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <unistd.h>
#include "e2e.h"

enum { kBytes = 3 << 20, kRefused = 77 };

static char* data;

// In the first process.
static int outlive_signals(void) {
  if (getpid() != 1) return 3;
  if (raise(SIGSEGV) != 0 || kill(1, SIGBUS) != 0) return 4;
  for (int i = 0; i < kBytes; i += 512)
    if (foreign_load(data + i) != (unsigned char)(i >> 9)) return 5;
  return 0;
}

static int run_container(void) {
  if (unshare(CLONE_NEWPID) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) return kRefused;
  const pid_t first = fork();
  if (first == 0) _exit(outlive_signals());
  int status;
  if (first < 0 || waitpid(first, &status, 0) != first) return 6;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 7;
}

int main(void) {
  data = malloc(kBytes);
  CHECK_SPILLED(data);
  for (int i = 0; i < kBytes; i += 512) data[i] = (char)(i >> 9);
  // Without a thread of the runtime: namespaces of users are only for processes with one thread.
  const pid_t child = _Fork();
  if (child == 0) _exit(run_container());
  int status;
  CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
  if (WEXITSTATUS(status) == kRefused) {
    printf("namespaces of processes are not permitted here\n");
    return kRefused;
  }
  CHECK(WEXITSTATUS(status) == 0);
  printf("ok\n");
  return 0;
}
