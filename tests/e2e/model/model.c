// Random reads, writes, copies and atomics of 1 to 64 bytes at any alignment on several threads, beside a
// model in plain memory.  model SEED SECONDS THREADS MEGABYTES
//
// Each thread has an area of its own, with a model of the same size; all add to shared counters at any
// alignment, whose sums are known. The first wrong byte ends the program with status 1 and the seed.
#define _GNU_SOURCE
#include <immintrin.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "../programs/e2e.h"

typedef uint16_t __attribute__((aligned(1), may_alias)) any16;
typedef uint32_t __attribute__((aligned(1), may_alias)) any32;
typedef uint64_t __attribute__((aligned(1), may_alias)) any64;
typedef unsigned __int128 __attribute__((may_alias)) wide128;
typedef uint8_t vector32 __attribute__((vector_size(32), aligned(1), may_alias));
typedef uint8_t vector64 __attribute__((vector_size(64), aligned(1), may_alias));

enum { kCounters = 20000, kCounterStride = 27 };  // 27: at every alignment, some across pages

static uint64_t seed;
static double seconds;
static size_t area_bytes;
static unsigned char* data;
static unsigned char* model;     // plain
static unsigned char* counters;  // spilled
static _Atomic uint64_t* added;  // plain: what was added to each counter
static _Atomic uint64_t operations;

struct Worker {
  uint64_t random;
  unsigned char* data;
  unsigned char* model;
  unsigned thread;
  uint64_t operation;
  size_t hot;  // most accesses are near here
};

