// A child of vfork misses pages that its parent's thread has never missed any of, and maps a file. What the thread has of that is left to it,
// but no descriptor: later ones of its process have the same numbers, and are none of the thread's to close when it ends.
// flags: -pthread
// levels: O2
// memory: 2M
// expect: spill.file_maps>=1
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <unistd.h>

#include "e2e.h"

enum { kWords = 3 << 18, kFile = 1 << 20, kThreads = 20 };

static unsigned *data, *volatile mapped_by_child;
static char path[] = "vfork-XXXXXX";
static sem_t child_is_over, may_end;

static unsigned file_word(unsigned i) { return i * 2654435761u; }

static int holds(void) {
  for (unsigned i = 0; i < kWords; i += 64)
    if (data[i] != i + 7) return 0;
  return 1;
}
static int is_the_file(const unsigned* words) {
  for (unsigned i = 0; i < kFile / sizeof *words; ++i)
    if (words[i] != file_word(i)) return 0;
  return 1;
}

static unsigned* map_file(void) {
  const int file = open(path, O_RDONLY);
  unsigned* map = mmap(NULL, kFile, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  return map;
}

static void* launch(void* unused) {
  (void)unused;
  const pid_t child = vfork();
  if (child == 0) {
    mapped_by_child = map_file();
    _exit(mapped_by_child != MAP_FAILED && holds() ? 0 : 3);
  }
  int status;
  CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
  sem_post(&child_is_over);
  sem_wait(&may_end);
  return NULL;
}

static void* look(void* unused) {
  (void)unused;
  CHECK(holds());
  return NULL;
}

int main(void) {
  data = malloc(kWords * sizeof *data);
  CHECK_SPILLED(data);
  for (unsigned i = 0; i < kWords; ++i) data[i] = i + 7;
  const int file = mkstemp(path);
  CHECK(file >= 0);
  static unsigned words[kFile / sizeof(unsigned)];
  for (unsigned i = 0; i < kFile / sizeof *words; ++i) words[i] = file_word(i);
  CHECK(write(file, words, kFile) == kFile && close(file) == 0);
  CHECK(sem_init(&child_is_over, 0, 0) == 0 && sem_init(&may_end, 0, 0) == 0);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, launch, NULL) == 0);
  CHECK(sem_wait(&child_is_over) == 0);
  CHECK(is_the_file(mapped_by_child) && munmap(mapped_by_child, kFile) == 0);
  unsigned* map = map_file();
  CHECK(map != MAP_FAILED);
  CHECK(sem_post(&may_end) == 0 && pthread_join(thread, NULL) == 0);
  // They get what threads had that have ended.
  for (int i = 0; i < kThreads; ++i)
    CHECK(pthread_create(&thread, NULL, look, NULL) == 0 && pthread_join(thread, NULL) == 0);
  CHECK(is_the_file(map));
  CHECK(munmap(map, kFile) == 0 && unlink(path) == 0);
  printf("ok\n");
  return 0;
}
