// A timer's handler touches spilled memory while the main code misses all the time: on one thread and four,
// on the thread's stack and on an alternate one; neither side's values are disturbed.
// flags: -pthread
// case: 1 plain
// case: 4 plain
// case: 1 altstack
// case: 4 altstack
// pages: 4K 16K
// expect: cache.evictions>=1000
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include "e2e.h"

#define WORDS (1u << 17)
#define HANDLER_WORDS (1u << 16)

static long* counters;      // spilled; only handlers write, one cell each time
static _Atomic long* sums;  // spilled
static atomic_long handled;
static _Atomic int wrong;
static unsigned milliseconds = 200;

static void on_timer(int number) {
  int before = errno;
  long turn = atomic_fetch_add(&handled, 1);
  unsigned at = (unsigned)(turn * 7919) % HANDLER_WORDS;
  // No other handler has this turn; each cell holds how often it was chosen.
  __atomic_fetch_add(&counters[at], 1, __ATOMIC_RELAXED);
  char text[64];
  char* spilled = (char*)&counters[(at + 5000) % HANDLER_WORDS];
  memcpy(text, spilled, 8);
  atomic_fetch_add(&sums[at % 512], number == SIGALRM || number == SIGPROF ? 1 : 1000000);
  errno = before;
}

static void* work(void* argument) {
  uint64_t random = (uint64_t)(long)argument + 17;
  uint64_t* data = malloc(WORDS * 8);
  CHECK_SPILLED(data);
  for (unsigned i = 0; i < WORDS; ++i) data[i] = i;
  struct timespec start, now;
  clock_gettime(CLOCK_MONOTONIC, &start);
  uint64_t added = 0;
  do {
    for (int i = 0; i < 2000; ++i) {
      uint64_t r = next_random(&random);
      unsigned a = r % WORDS, b = (r >> 32) % WORDS;
      uint64_t sum = data[a] + data[b];
      data[a] += 3;
      data[b] = data[b] - 1 + (data[a] - data[a]);
      added += 2;
      if (a != b && data[a] + data[b] != sum + 2) wrong = 1;
    }
    errno = 77;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (errno != 77) wrong = 2;
  } while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < milliseconds);
  uint64_t total = 0;
  for (unsigned i = 0; i < WORDS; ++i) total += data[i];
  if (total != (uint64_t)WORDS * (WORDS - 1) / 2 + added) wrong = 3;
  free(data);
  return NULL;
}

static void* work_with_stack(void* argument) {
  stack_t stack = {0};
  stack.ss_size = 1 << 16;
  stack.ss_sp =
      mmap(NULL, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  CHECK(stack.ss_sp != MAP_FAILED);
  CHECK(sigaltstack(&stack, NULL) == 0);
  return work(argument);
}

int main(int argc, char** argv) {
  CHECK(argc == 3);
  int threads = atoi(argv[1]);
  int alternate = strcmp(argv[2], "altstack") == 0;
  counters = calloc(HANDLER_WORDS, sizeof(long));
  sums = calloc(512, sizeof(long));
  CHECK_SPILLED(counters);
  struct sigaction action = {0};
  action.sa_handler = on_timer;
  action.sa_flags = SA_RESTART | (alternate ? SA_ONSTACK : 0);
  CHECK(sigaction(SIGALRM, &action, NULL) == 0);
  CHECK(sigaction(SIGPROF, &action, NULL) == 0);
  struct itimerval often = {{0, 300}, {0, 300}};
  CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
  CHECK(setitimer(ITIMER_PROF, &often, NULL) == 0);
  pthread_t ids[8];
  for (int t = 1; t < threads; ++t)
    CHECK(pthread_create(&ids[t], NULL, alternate ? work_with_stack : work, (void*)(long)t) == 0);
  (alternate ? work_with_stack : work)((void*)99L);
  for (int t = 1; t < threads; ++t) pthread_join(ids[t], NULL);
  struct itimerval never = {0};
  setitimer(ITIMER_REAL, &never, NULL);
  setitimer(ITIMER_PROF, &never, NULL);
  signal(SIGALRM, SIG_IGN);
  signal(SIGPROF, SIG_IGN);
  long total = 0, summed = 0;
  for (unsigned i = 0; i < HANDLER_WORDS; ++i) total += counters[i];
  for (unsigned i = 0; i < 512; ++i) summed += sums[i];
  if (wrong != 0) printf("wrong: %d\n", wrong);
  if (total != handled || summed != handled)
    printf("handlers: %ld, counted %ld %ld\n", handled, total, summed);
  printf("%s\n", handled > 10 ? "many handlers" : "few handlers");
  return 0;
}