static _Noreturn void fail(struct Worker* w, const char* what, size_t at, size_t size) {
  printf("seed %llu thread %u operation %llu: %s of %zu bytes at %zu (%p, page offset %zu)\n",
         (unsigned long long)seed, w->thread, (unsigned long long)w->operation, what, size, at,
         (void*)(w->data + at), (size_t)(uintptr_t)(w->data + at) % 4096);
  for (size_t i = 0; i < size; ++i)
    if (w->data[at + i] != w->model[at + i])
      printf("  +%zu: %02x, model %02x\n", i, w->data[at + i], w->model[at + i]);
  fflush(stdout);
  _exit(1);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

// Somewhere in the area with room for `size`: mostly near the last place, often across a page's edge.
static size_t place(struct Worker* w, size_t size) {
  uint64_t r = next_random(&w->random);
  if (r % 64 == 0) w->hot = (r >> 8) % (area_bytes - (1 << 16));
  size_t at = r % 8 < 6 ? w->hot + (r >> 20) % (1 << 14) : (r >> 20) % area_bytes;
  if (r >> 60 == 0) at = (at | 4095) - (r >> 50) % size;
  return at < area_bytes - size ? at : area_bytes - size;
}

#define READ(type, n)                                                               \
  case n: {                                                                         \
    type ours = *(type*)p, wanted;                                                  \
    __builtin_memcpy(&wanted, m, sizeof wanted);                                    \
    if (__builtin_memcmp(&ours, &wanted, sizeof ours) != 0) fail(w, "load", at, n); \
    break;                                                                          \
  }
#define WRITE(type, n)                                                                                  \
  case n: {                                                                                             \
    type value;                                                                                         \
    for (unsigned i = 0; i < n; ++i) ((unsigned char*)&value)[i] = (unsigned char)(r >> i % 8 * 8) + i; \
    *(type*)p = value;                                                                                  \
    __builtin_memcpy(m, &value, n);                                                                     \
    break;                                                                                              \
  }

static void read_one(struct Worker* w, uint64_t r) {
  size_t size = (r >> 8) % 3 != 0 ? (size_t)1 << (r >> 16) % 7 : 1 + (r >> 16) % 64;
  size_t at = place(w, size);
  unsigned char* p = w->data + at;
  unsigned char* m = w->model + at;
  switch (size) {
    READ(uint8_t, 1)
    READ(any16, 2)
    READ(any32, 4)
    READ(any64, 8)
    READ(vector32, 32)
    READ(vector64, 64)
    default: {
      unsigned char copied[64];
      memcpy(copied, p, size);
      if (memcmp(copied, m, size) != 0) fail(w, "copy from", at, size);
      if (memcmp(p, m, size) != 0) fail(w, "compare", at, size);
    }
  }
}

static void write_one(struct Worker* w, uint64_t r) {
  size_t size = (r >> 8) % 3 != 0 ? (size_t)1 << (r >> 16) % 7 : 1 + (r >> 16) % 64;
  size_t at = place(w, size);
  unsigned char* p = w->data + at;
  unsigned char* m = w->model + at;
  r = next_random(&w->random);
  switch (size) {
    WRITE(uint8_t, 1)
    WRITE(any16, 2)
    WRITE(any32, 4)
    WRITE(any64, 8)
    WRITE(vector32, 32)
    WRITE(vector64, 64)
    default: {
      unsigned char bytes[64];
      for (size_t i = 0; i < size; ++i) bytes[i] = (unsigned char)(r + i * 3);
      if (r >> 63) {
        memset(p, bytes[0], size);
        memset(m, bytes[0], size);
      } else {
        memcpy(p, bytes, size);
        memcpy(m, bytes, size);
      }
    }
  }
}

#define ATOMIC(type, n)                                                                             \
  case n: {                                                                                         \
    type* p = (type*)(w->data + at);                                                                \
    type* m = (type*)(w->model + at);                                                               \
    type value = (type)r, before;                                                                   \
    HIDE(p);                                                                                        \
    switch ((r >> 40) % 6) {                                                                        \
      case 0: before = __atomic_fetch_add(p, value, __ATOMIC_SEQ_CST); break;                       \
      case 1: before = __atomic_exchange_n(p, value, __ATOMIC_SEQ_CST); break;                      \
      case 2: before = __atomic_fetch_xor(p, value, __ATOMIC_RELAXED); break;                       \
      case 3: before = __atomic_load_n(p, __ATOMIC_ACQUIRE); break;                                 \
      case 4:                                                                                       \
        before = *m;                                                                                \
        __atomic_store_n(p, value, __ATOMIC_RELEASE);                                               \
        break;                                                                                      \
      default:                                                                                      \
        before = *m;                                                                                \
        if (!__atomic_compare_exchange_n(p, &before, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) \
          fail(w, "compare and swap", at, n);                                                       \
    }                                                                                               \
    if (before != *m) fail(w, "atomic", at, n);                                                     \
    switch ((r >> 40) % 6) {                                                                        \
      case 0: *m += value; break;                                                                   \
      case 2: *m ^= value; break;                                                                   \
      case 3: break;                                                                                \
      default: *m = value;                                                                          \
    }                                                                                               \
    break;                                                                                          \
  }

static void atomic_one(struct Worker* w, uint64_t r) {
  size_t size = (size_t)1 << (r >> 8) % 5;
  size_t at = place(w, size);
  if (size == 16) at &= ~(size_t)15;  // the instruction demands it
  switch (size) {
    ATOMIC(uint8_t, 1)
    ATOMIC(uint16_t, 2)
    ATOMIC(uint32_t, 4)
    ATOMIC(uint64_t, 8)
    default: {
      wide128* p = (wide128*)(w->data + at);
      wide128* m = (wide128*)(w->model + at);
      wide128 value = *m * 3 + (wide128)r;
      HIDE(p);
      if (!__sync_bool_compare_and_swap(p, *m, value)) fail(w, "compare and swap", at, 16);
      *m = value;
    }
  }
}

static void count_one(uint64_t r) {
  size_t i = (r >> 8) % kCounters;
  uint64_t* counter = (uint64_t*)(counters + i * kCounterStride);
  HIDE(counter);
  uint64_t n = 1 + (r >> 50);
  __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
  atomic_fetch_add_explicit(&added[i], n, memory_order_relaxed);
}

static void* work(void* argument) {
  struct Worker state = {0}, *w = &state;
  w->thread = (unsigned)(uintptr_t)argument;
  w->random = seed * 1000 + w->thread;
  w->data = data + w->thread * area_bytes;
  w->model = model + w->thread * area_bytes;
  double end = now() + seconds;
  do {
    for (int i = 0; i < 200; ++i, ++w->operation) {
      uint64_t r = next_random(&w->random);
      switch (r % 8) {
        case 0:
        case 1:
        case 2: read_one(w, r); break;
        case 3:
        case 4:
        case 5: write_one(w, r); break;
        case 6: atomic_one(w, r); break;
        default: count_one(r);
      }
    }
  } while (now() < end);
  // Everything, once, in order.
  for (size_t at = 0; at < area_bytes; at += 64)
    if (memcmp(w->data + at, w->model + at, 64) != 0) fail(w, "last look", at, 64);
  atomic_fetch_add(&operations, w->operation);
  return NULL;
}

int main(int argc, char** argv) {
  CHECK(argc == 5);
  seed = strtoull(argv[1], NULL, 10);
  seconds = strtod(argv[2], NULL);
  unsigned threads = (unsigned)atoi(argv[3]);
  size_t bytes = (size_t)atoi(argv[4]) << 20;
  area_bytes = bytes / threads;
  data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  model = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  added = mmap(NULL, kCounters * 8, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  counters = calloc(kCounters, kCounterStride);
  CHECK(data != MAP_FAILED && model != MAP_FAILED && added != MAP_FAILED && counters != NULL);
  CHECK_SPILLED(data);
  CHECK_SPILLED(counters);
  CHECK(!runs_spilled() || !is_spilled(model));
  pthread_t ids[64];
  for (unsigned t = 0; t < threads; ++t) CHECK(pthread_create(&ids[t], NULL, work, (void*)(uintptr_t)t) == 0);
  for (unsigned t = 0; t < threads; ++t) pthread_join(ids[t], NULL);
  for (size_t i = 0; i < kCounters; ++i) {
    uint64_t value = *(any64*)(counters + i * kCounterStride);
    if (value != added[i]) {
      printf("seed %llu: counter %zu is %llu, not %llu\n", (unsigned long long)seed, i,
             (unsigned long long)value, (unsigned long long)added[i]);
      return 1;
    }
  }
  printf("%llu operations, no wrong byte\n", (unsigned long long)operations);
  return 0;
}
