// pthread_cancel of threads that wait for spilled objects, and of threads that asked to be cancelled at any
// instruction and miss all the time; pthread_exit leaves nothing behind that keeps pages. A list of requests is waited for until it has ended.
// flags: -pthread
// levels: O2
// pages: 4K 16K
// case: waiting
// case: anywhere
// case: passed-on
// case: list
#define _GNU_SOURCE
#include <aio.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
#include "e2e.h"

enum { kWords = 500000 };

struct Shared {
  pthread_mutex_t mutex;
  pthread_cond_t condition;
  sem_t semaphore;
  int cleaned;
  int waiting;
  int taken;
};
static struct Shared* shared;
static unsigned* data;

static void note(void* unused) {
  (void)unused;
  __atomic_fetch_add(&shared->cleaned, 1, __ATOMIC_RELAXED);  // two may at once
}
static void note_and_unlock(void* unused) {
  (void)unused;
  __atomic_fetch_add(&shared->cleaned, 1, __ATOMIC_RELAXED);  // two may at once
  CHECK(pthread_mutex_unlock(&shared->mutex) == 0);
}

static void* wait_condition(void* timed) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  time.tv_sec += 100;
  pthread_mutex_lock(&shared->mutex);
  shared->waiting++;
  pthread_cleanup_push(note_and_unlock, NULL);
  for (;;) {
    if (timed != NULL)
      pthread_cond_timedwait(&shared->condition, &shared->mutex, &time);
    else
      pthread_cond_wait(&shared->condition, &shared->mutex);
  }
  pthread_cleanup_pop(1);
  return NULL;
}
static void* wait_condition_timed(void* unused) {
  (void)unused;
  return wait_condition(shared);
}
static void* wait_semaphore(void* unused) {
  pthread_cleanup_push(note, NULL);
  if (sem_wait(&shared->semaphore) == 0) shared->taken = 1;
  pthread_cleanup_pop(1);
  return unused;
}
static void* wait_pipe(void* unused) {
  int* ends = malloc(8);
  char* bytes = malloc(100);
  CHECK(pipe(ends) == 0);
  pthread_cleanup_push(note, NULL);
  CHECK(read(ends[0], bytes, 100) == 100);
  pthread_cleanup_pop(1);
  return unused;
}
// The stream is everybody's again afterwards.
static FILE* stream;
static char* line;
static size_t line_bytes;
static void* wait_stream(void* unused) {
  pthread_cleanup_push(note, NULL);
  if (unused == NULL)
    CHECK(getline(&line, &line_bytes, stream) == -1);
  else
    CHECK(fread(malloc(100), 1, 100, stream) == 0);
  pthread_cleanup_pop(1);
  return unused;
}
static void* wait_stream_for_bytes(void* unused) {
  (void)unused;
  return wait_stream(shared);
}
static void* wait_time(void* unused) {
  struct timespec* time = malloc(sizeof *time);
  time->tv_sec = 100;
  time->tv_nsec = 0;
  pthread_cleanup_push(note, NULL);
  nanosleep(time, time);
  pthread_cleanup_pop(1);
  return unused;
}
static void* compute(void* seed) {
  uint64_t random = (uint64_t)seed;
  CHECK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL) == 0);
  for (;;) data[next_random(&random) % kWords] += 1;
}

static void* compute_when_cancelled(void* seed) {
  while (!__atomic_load_n(&shared->waiting, __ATOMIC_ACQUIRE)) sched_yield();
  return compute(seed);
}

static void on_signal(int number) { (void)number; }
static void* wait_list(void* list) {
  CHECK(lio_listio(LIO_WAIT, list, 1, NULL) == 0);
  __atomic_store_n(&shared->taken, 1, __ATOMIC_SEQ_CST);
  pthread_testcancel();
  return NULL;
}

