// Children of fork that end without exec: at once, by a signal, or after looking at what is in memory. What they
// do never reaches the parent, which goes on, with other threads too.
// flags: -pthread
// pages: 4K 16K
// expect: cache.evictions>=500
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "e2e.h"

enum { kWords = 400000 };
static volatile int stop;

static void* churn(void* argument) {
  unsigned seed = (unsigned)(uintptr_t)argument;
  unsigned* own = malloc(kWords * 4);
  for (unsigned i = 0; i < kWords; ++i) own[i] = i + seed;
  while (!stop)
    for (unsigned i = 0; i < kWords; i += 531) CHECK(own[i] == i + seed);
  for (unsigned i = 0; i < kWords; ++i) CHECK(own[i] == i + seed);
  free(own);
  return NULL;
}

int main(void) {
  unsigned* data = malloc(kWords * 4);
  CHECK_SPILLED(data);
  for (unsigned i = 0; i < kWords; ++i) data[i] = i * 3;
  pthread_t threads[2];
  for (int t = 0; t < 2; ++t) CHECK(pthread_create(&threads[t], NULL, churn, (void*)(uintptr_t)(t + 5)) == 0);
  for (int round = 0; round < 20; ++round) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      if (round % 4 == 1) raise(SIGKILL);
      if (round % 4 == 2) pause();
      _exit(round);
    }
    for (unsigned i = 0; i < kWords; i += 1001) data[i] += 1;
    if (round % 4 == 2) kill(child, SIGTERM);
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    if (round % 4 == 1) CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    if (round % 4 == 2) CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    if (round % 4 == 0 || round % 4 == 3) CHECK(WIFEXITED(status) && WEXITSTATUS(status) == round);
  }
  stop = 1;
  for (int t = 0; t < 2; ++t) pthread_join(threads[t], NULL);
  for (unsigned i = 0; i < kWords; ++i) CHECK(data[i] == i * 3 + (i % 1001 == 0 ? 20 : 0));
  printf("parent goes on\n");
  return 0;
}
