// Other threads ask for pages ahead of use at addresses that are just being unmapped, and that become other memory: zeros, or another file.
// expect: spill.file_maps>=20
// flags: -pthread
// levels: O2
// memory: 160M
// pages: 4K
// chaos: 1
// evictions: none, the memory is for several partitions
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../../../include/spillway/spill.h"
#include "e2e.h"

enum { P = 4096, kPages = 512, kBytes = kPages * P, kThreads = 6, kPlaces = 16, kSeconds = 3 };

static char* _Atomic places[kPlaces];  // of the last mappings
static _Atomic int is_over;
static int files[2];

static char content(int file, size_t page) { return (char)(1 + (file * 50 + page) % 100); }

static void make(int file) {
  char path[] = "prefetch-XXXXXX";
  const int made = mkstemp(path);
  CHECK(made >= 0);
  static char bytes[P];
  for (size_t page = 0; page < kPages; ++page) {
    memset(bytes, content(file, page), P);
    CHECK(write(made, bytes, P) == P);
  }
  // A file that is open for writing is mapped by the kernel.
  CHECK(close(made) == 0);
  files[file] = open(path, O_RDONLY);
  CHECK(files[file] >= 0 && unlink(path) == 0);
}

static void* ask_ahead(void* seed) {
  uint64_t random = (uintptr_t)seed;
  while (!atomic_load(&is_over)) {
    const uint64_t drawn = next_random(&random);
    const char* const place = atomic_load(&places[drawn % kPlaces]);
    if (place != NULL) spill_prefetch(place + (drawn >> 32) % kPages * P, P);
  }
  return NULL;
}

static char* map(int file) {
  const int kind = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_PRIVATE;
  char* const memory = mmap(NULL, kBytes, file < 0 ? PROT_READ | PROT_WRITE : PROT_READ, kind, file, 0);
  CHECK(memory != MAP_FAILED);
  static unsigned count;
  atomic_store(&places[count++ % kPlaces], memory);
  return memory;
}

static long seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

int main(void) {
  make(0), make(1);
  pthread_t threads[kThreads];
  for (uintptr_t t = 0; t < kThreads; ++t)
    CHECK(pthread_create(&threads[t], NULL, ask_ahead, (void*)(t + 1)) == 0);
  uint64_t random = 99;
  const long end = seconds() + kSeconds;
  for (int round = 0; round < 40 || (round < 20000 && seconds() < end); ++round) {
    const size_t page = next_random(&random) % kPages;
    char* const first = map(files[round % 2]);
    CHECK(first[page * P + 9] == content(round % 2, page));
    CHECK(munmap(first, kBytes) == 0);
    char* const zeros = map(-1);
    char* const second = map(files[(round + 1) % 2]);
    CHECK(zeros[page * P + 9] == 0);
    zeros[page * P + 9] = 1;
    CHECK(second[page * P + 9] == content((round + 1) % 2, page));
    CHECK(zeros[page * P + 9] == 1);
    CHECK(munmap(zeros, kBytes) == 0 && munmap(second, kBytes) == 0);
  }
  atomic_store(&is_over, 1);
  for (int t = 0; t < kThreads; ++t) CHECK(pthread_join(threads[t], NULL) == 0);
  puts("each as it was mapped");
  return 0;
}
