// Mutexes, conditions, semaphores, barriers and reader-writer locks on the heap, with pages coming and
// going under them; some of the objects lie across a page's edge.
// flags: -pthread
// memory: 4M
// pages: 4K
// expect: cache.evictions>=200
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include "e2e.h"

enum { kThreads = 3, kRounds = 300, kSlots = 4 };

struct queue {
  pthread_mutex_t mutex;
  pthread_cond_t filled, emptied;
  int used, next, done;
  int slots[kSlots];
};

struct shared {
  struct queue* queue;
  pthread_rwlock_t* lock;
  pthread_barrier_t* barrier;
  sem_t* tokens;
  long* sums;
  long a, b;
};

static struct shared* shared;

// An object whose first bytes are the last ones of an OS page, when its size allows that.
static void* across_edge(size_t bytes) {
  char* block = malloc(3 * 4096 + bytes);
  CHECK_SPILLED(block);
  char* edge = (char*)(((uint64_t)block + 4096) & ~(uint64_t)4095) + 4096;
  memset(edge - 16, 0, bytes + 16);
  HIDE(edge);
  return edge - (bytes > 16 ? 8 : 0);
}

static void* consume(void* argument) {
  long self = (long)argument;
  struct queue* queue = shared->queue;
  for (;;) {
    pthread_mutex_lock(&queue->mutex);
    while (queue->used == 0 && !queue->done) pthread_cond_wait(&queue->filled, &queue->mutex);
    if (queue->used == 0) {
      pthread_mutex_unlock(&queue->mutex);
      break;
    }
    int item = queue->slots[--queue->used];
    pthread_cond_signal(&queue->emptied);
    pthread_mutex_unlock(&queue->mutex);
    shared->sums[self * 600] += item;
    if (item % 64 == 0) push_out(5 << 20);
    sem_wait(shared->tokens);
    if (item % 3 == 0) {
      pthread_rwlock_wrlock(shared->lock);
      shared->a += item;
      shared->b += item;
    } else {
      pthread_rwlock_rdlock(shared->lock);
      CHECK(shared->a == shared->b);
    }
    pthread_rwlock_unlock(shared->lock);
    sem_post(shared->tokens);
  }
  pthread_barrier_wait(shared->barrier);
  return NULL;
}

int main(void) {
  shared = malloc(sizeof *shared);
  memset(shared, 0, sizeof *shared);
  shared->queue = across_edge(sizeof *shared->queue);
  shared->lock = across_edge(sizeof *shared->lock);
  shared->barrier = across_edge(sizeof *shared->barrier);
  shared->tokens = across_edge(sizeof *shared->tokens);
  shared->sums = calloc(kThreads * 600, sizeof(long));
  pthread_mutexattr_t* attributes = malloc(sizeof *attributes);
  CHECK(pthread_mutexattr_init(attributes) == 0);
  CHECK(pthread_mutexattr_settype(attributes, PTHREAD_MUTEX_ERRORCHECK) == 0);
  struct queue* queue = shared->queue;
  CHECK(pthread_mutex_init(&queue->mutex, attributes) == 0);
  CHECK(pthread_cond_init(&queue->filled, NULL) == 0 && pthread_cond_init(&queue->emptied, NULL) == 0);
  CHECK(pthread_rwlock_init(shared->lock, NULL) == 0);
  CHECK(pthread_barrier_init(shared->barrier, NULL, kThreads + 1) == 0);
  CHECK(sem_init(shared->tokens, 0, 2) == 0);
  pthread_t* threads = malloc(kThreads * sizeof *threads);
  for (long i = 0; i < kThreads; ++i) CHECK(pthread_create(&threads[i], NULL, consume, (void*)i) == 0);
  long expected = 0;
  for (int i = 0; i < kRounds; ++i) {
    pthread_mutex_lock(&queue->mutex);
    CHECK(pthread_mutex_lock(&queue->mutex) == EDEADLK);
    while (queue->used == kSlots) pthread_cond_wait(&queue->emptied, &queue->mutex);
    queue->slots[queue->used++] = i;
    expected += i;
    pthread_cond_signal(&queue->filled);
    pthread_mutex_unlock(&queue->mutex);
  }
  pthread_mutex_lock(&queue->mutex);
  queue->done = 1;
  pthread_cond_broadcast(&queue->filled);
  pthread_mutex_unlock(&queue->mutex);
  CHECK(pthread_mutex_unlock(&queue->mutex) == EPERM);
  pthread_barrier_wait(shared->barrier);
  void** result = malloc(sizeof *result);
  long sum = 0;
  for (int i = 0; i < kThreads; ++i) {
    CHECK(pthread_join(threads[i], result) == 0 && *result == NULL);
    sum += shared->sums[i * 600];
  }
  CHECK(sum == expected && shared->a == shared->b);
  struct timespec* time = malloc(sizeof *time);
  clock_gettime(CLOCK_REALTIME, time);
  pthread_mutex_lock(&queue->mutex);
  CHECK(pthread_cond_timedwait(&queue->filled, &queue->mutex, time) == ETIMEDOUT);
  pthread_mutex_unlock(&queue->mutex);
  CHECK(pthread_mutex_destroy(&queue->mutex) == 0 && pthread_rwlock_destroy(shared->lock) == 0);
  printf("%ld %ld\n", sum, shared->a);
  return 0;
}
