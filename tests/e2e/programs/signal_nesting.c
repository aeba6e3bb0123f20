// Handlers nested twenty deep; many signals that arrive at once inside the runtime, none of which is lost, and after
// which none stays blocked.
// flags: -pthread
// levels: O2
// pages: 4K 16K
// case: depth
// case: queue
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#include "e2e.h"

enum { kWords = 1000000, kDepth = 20 };

static unsigned* data;
static volatile int depth, deepest, count, stop;
static volatile long sum;

static void nest(int number) {
  if (++depth > deepest) deepest = depth;
  for (int i = 0; i < 100000; i += 1000) data[i] += 1;
  if (depth < kDepth) raise(number);
  for (int i = 0; i < 100000; i += 1000) data[i] += 1;
  --depth;
}

static void add(int number, siginfo_t* info, void* context) {
  (void)number, (void)context;
  ++count;
  sum += info->si_value.sival_int;
}

static void* thrash(void* state) {
  uint64_t random = 1;
  while (!stop)
    for (int i = 0; i < 1000; ++i) data[next_random(&random) % kWords] += 1;
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, NULL, &blocked);
  for (int number = 1; number < SIGRTMAX; ++number) CHECK(sigismember(&blocked, number) <= 0);
  return state;
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  data = calloc(kWords, 4);
  CHECK_SPILLED(data);
  struct sigaction action = {0};
  if (argv[1][0] == 'd') {
    action.sa_handler = nest;
    action.sa_flags = SA_NODEFER;
    sigaction(SIGUSR1, &action, NULL);
    for (int round = 0; round < 20; ++round) raise(SIGUSR1);
    for (int i = 0; i < 100000; i += 1000) CHECK(data[i] == 20 * 2 * kDepth);
    printf("%d deep\n", deepest);
    return 0;
  }
  action.sa_sigaction = add;
  action.sa_flags = SA_NODEFER | SA_SIGINFO;
  sigaction(SIGRTMIN + 1, &action, NULL);
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGRTMIN + 2, &action, NULL);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, thrash, NULL) == 0);
  int sent = 0;
  long total = 0;
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 50; ++i) {
      union sigval value = {.sival_int = i};
      CHECK(pthread_sigqueue(thread, SIGRTMIN + 1 + i % 2, value) == 0);
      ++sent;
      total += i;
    }
    usleep(2000);
  }
  for (int i = 0; i < 10000 && count < sent; ++i) usleep(10000);
  stop = 1;
  pthread_join(thread, NULL);
  CHECK(count == sent && sum == total);
  printf("all came\n");
  return 0;
}
