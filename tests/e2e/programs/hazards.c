// An object whose translation is in use while others miss: its fields are changed before and after accesses that
// wait for storage, one of which lies across a page's edge. On three threads; no change may be lost.
// flags: -pthread
// memory: 3M
// storage: memory:64M
// levels: O2
// pages: 16K 64K 4K
// expect: cache.evictions>=2000 spill.crossings>=1000
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>
#include "e2e.h"

enum { kThreads = 3, kSteps = 4000, kObjects = 3000, kFarBytes = 6 << 20, kPage = 4096 };

struct object {
  uint64_t before, between, after;
  char rest[1000];
};
typedef uint64_t __attribute__((aligned(1))) any64;

static struct object* objects;    // spilled, a part for each thread
static unsigned char* far_bytes;  // spilled, never changed
static struct {
  uint64_t before, between, after;
} model[kThreads * kObjects];

static unsigned char value_of(size_t i) { return (unsigned char)(i * 131 + (i >> 8) * 17); }

// One translation serves all three fields.
__attribute__((noinline)) static void step(volatile struct object* p, volatile uint64_t* far,
                                           volatile any64* across) {
  p->before += 1;
  p->between += *far;
  p->after += *across;
}

static uint64_t at(size_t offset) {
  uint64_t value = 0;
  for (unsigned i = 8; i-- > 0;) value = value << 8 | value_of(offset + i);
  return value;
}

static void* work(void* argument) {
  size_t thread = (size_t)argument;
  uint64_t random = thread + 1;
  for (int i = 0; i < kSteps; ++i) {
    size_t object = thread * kObjects + next_random(&random) % kObjects;
    size_t far = next_random(&random) % (kFarBytes / 8 - 1) * 8;
    size_t edge = (1 + next_random(&random) % (kFarBytes / kPage - 2)) * kPage - 1 - next_random(&random) % 7;
    step(&objects[object], (uint64_t*)(far_bytes + far), (any64*)(far_bytes + edge));
    model[object].before += 1;
    model[object].between += at(far);
    model[object].after += at(edge);
  }
  return NULL;
}

int main(void) {
  objects = calloc(kThreads * kObjects, sizeof *objects);
  far_bytes = mmap(NULL, kFarBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(far_bytes != MAP_FAILED);
  CHECK_SPILLED(objects);
  CHECK_SPILLED(far_bytes);
  for (size_t i = 0; i < kFarBytes; ++i) far_bytes[i] = value_of(i);
  pthread_t threads[kThreads];
  for (size_t t = 0; t < kThreads; ++t) CHECK(pthread_create(&threads[t], NULL, work, (void*)t) == 0);
  for (size_t t = 0; t < kThreads; ++t) CHECK(pthread_join(threads[t], NULL) == 0);
  for (size_t i = 0; i < kThreads * kObjects; ++i) {
    CHECK(objects[i].before == model[i].before);
    CHECK(objects[i].between == model[i].between);
    CHECK(objects[i].after == model[i].after);
  }
  printf("nothing lost\n");
  return 0;
}
