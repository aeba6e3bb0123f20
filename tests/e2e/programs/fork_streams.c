// fork while another thread flushes all streams, one of which needs pages that are not in memory: they come before memory stands still.
// flags: -pthread
// levels: O2
// pages: 4K 16K
// expect: cache.evictions>=100
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>
#include "e2e.h"

enum { kWords = 300000, kTurns = 3 };

static unsigned* data;
static sem_t has_begun;

static ssize_t write_late(void* unused, const char* bytes, size_t count) {
  (void)unused;
  (void)bytes;
  CHECK(sem_post(&has_begun) == 0);
  usleep(100000);  // fork comes meanwhile, and waits
  for (unsigned i = 0; i < kWords; i += 500) CHECK(data[i] == i * 7);
  return (ssize_t)count;
}

static void* flush_all(void* stream) {
  CHECK(fputs("text", stream) >= 0);
  CHECK(fflush(NULL) == 0);
  return NULL;
}

int main(void) {
  data = malloc(kWords * sizeof *data);
  CHECK_SPILLED(data);
  for (unsigned i = 0; i < kWords; ++i) data[i] = i * 7;
  FILE* stream = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_late});
  CHECK(stream != NULL);
  CHECK(sem_init(&has_begun, 0, 0) == 0);
  for (unsigned turn = 0; turn < kTurns; ++turn) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, flush_all, stream) == 0);
    CHECK(sem_wait(&has_begun) == 0);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) _exit(data[kWords - 1 - turn] == (kWords - 1 - turn) * 7 ? 0 : 3);
    expect_end(child);
    CHECK(pthread_join(thread, NULL) == 0);
  }
  CHECK(fclose(stream) == 0);
  printf("ok\n");
  return 0;
}
