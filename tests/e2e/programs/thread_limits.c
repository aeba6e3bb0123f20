// As many threads as the frames allow can be started again once they were joined; thousands that live shortly, some
// detached, some left by pthread_exit; threads and handlers with the smallest stacks miss.
// flags: -pthread
// levels: O0 O2
// pages: 4K
// case: most
// case: many
// case: small
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#include "e2e.h"

enum { kWords = 500000, kMax = 60, kBatch = 20, kBatches = 50 };

static unsigned* data;
static volatile int go;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_done = PTHREAD_COND_INITIALIZER;
static int left;

static void* wait_for_go(void* result) {
  while (!go) usleep(1000);
  return result;
}

static void* add(void* number) {
  data[(long)number * 40] += 1;
  if ((long)number % 3 == 0) pthread_exit(number);
  return number;
}

static void* add_detached(void* number) {
  data[(long)number * 40] += 1;
  pthread_mutex_lock(&mutex);
  if (--left == 0) pthread_cond_signal(&all_done);
  pthread_mutex_unlock(&mutex);
  return number;
}

static void touch(int number) {
  uint64_t random = (uint64_t)number;
  for (int i = 0; i < 3000; ++i) data[next_random(&random) % kWords] += 1;
}

static void* touch_in_thread(void* unused) {
  touch(0);
  return unused;
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  data = calloc(kWords, 4);
  CHECK_SPILLED(data);
  if (strcmp(argv[1], "most") == 0) {
    pthread_t threads[kMax];
    int most = 0;
    for (int round = 0; round < 5; ++round) {
      int count = 0;
      go = 0;
      while (count < kMax && pthread_create(&threads[count], NULL, wait_for_go, NULL) == 0) ++count;
      go = 1;
      for (int i = 0; i < count; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
      if (round == 0) most = count;
      CHECK(count == most && count > 10);
    }
  } else if (strcmp(argv[1], "many") == 0) {
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    for (long first = 0; first < kBatch * kBatches; first += kBatch) {
      pthread_t threads[kBatch];
      for (long i = 0; i < kBatch; ++i)
        CHECK(pthread_create(&threads[i], NULL, add, (void*)(first + i)) == 0);
      for (long i = 0; i < kBatch; ++i) {
        void* result;
        CHECK(pthread_join(threads[i], &result) == 0 && result == (void*)(first + i));
      }
      left = kBatch;
      for (long i = 0; i < kBatch; ++i)
        CHECK(pthread_create(&threads[i], &detached, add_detached, (void*)(first + i)) == 0);
      pthread_mutex_lock(&mutex);
      while (left > 0) pthread_cond_wait(&all_done, &mutex);
      pthread_mutex_unlock(&mutex);
    }
    for (int i = 0; i < kBatch * kBatches; ++i) CHECK(data[i * 40] == 2);
  } else {
    pthread_attr_t small;
    pthread_attr_init(&small);
    CHECK(pthread_attr_setstacksize(&small, 16384) == 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, &small, touch_in_thread, NULL) == 0 && pthread_join(thread, NULL) == 0);
    char* stack =
        mmap(NULL, 4096 + 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    CHECK(mprotect(stack, 4096, PROT_NONE) == 0);
    stack_t alternate = {.ss_sp = stack + 4096, .ss_size = 8192};
    CHECK(sigaltstack(&alternate, NULL) == 0);
    struct sigaction action = {.sa_handler = touch, .sa_flags = SA_ONSTACK};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    raise(SIGUSR1);
    uint64_t sum = 0;
    for (int i = 0; i < kWords; ++i) sum += data[i];
    CHECK(sum == 6000);
  }
  printf("%s\n", argv[1]);
  return 0;
}
