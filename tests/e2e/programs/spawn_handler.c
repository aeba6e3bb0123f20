// A handler that starts a program while posix_spawnp() is under way in the code that it interrupts, with a large environment of
// the program's own making in spilled memory.
// levels: O2
// pages: 4K
// chaos: 1
#define _GNU_SOURCE
#include <signal.h>
#include <spawn.h>
#include <sys/time.h>
#include <unistd.h>

#include "e2e.h"

enum { kVariables = 2000, kCalls = 60 };

static char** arguments;
static volatile sig_atomic_t started;  // by the handler

static char* text(const char* from) {
  char* copied = strdup(from);
  CHECK_SPILLED(copied);
  return copied;
}

static void start(void) {
  pid_t child;
  char* nothing[] = {NULL};
  CHECK(posix_spawnp(&child, "true", NULL, NULL, arguments, nothing) == 0);
}

static void start_too(int number) {
  (void)number;
  if (started == kCalls) return;
  start();
  ++started;
}

int main(void) {
  alarm(200);
  arguments = calloc(2, sizeof *arguments);
  arguments[0] = text("true");
  char** const environment = calloc(kVariables + 2, sizeof *environment);
  CHECK_SPILLED(environment);
  environment[0] = text("PATH=/usr/bin:/bin");
  char* const variable = text("NAME=value");
  for (int i = 1; i <= kVariables; ++i) environment[i] = variable;
  char** const before = environ;
  environ = environment;
  CHECK(signal(SIGPROF, start_too) != SIG_ERR);
  const struct itimerval often = {{0, 1000}, {0, 1000}};
  CHECK(setitimer(ITIMER_PROF, &often, NULL) == 0);
  int calls = 0;
  while (calls < kCalls || started == 0) {
    start();
    ++calls;
  }
  CHECK(setitimer(ITIMER_PROF, &(struct itimerval){0}, NULL) == 0);
  for (int i = 0; i < calls + started; ++i) {
    int status;
    CHECK(wait(&status) > 0 && status == 0);
  }
  CHECK(environ == environment);
  environ = before;
  puts("started");
  return 0;
}
