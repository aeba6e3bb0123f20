// Threads that wait for the C library's own locks, or sleep, each with pages in hand, leave all frames to the others.
// flags: -pthread
// levels: O2
// memory: 3M
// pages: 4K
// chaos: 1
// case: 0
// case: 1
// case: 2
// case: 3
// case: 4
// case: 5
// case: 6
// case: 7
// expect: cache.evictions>=5000
#define _GNU_SOURCE
#include <pthread.h>
#include <time.h>
#include <unistd.h>
#include "e2e.h"

enum { kThreads = 100, kPages = 4000, kPageWords = 512, kHeld = 8 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static FILE* stream;
static volatile int ready, go, kind;
static long* data;

static void wait_for_go(void) {
  __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
  while (!go) usleep(1000);
}

static void wait_for_lock(void) {
  struct timespec later;
  clock_gettime(CLOCK_REALTIME, &later);
  later.tv_sec += 3600;
  switch (kind) {
    case 0:
      pthread_mutex_lock(&mutex);
      pthread_mutex_unlock(&mutex);
      break;
    case 1:
      CHECK(pthread_mutex_timedlock(&mutex, &later) == 0);
      pthread_mutex_unlock(&mutex);
      break;
    case 2:
      CHECK(pthread_rwlock_rdlock(&lock) == 0);
      pthread_rwlock_unlock(&lock);
      break;
    case 3:
      CHECK(pthread_rwlock_wrlock(&lock) == 0);
      pthread_rwlock_unlock(&lock);
      break;
    case 4:
      CHECK(pthread_rwlock_timedrdlock(&lock, &later) == 0);
      pthread_rwlock_unlock(&lock);
      break;
    case 5: pthread_once(&once, wait_for_go); break;
    case 6:
      while (!go) usleep(20000);
      break;
    default: {
      char* line = NULL;
      size_t room = 0;
      CHECK(getline(&line, &room, stream) == -1);
      free(line);
    }
  }
}

// All pages are in hand at once, since each sum needs them all.
__attribute__((noinline)) static void touch(long* a, long* b, long* c, long* d, long* e, long* f, long* g,
                                            long* h) {
  const long sum = *a + *b * 3 + *c * 5 + *d * 7 + *e * 9 + *f * 11 + *g * 13 + *h * 15;
  *a = sum, *b = sum + 1, *c = sum + 2, *d = sum + 3;
  *e = sum + 4, *f = sum + 5, *g = sum + 6, *h = sum + 7;
}

static void* wait_with_pages(void* argument) {
  const long number = (long)argument;
  long* p = data + number * kHeld * kPageWords;
  touch(p, p + kPageWords, p + 2 * kPageWords, p + 3 * kPageWords, p + 4 * kPageWords, p + 5 * kPageWords,
        p + 6 * kPageWords, p + 7 * kPageWords);
  __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
  wait_for_lock();
  return NULL;
}

int main(int argument_count, char** arguments) {
  kind = argument_count > 1 ? atoi(arguments[1]) : 0;
  data = calloc(kPages, kPageWords * sizeof(long));
  CHECK_SPILLED(data);
  pthread_t threads[kThreads];
  pthread_mutex_lock(&mutex);
  pthread_rwlock_wrlock(&lock);
  stream = fopen("/dev/null", "r");
  CHECK(stream != NULL);
  flockfile(stream);
  for (long i = 0; i < kThreads; ++i)
    CHECK(pthread_create(&threads[i], NULL, wait_with_pages, (void*)i) == 0);
  while (ready < kThreads + (kind == 5)) usleep(1000);  // who runs the routine counts twice
  usleep(20000);
  for (int round = 0; round < 3; ++round)
    for (long i = 0; i < kPages; ++i) data[i * kPageWords + 9] += i;
  go = 1;
  pthread_mutex_unlock(&mutex);
  pthread_rwlock_unlock(&lock);
  funlockfile(stream);
  for (int i = 0; i < kThreads; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  long sum = 0;
  for (long i = 0; i < kPages; ++i) sum += data[i * kPageWords + 9];
  printf("%ld\n", sum);
  return 0;
}
