// Children of vfork become programs with more than 64 KiB of arguments in spilled memory: what the arguments were copied to, in their parent's
// memory, is given back.
// levels: O2
// pages: 4K
#define _GNU_SOURCE
#include <unistd.h>
#include "e2e.h"

enum { kRounds = 300, kBytes = 100000, kTolerated = 10 << 20 };

static char* shell;
static char** arguments;

static size_t mapped_bytes(void) {
  unsigned long pages;
  FILE* file = fopen("/proc/self/statm", "r");
  CHECK(file != NULL && fscanf(file, "%lu", &pages) == 1);
  fclose(file);
  return pages * 4096;
}

static void run(void) {
  const pid_t child = vfork();
  if (child == 0) {
    execve(shell, arguments, environ);
    _exit(99);
  }
  expect_end(child);
}

int main(void) {
  shell = strcpy(spilled_zeros(10), "/bin/sh");
  arguments = spilled_zeros(5 * sizeof *arguments);
  arguments[0] = strcpy(spilled_zeros(10), "sh");
  arguments[1] = strcpy(spilled_zeros(10), "-c");
  arguments[2] = strcpy(spilled_zeros(100), "[ ${#0} = 100000 ]");
  arguments[3] = memset(spilled_zeros(kBytes + 1), 'x', kBytes);
  push_out(3 << 20);
  run();
  const size_t before = mapped_bytes();
  for (int round = 0; round < kRounds; ++round) run();
  CHECK(mapped_bytes() < before + kTolerated);
  puts("run");
  return 0;
}
