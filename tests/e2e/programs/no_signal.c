// Calls that wait are not interrupted where no signal comes, from the program's first one on.
// flags: -pthread
// pages: 4K 16K
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "e2e.h"

static void waits(void) {
  const int epoll = epoll_create1(0);
  struct epoll_event event;
  const struct timespec little = {0, 5000000};
  for (int i = 0; i < 10; ++i) {
    CHECK(epoll_wait(epoll, &event, 1, 5) == 0);
    CHECK(poll(NULL, 0, 5) == 0);
    CHECK(nanosleep(&little, NULL) == 0);
  }
  close(epoll);
}

static void* in_thread(void* memory) {
  memset(memory, 7, 1 << 20);
  waits();
  return NULL;
}

int main(void) {
  waits();
  push_out(3 << 20);
  waits();
  for (int i = 0; i < 3; ++i) {
    pthread_t thread;
    char* memory = malloc(1 << 20);
    CHECK(pthread_create(&thread, NULL, in_thread, memory) == 0);
    waits();
    CHECK(pthread_join(thread, NULL) == 0);
    free(memory);
    waits();
  }
  puts("undisturbed");
  return 0;
}
