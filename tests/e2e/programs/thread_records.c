// Threads that live at the same time have hazard slots of their own, also those whose start routine has returned
// while destructors still run; the slots of dead threads are used again, and nothing else that was theirs.
// flags: -pthread
// levels: O2
// chaos: 1
// pages: 4K
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#include "e2e.h"

enum { kThreads = 30, kEnding = 4, kLater = 200 };

static pthread_key_t key;
static volatile int ending, go_on;
static void* volatile seen[kLater];
static pthread_barrier_t all;

// Where the calling thread's slots are; null natively.
static void* slots(void) {
  void** variable = dlsym(RTLD_DEFAULT, "__spillway_slots");
  return variable != NULL ? *variable : NULL;
}

static void* touch(void) {
  char* block = malloc(10000);
  memset(block, 1, 10000);
  HIDE(block);
  free(block);
  return slots();
}

static void end_slowly(void* index) {
  seen[(size_t)index - 1] = touch();
  __atomic_add_fetch(&ending, 1, __ATOMIC_SEQ_CST);
  while (!go_on) usleep(1000);
  CHECK(touch() == seen[(size_t)index - 1]);
}
static void* end(void* index) {
  pthread_setspecific(key, index);
  return NULL;
}
static void* live(void* index) {
  seen[(size_t)index] = touch();
  pthread_barrier_wait(&all);
  return NULL;
}
static void* come_and_go(void* index) {
  seen[(size_t)index] = touch();
  sigset_t none;
  sigemptyset(&none);
  CHECK(pthread_sigmask(SIG_SETMASK, &none, NULL) == 0);
  return NULL;
}
// What was sent to it, and had to wait, goes with it.
static void* leave_signal(void* unused) {
  sigset_t fault;
  sigemptyset(&fault);
  sigaddset(&fault, SIGSEGV);
  CHECK(pthread_sigmask(SIG_BLOCK, &fault, NULL) == 0 && pthread_kill(pthread_self(), SIGSEGV) == 0);
  touch();
  return unused;
}

// How many different ones are among the first n.
static int different(int n) {
  int count = 0;
  for (int i = 0; i < n; ++i) {
    int known = 0;
    for (int j = 0; j < i; ++j) known |= seen[j] == seen[i];
    count += !known;
  }
  return count;
}

int main(void) {
  CHECK(pthread_key_create(&key, end_slowly) == 0);
  CHECK(pthread_barrier_init(&all, NULL, kThreads - kEnding + 1) == 0);
  pthread_t threads[kThreads];
  for (size_t i = 0; i < kEnding; ++i) CHECK(pthread_create(&threads[i], NULL, end, (void*)(i + 1)) == 0);
  while (ending < kEnding) usleep(1000);
  for (size_t i = kEnding; i < kThreads; ++i) CHECK(pthread_create(&threads[i], NULL, live, (void*)i) == 0);
  pthread_barrier_wait(&all);
  go_on = 1;
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  CHECK(pthread_create(&threads[0], NULL, leave_signal, NULL) == 0);
  pthread_join(threads[0], NULL);
  CHECK(!runs_spilled() || seen[0] != NULL);
  if (seen[0] != NULL) CHECK(different(kThreads) == kThreads);
  for (size_t i = 0; i < kLater; ++i) {
    CHECK(pthread_create(&threads[0], NULL, come_and_go, (void*)i) == 0);
    pthread_join(threads[0], NULL);
  }
  CHECK(different(kLater) <= 2 * kThreads);
  printf("threads\n");
  return 0;
}
