// Semaphores and barriers of the program's that a library waits in and posts, too, which spillcc did not compile: whoever waits is woken by the
// other. The functions that such a library finds by their names are called.
// flags: -pthread
// levels: O2
// pages: 4K 16K
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>
#include <unistd.h>
#include "e2e.h"

#define FOREIGN(name) ((__typeof__(&name))dlsym(RTLD_DEFAULT, #name))

enum { kRounds = 200 };

static sem_t *asked, *answered;
static pthread_barrier_t* barrier;
static int* value;

static void* serve(void* unused) {
  (void)unused;
  for (int round = 0; round < kRounds; ++round) {
    CHECK(FOREIGN(sem_wait)(asked) == 0);
    ++*value;
    CHECK(FOREIGN(sem_post)(answered) == 0);
    const int result = FOREIGN(pthread_barrier_wait)(barrier);
    CHECK(result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);
  }
  return NULL;
}

int main(void) {
  alarm(200);  // who is not woken waits for good
  asked = spilled_zeros(sizeof *asked);
  answered = spilled_zeros(sizeof *answered);
  barrier = spilled_zeros(sizeof *barrier);
  value = spilled_zeros(sizeof *value);
  CHECK(sem_init(asked, 0, 0) == 0 && FOREIGN(sem_init)(answered, 0, 0) == 0);
  CHECK(FOREIGN(pthread_barrier_init)(barrier, NULL, 2) == 0);
  struct timespec* time = spilled_zeros(sizeof *time);
  CHECK(FOREIGN(sem_timedwait)(asked, time) == -1 && errno == ETIMEDOUT);
  CHECK(FOREIGN(sem_clockwait)(asked, CLOCK_MONOTONIC, time) == -1 && errno == ETIMEDOUT);
  CHECK(FOREIGN(sem_trywait)(answered) == -1 && errno == EAGAIN);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, serve, NULL) == 0);
  for (int round = 0; round < kRounds; ++round) {
    if (round % 50 == 0) push_out(3 << 20);
    CHECK(sem_post(asked) == 0 && sem_wait(answered) == 0 && *value == round + 1);
    const int result = pthread_barrier_wait(barrier);
    CHECK(result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);
  }
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(sem_post(asked) == 0 && FOREIGN(sem_getvalue)(asked, value) == 0 && *value == 1);
  CHECK(FOREIGN(sem_destroy)(asked) == 0 && sem_destroy(answered) == 0);
  CHECK(FOREIGN(pthread_barrier_destroy)(barrier) == 0);
  puts("woken");
  return 0;
}