static void cancel(pthread_t thread) {
  void* result;
  CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  shared = calloc(1, sizeof *shared);
  CHECK_SPILLED(shared);
  pthread_mutex_init(&shared->mutex, NULL);
  pthread_cond_init(&shared->condition, NULL);
  sem_init(&shared->semaphore, 0, 0);
  pthread_t thread;
  if (argv[1][0] == 'w') {
    void* (*waits[])(void*) = {wait_condition, wait_condition_timed, wait_semaphore,       wait_pipe,
                               wait_time,      wait_stream,          wait_stream_for_bytes};
    int ends[2];
    CHECK(pipe(ends) == 0);
    stream = fdopen(ends[0], "r");
    for (int i = 0; i < 7; ++i) {
      CHECK(pthread_create(&thread, NULL, waits[i], NULL) == 0);
      usleep(20000);
      cancel(thread);
      CHECK(shared->cleaned == i + 1 && pthread_mutex_trylock(&shared->mutex) == 0);
      pthread_mutex_unlock(&shared->mutex);
    }
    alarm(200);
    CHECK(write(ends[1], "one\ntwo\n", 8) == 8);
    CHECK(getline(&line, &line_bytes, stream) == 4 && strcmp(line, "one\n") == 0);
  } else if (argv[1][0] == 'l') {
    int ends[2];
    struct aiocb** list = calloc(1, sizeof *list);
    char* bytes = calloc(1, 100);
    void* result;
    list[0] = calloc(1, sizeof *list[0]);
    CHECK(pipe(ends) == 0);
    list[0]->aio_fildes = ends[0];
    list[0]->aio_buf = bytes;
    list[0]->aio_nbytes = 100;
    list[0]->aio_lio_opcode = LIO_READ;
    signal(SIGUSR1, on_signal);  // restarts system calls
    CHECK(pthread_create(&thread, NULL, wait_list, list) == 0);
    usleep(50000);
    CHECK(pthread_kill(thread, SIGUSR1) == 0);
    usleep(50000);
    CHECK(pthread_cancel(thread) == 0);
    usleep(50000);
    CHECK(write(ends[1], "bytes", 5) == 5);
    CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    CHECK(shared->taken && memcmp(bytes, "bytes", 5) == 0);
  } else if (argv[1][0] == 'p') {
    // A signal that meets a waiter which is being cancelled is another waiter's.
    for (int round = 0; round < 300; ++round) {
      pthread_t other;
      shared->waiting = shared->taken = 0;
      CHECK(pthread_create(&thread, NULL, wait_condition, NULL) == 0);
      CHECK(pthread_create(&other, NULL, wait_semaphore, NULL) == 0);
      while (pthread_mutex_lock(&shared->mutex), shared->waiting < 1) pthread_mutex_unlock(&shared->mutex);
      pthread_mutex_unlock(&shared->mutex);
      sem_post(&shared->semaphore);
      pthread_cancel(other);
      pthread_cond_signal(&shared->condition);
      cancel(thread);
      pthread_join(other, NULL);
      CHECK(shared->cleaned == 2 * round + 2);
      // The post is there, unless the thread took it. (The C library may call one that returned cancelled.)
      CHECK((sem_trywait(&shared->semaphore) == 0) != shared->taken);
    }
  } else {
    data = calloc(kWords, 4);
    for (int i = 0; i < 2; ++i) {  // cancelled before it asks for it at any instruction
      shared->waiting = 0;
      CHECK(pthread_create(&thread, NULL, compute_when_cancelled, NULL) == 0 && pthread_cancel(thread) == 0);
      __atomic_store_n(&shared->waiting, 1, __ATOMIC_RELEASE);
      CHECK(pthread_join(thread, NULL) == 0);
    }
    for (long i = 0; i < 100; ++i) {
      CHECK(pthread_create(&thread, NULL, compute, (void*)i) == 0);
      usleep(1000 + i * 10);
      cancel(thread);
      for (int k = 0; k < kWords; k += 999) data[k] += 1;
    }
  }
  printf("%s\n", argv[1]);
  return 0;
}
