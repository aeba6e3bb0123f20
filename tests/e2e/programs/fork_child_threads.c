// Threads that a child of fork makes get their signals, the first one too, and its parent's memory, which lies on
// storage for the most part, while several of them read it at once.
// flags: -pthread
// levels: O2
// pages: 4K
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "e2e.h"

enum { kThreads = 4, kPatience = 100000 };

static volatile sig_atomic_t got;
static volatile int stop;

static void count(int number) {
  (void)number;
  ++got;
}

static void* allocate(void* unused) {
  while (!stop) {
    char* block = malloc(100);
    block[0] = 1;
    HIDE(block);
    free(block);
  }
  return unused;
}

static int child(void) {
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    if (pthread_create(&threads[i], NULL, allocate, NULL) != 0) return 80;
    usleep(1000);
    if (pthread_kill(threads[i], SIGUSR1) != 0) return 81;
    for (int tries = 0; got <= i; ++tries) {
      if (tries == kPatience) return 1 + i;
      usleep(1000);
    }
  }
  stop = 1;
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  return 0;
}

enum { kNumbers = 1 << 18, kPerPage = 1024 };
static unsigned* numbers;  // of main's, most of it on storage

static void* add_up(void* unused) {
  for (unsigned i = 0; i < kNumbers; i += kPerPage)
    if (numbers[i] != i) _exit(91);
  return unused;
}

static int child_of_several(void) {
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i)
    if (pthread_create(&threads[i], NULL, add_up, NULL) != 0) return 80;
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  return 0;
}

int main(void) {
  struct sigaction action = {0};
  action.sa_handler = count;
  sigaction(SIGUSR1, &action, NULL);
  push_out(2 << 20);
  usleep(100000);  // the runtime's own thread is there too
  for (int i = 0; i < 3; ++i) {
    const pid_t pid = fork();
    if (pid == 0) _exit(child());
    int status = 0;
    CHECK(waitpid(pid, &status, 0) == pid);
    printf("%x\n", status);
  }

  numbers = malloc(kNumbers * sizeof *numbers);
  CHECK_SPILLED(numbers);
  for (unsigned i = 0; i < kNumbers; ++i) numbers[i] = i;
  for (int i = 0; i < 8; ++i) {
    const pid_t pid = fork();
    if (pid == 0) _exit(child_of_several());
    expect_end(pid);
  }
  return 0;
}
