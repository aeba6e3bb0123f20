// Forks one after the other, by several threads too, and system and popen, while threads thrash: nothing hangs, and
// nothing changes for the parent.
// flags: -pthread
// levels: O2
// pages: 4K 16K
// chaos: 2
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
#include "e2e.h"

enum { kWords = 400000, kShare = 100000, kPrime = 1000003 };

static unsigned* data;
static volatile int stop;

static void* thrash(void* number) {
  uint64_t random = (uint64_t)number;
  const unsigned first = (unsigned)random * kShare;
  while (!stop) {
    for (int i = 0; i < 100; ++i) {
      const unsigned at = first + next_random(&random) % kShare;
      CHECK(data[at] % kPrime == at);
      data[at] += kPrime;
    }
  }
  return NULL;
}

static void* make_children(void* number) {
  for (int round = 0; round < 40; ++round) {
    pid_t child = fork();
    if (child == 0) {
      char* own = malloc(1000);
      memset(own, 1, 1000);
      const unsigned at = 3 * kShare + (unsigned)(long)number * 1000 + round;
      if (data[at] != at) _exit(3);
      data[at] = 1;
      if (round % 3 == 0) execl("/bin/true", "true", (char*)NULL);
      _exit(round % 3 == 0 ? 9 : 0);
    }
    expect_end(child);
  }
  return NULL;
}

int main(void) {
  data = malloc(kWords * 4);
  CHECK_SPILLED(data);
  for (unsigned i = 0; i < kWords; ++i) data[i] = i;
  pthread_t threads[3], makers[2];
  for (long i = 0; i < 3; ++i) CHECK(pthread_create(&threads[i], NULL, thrash, (void*)i) == 0);
  for (long i = 0; i < 2; ++i) CHECK(pthread_create(&makers[i], NULL, make_children, (void*)i) == 0);
  char* command = strdup("exit 3");
  for (int round = 0; round < 10; ++round) {
    int status = system(command);
    CHECK(WEXITSTATUS(status) == 3);
    char line[10];
    FILE* pipe = popen("echo 17", "r");
    CHECK(pipe != NULL && fgets(line, sizeof line, pipe) != NULL && strcmp(line, "17\n") == 0 &&
          pclose(pipe) == 0);
  }
  for (int i = 0; i < 2; ++i) pthread_join(makers[i], NULL);
  stop = 1;
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
  for (unsigned i = 0; i < kWords; ++i) CHECK(data[i] % kPrime == i);
  printf("ok\n");
  return 0;
}
