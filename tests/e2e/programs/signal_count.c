// Queued signals that arrive while the main thread is inside the runtime, which defers them: each is delivered
// once, in order, with its value.
// flags: -pthread
// levels: O2
// chaos: 2
// pages: 4K 16K
// expect: cache.evictions>=500
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
#include "e2e.h"

enum { kSignals = 3000, kWords = 1 << 19 };

static unsigned* values;  // spilled
static volatile int count;
static volatile int sent;

static void on_signal(int number, siginfo_t* info, void* context) {
  (void)context;
  CHECK(number == SIGRTMIN + 1);
  values[count++] = (unsigned)info->si_value.sival_int;
}

static void* send(void* unused) {
  for (int i = 0; i < kSignals; ++i) {
    union sigval value = {.sival_int = i * 7};
    while (sigqueue(getpid(), SIGRTMIN + 1, value) != 0) usleep(100);
    if (i % 8 == 0) usleep(50);
    sent = i + 1;
  }
  return unused;
}

int main(void) {
  values = calloc(kSignals, sizeof *values);
  unsigned* words = calloc(kWords, sizeof *words);
  CHECK_SPILLED(words);
  struct sigaction action = {0};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  CHECK(sigaction(SIGRTMIN + 1, &action, NULL) == 0);
  // Only this thread takes them.
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGRTMIN + 1);
  pthread_t sender;
  pthread_sigmask(SIG_BLOCK, &blocked, NULL);
  CHECK(pthread_create(&sender, NULL, send, NULL) == 0);
  pthread_sigmask(SIG_UNBLOCK, &blocked, NULL);
  uint64_t random = 3, added = 0;
  while (sent < kSignals) {
    for (int i = 0; i < 100; ++i, ++added) ++words[next_random(&random) % kWords];
  }
  pthread_join(sender, NULL);
  // What is still pending comes at once.
  struct timespec until, now;
  clock_gettime(CLOCK_MONOTONIC, &until);
  do {
    for (int i = 0; i < 100; ++i, ++added) ++words[next_random(&random) % kWords];
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while (count < kSignals && now.tv_sec < until.tv_sec + 100);
  CHECK(count == kSignals);
  for (int i = 0; i < kSignals; ++i) CHECK(values[i] == (unsigned)i * 7);
  uint64_t sum = 0;
  for (unsigned i = 0; i < kWords; ++i) sum += words[i];
  CHECK(sum == added);
  printf("%d signals\n", count);
  return 0;
}
