// Loops over what an object says that does not move and lies across a page's edge: on the stack, in plain memory, in a file's shared
// mapping, in spilled memory, and there after code that was not compiled by spillcc has mapped both its pages. On three threads,
// which push out each other's pages; no byte may be lost.
// flags: -pthread
// memory: 3M
// storage: memory:64M
// chaos: 1
// levels: O2 O3
// expect: cache.evictions>=1000 spill.crossings>=100 spill.faults>=2
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#include "e2e.h"

#define NOINLINE __attribute__((noinline))
enum { kThreads = 3, kPage = 4096, kWords = 20000, kFarWords = 6 << 17, kCounts = 400 };

// Each member is used in the loop: together they are the window that crosses.
struct object {
  const uint64_t* words;
  uint64_t count, sum, largest, changes;
} __attribute__((packed));

static uint64_t* far_words;  // spilled: what waits for them lets other pages go

NOINLINE static void work(struct object* o, uint64_t seed) {
  for (uint64_t i = 0; i < o->count; ++i) {
    uint64_t word = o->words[(i * 2654435761u + seed) % o->count];
    o->sum = o->sum * 31 + word;
    if (word > o->largest) o->largest = word, ++o->changes;
    if (i % 257 == 0) o->sum ^= far_words[(o->sum + i * 4099) % kFarWords];
  }
}

// What is used most comes last; what comes before it now and then is the first to meet the object. Each of the far words shares its
// translation with nothing.
NOINLINE static void count(struct object* o, uint64_t n, uint64_t seed) {
  for (uint64_t done = 0; done < n;) {
    if (done % 3 == 0) ++o->changes;
    o->sum = o->sum * 31 + far_words[seed % kFarWords];
    seed += o->sum % 4099;
    done += 1 + (seed & 1);
  }
}

static uint64_t far_value(uint64_t i) { return i * 0x9e3779b97f4a7c15; }

// As many of its bytes before the edge as `at` says.
static struct object* across(unsigned char* pages, size_t at) {
  struct object* o = (struct object*)(pages + kPage - at);
  HIDE(o);
  return o;
}

struct answer {
  uint64_t sum, largest, changes;
};

NOINLINE static struct answer ask(struct object* o, const uint64_t* words, uint64_t seed, int foreign) {
  *o = (struct object){words, kWords, seed, 0, 0};
  if (foreign) {  // code that is not translated has both pages where they are
    foreign_load((char*)o);
    foreign_load((char*)o + sizeof *o - 1);
  }
  work(o, seed);
  count(o, kCounts, seed);
  if (foreign) {
    foreign_increment((char*)&o->changes);
    --o->changes;
  }
  return (struct answer){o->sum, o->largest, o->changes};
}

static void check_same(struct answer a, struct answer b) {
  CHECK(a.sum == b.sum && a.largest == b.largest && a.changes == b.changes);
}

static unsigned char plain[kThreads][3 * kPage] __attribute__((aligned(4096)));

static void* run(void* argument) {
  size_t thread = (size_t)argument;
  unsigned char stack[3 * kPage] __attribute__((aligned(4096)));
  unsigned char* block = spilled_zeros(4 * kPage);
  unsigned char* spilled = block + (kPage - (uint64_t)block % kPage);
  FILE* file = tmpfile();
  CHECK(file != NULL && ftruncate(fileno(file), 3 * kPage) == 0);
  unsigned char* shared = mmap(NULL, 3 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
  CHECK(shared != MAP_FAILED);
  uint64_t* words = spilled_zeros(kWords * sizeof *words);
  uint64_t random = thread;
  for (size_t i = 0; i < kWords; ++i) words[i] = next_random(&random);
  uint64_t sum = 0;
  struct object apart __attribute__((aligned(64)));
  struct object* inside = &apart;
  for (size_t at = 0; at <= sizeof apart; at += 4) {
    struct answer right = ask(inside, words, at, 0);
    check_same(ask(across(stack, at), words, at, 0), right);
    check_same(ask(across(plain[thread], at), words, at, 0), right);
    check_same(ask(across(shared, at), words, at, 0), right);
    check_same(ask(across(spilled, at), words, at, 0), right);
    check_same(ask(across(spilled, at), words, at, 1), right);
    sum = sum * 31 + right.sum;
  }
  CHECK(munmap(shared, 3 * kPage) == 0 && fclose(file) == 0);
  free(words);
  free(block);
  return (void*)sum;
}

int main(void) {
  far_words = spilled_zeros(kFarWords * sizeof *far_words);
  for (uint64_t i = 0; i < kFarWords; ++i) far_words[i] = far_value(i);
  pthread_t threads[kThreads];
  for (size_t i = 0; i < kThreads; ++i) CHECK(pthread_create(&threads[i], NULL, run, (void*)i) == 0);
  for (size_t i = 0; i < kThreads; ++i) {
    void* sum;
    CHECK(pthread_join(threads[i], &sum) == 0);
    printf("%zx\n", (size_t)sum);
  }
  for (uint64_t i = 0; i < kFarWords; ++i) CHECK(far_words[i] == far_value(i));
  return 0;
}
