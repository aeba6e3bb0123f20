// Compiled by spillcc and linked statically with foreign.c. Argument: a file that may be written.
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void* foreign_malloc(size_t n);
void* foreign_calloc(size_t n);
void* foreign_realloc(void* block, size_t n);
void* foreign_aligned(size_t n);
void foreign_free(void* block);
int foreign_io(const char* path, char* bytes, char* room, size_t n);
int foreign_lock(pthread_mutex_t* mutex);
int foreign_unlock(pthread_mutex_t* mutex);
int foreign_handle(int number, void (*handler)(int));
int foreign_start(pthread_t* thread, void* (*routine)(void*), void* argument);
void foreign_close_all(void);
int foreign_names(void);

#define CHECK(condition) \
  if (!(condition)) return printf("line %d: %s\n", __LINE__, #condition), 1;

enum { kBytes = 3 << 20 };

static int is_spilled(const void* block) {
  return (uintptr_t)block >= (uintptr_t)1 << 44 && (uintptr_t)block < (uintptr_t)1 << 45;
}

static void fill(char* bytes, int seed) {
  for (int i = 0; i < kBytes; ++i) bytes[i] = (char)(i * 7 + seed);
}

static int holds(const char* bytes, int n, int seed) {
  for (int i = 0; i < n; ++i)
    if (bytes[i] != (char)(i * 7 + seed)) return 0;
  return 1;
}

static char* spilled;
static volatile int handled = 0;
static void handle(int number) { handled += spilled[number] == (char)(number * 7 + 1); }

struct shared {
  pthread_mutex_t mutex;
  long count;
};

static void* add(void* memory) {
  struct shared* shared = memory;
  for (int i = 0; i < 20000; ++i) {
    foreign_lock(&shared->mutex);
    ++shared->count;
    pthread_mutex_unlock(&shared->mutex);
  }
  return spilled + 5;
}

static int ended = 0;
static void at_end(void) { printf("end %d\n", ++ended); }
__attribute__((constructor)) static void begin(void) {
  spilled = malloc(kBytes);
  fill(spilled, 1);
  atexit(at_end);
}

int main(int argc, char** argv) {
  CHECK(argc == 2 && is_spilled(spilled) && holds(spilled, kBytes, 1) && foreign_names() == 15);

  // Blocks of either kind through either family.
  char* block = foreign_malloc(kBytes);
  CHECK(!is_spilled(block));
  fill(block, 2);
  block = realloc(block, 2 * kBytes);
  CHECK(block != NULL && holds(block, kBytes, 2));
  foreign_free(block);
  block = malloc(kBytes);
  CHECK(is_spilled(block));
  fill(block, 3);
  block = foreign_realloc(block, 2 * kBytes);
  CHECK(is_spilled(block) && holds(block, kBytes, 3));
  free(block);
  CHECK(foreign_realloc(malloc(5000), 0) == NULL);
  free(foreign_calloc(kBytes));
  free(foreign_aligned(kBytes));

  char* room = malloc(kBytes);
  CHECK(foreign_io(argv[1], spilled, room, kBytes) && holds(room, kBytes, 1));

  CHECK(foreign_handle(SIGUSR1, handle) == 0);
  for (int i = 0; i < 100; ++i) raise(SIGUSR1);
  CHECK(handled == 100);

  struct shared* shared = malloc(sizeof *shared);
  CHECK(is_spilled(shared));
  pthread_mutex_init(&shared->mutex, NULL);
  shared->count = 0;
  pthread_t threads[3];
  for (int i = 0; i < 3; ++i) CHECK(foreign_start(&threads[i], add, shared) == 0);
  for (int i = 0; i < 3; ++i) {
    void* result;
    CHECK(pthread_join(threads[i], &result) == 0 && result == spilled + 5);
  }
  CHECK(shared->count == 60000);

  foreign_close_all();
  CHECK(holds(spilled, kBytes, 1));
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) execl("/bin/sh", "sh", "-c", "exit 7", (char*)NULL);
  int status;
  CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7);
  CHECK(holds(spilled, kBytes, 1));
  printf("right\n");
  return 0;
}
