// Threads that translate by caches of their own: each changes objects of its own and copies them to and fro, in pages that have to
// share lines and sets; a timer's handler changes others between any two instructions; blocks are mapped and unmapped, protected and
// opened; and short threads come and go, whose pins must go with them. No change may be lost.
// flags: -pthread
// memory: 2560K
// storage: memory:64M
// levels: satc
// chaos: 4
// expect: cache.evictions>=500 satc.direct_misses>=4000 satc.private_hits>=200 satc.private_misses>=1500 satc.shared_accesses>=1500 satc.bypasses>=1
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include "e2e.h"

enum { kThreads = 3, kSteps = 6000, kObjects = 4500, kShort = 60, kSignals = 50, kPage = 4096 };

struct object {
  uint64_t number, changes;
  uint64_t words[16];
};

static struct object* objects[kThreads];
static uint64_t* of_handler;  // a word in each of many pages
static uint64_t signal_count;
enum { kHandlerPages = 200 };

static void on_signal(int number) {
  (void)number;
  // On several threads at a time, perhaps.
  uint64_t state = __atomic_fetch_add(&signal_count, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < 5; ++i)
    __atomic_fetch_add(&of_handler[next_random(&state) % kHandlerPages * (kPage / 8)], 1, __ATOMIC_RELAXED);
}

static void change(struct object* o, uint64_t by) {
  o->changes += 1;
  for (int i = 0; i < 16; ++i) o->words[i] += by + (uint64_t)i;
}

// A mapping of its own: what is read after it was protected is what was stored before, and a new one reads as zeros.
static void churn(uint64_t* state) {
  const size_t bytes = 64 * kPage;
  volatile unsigned char* block =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(block != MAP_FAILED);
  const unsigned char value = (unsigned char)(next_random(state) | 1);
  for (size_t i = 0; i < bytes; i += kPage / 2) {
    CHECK(block[i] == 0);
    block[i] = value;
  }
  CHECK(mprotect((void*)block, bytes, PROT_READ) == 0);
  for (size_t i = 0; i < bytes; i += kPage / 2) CHECK(block[i] == value);
  CHECK(mprotect((void*)block, bytes, PROT_READ | PROT_WRITE) == 0);
  block[kPage] += 1;
  CHECK(block[kPage] == (unsigned char)(value + 1));
  CHECK(munmap((void*)block, bytes) == 0);
}

static void* work(void* given) {
  const uint64_t thread = (uint64_t)given;
  struct object* mine = objects[thread];
  uint64_t state = thread + 1;
  for (int step = 0; step < kSteps; ++step) {
    const uint64_t a = next_random(&state) % kObjects, b = next_random(&state) % kObjects;
    change(&mine[a], 1);
    // A copy whose two sides may need the same line.
    const struct object old = mine[b];
    mine[b] = mine[a];
    mine[a] = old;
    if (step % 300 == 0) churn(&state);
  }
  return NULL;
}

static void* pass_by(void* given) {
  struct object* theirs = given;
  uint64_t sum = 0;
  for (int i = 0; i < 40; ++i) sum += theirs[i * 17].number;
  return (void*)sum;
}

int main(void) {
  of_handler = spilled_zeros(kHandlerPages * kPage);
  for (int t = 0; t < kThreads; ++t) {
    objects[t] = spilled_zeros(kObjects * sizeof **objects);
    for (uint64_t i = 0; i < kObjects; ++i) objects[t][i].number = i;
  }
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  CHECK(sigaction(SIGALRM, &action, NULL) == 0);
  struct itimerval every = {.it_interval = {0, 2000}, .it_value = {0, 2000}};
  CHECK(setitimer(ITIMER_REAL, &every, NULL) == 0);

  pthread_t threads[kThreads];
  for (uint64_t t = 0; t < kThreads; ++t) CHECK(pthread_create(&threads[t], NULL, work, (void*)t) == 0);
  struct object* fixed = spilled_zeros(kObjects * sizeof *fixed);
  uint64_t expected = 0;
  for (uint64_t i = 0; i < kObjects; ++i) fixed[i].number = 3 * i;
  for (int i = 0; i < 40; ++i) expected += 3u * 17u * (uint64_t)i;
  for (int i = 0; i < kShort; ++i) {
    pthread_t one;
    void* sum;
    CHECK(pthread_create(&one, NULL, pass_by, fixed) == 0);
    CHECK(pthread_join(one, &sum) == 0);
    CHECK((uint64_t)sum == expected);
  }
  for (int t = 0; t < kThreads; ++t) CHECK(pthread_join(threads[t], NULL) == 0);
  while (__atomic_load_n(&signal_count, __ATOMIC_RELAXED) < kSignals) {
  }
  const struct itimerval never = {0};
  CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);

  for (int t = 0; t < kThreads; ++t) {
    uint64_t changes = 0, numbers = 0, words = 0;
    for (int i = 0; i < kObjects; ++i) {
      changes += objects[t][i].changes;
      numbers += objects[t][i].number;
      for (int k = 0; k < 16; ++k)
        words += objects[t][i].words[k] - objects[t][i].changes * (uint64_t)(1 + k);
    }
    CHECK(changes == kSteps);
    CHECK(numbers == (uint64_t)kObjects * (kObjects - 1) / 2);
    CHECK(words == 0);
  }
  uint64_t handled = 0;
  for (int i = 0; i < kHandlerPages; ++i) handled += of_handler[i * (kPage / 8)];
  CHECK(handled == 5 * signal_count);
  printf("no change was lost\n");
  return 0;
}
