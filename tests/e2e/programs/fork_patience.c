// fork and exec on a processor that others keep busy: the child is not cut off from its parent's memory
// before it had a processor for a while.
// levels: O2
// chaos: 0
// expect: cache.evictions>=100
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "e2e.h"

enum { kBusy = 3, kWords = 500000 };

int main(void) {
  unsigned* data = malloc(kWords * 4);
  CHECK_SPILLED(data);
  cpu_set_t first;
  CPU_ZERO(&first);
  CHECK(sched_getaffinity(0, sizeof first, &first) == 0);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &first)) ++cpu;
  CPU_ZERO(&first);
  CPU_SET(cpu, &first);
  CHECK(sched_setaffinity(0, sizeof first, &first) == 0);

  // They end by themselves, should a check fail.
  static pid_t busy[kBusy];
  for (int i = 0; i < kBusy; ++i) {
    busy[i] = vfork();
    if (busy[i] == 0) {
      execl("/bin/sh", "sh", "-c", "ulimit -t 1; while :; do :; done", (char*)NULL);
      _exit(98);
    }
  }
  for (unsigned i = 0; i < kWords; ++i) data[i] = i;
  char* shell = strdup("/bin/true");
  for (int round = 0; round < 2; ++round) {
    pid_t child = fork();
    if (child == 0) {
      nice(19);
      for (unsigned i = 0; i < kWords; i += 10000)
        if (data[i] != i) _exit(97);
      execl(shell, "true", (char*)NULL);
      _exit(99);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    if (status != 0) printf("status %x\n", status);
    CHECK(status == 0);
  }
  for (int i = 0; i < kBusy; ++i) kill(busy[i], SIGKILL);
  for (int i = 0; i < kBusy; ++i) CHECK(waitpid(busy[i], NULL, 0) == busy[i]);
  return 0;
}
