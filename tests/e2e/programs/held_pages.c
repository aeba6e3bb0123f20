// Loops whose number of iterations nobody knows, over pointers that stay in a page for long: the page is held while
// others miss, also over edges that an element crosses. On three threads; no byte may be lost.
// flags: -pthread
// memory: 3M
// storage: memory:64M
// levels: O2 O3
// pages: 4K 16K 64K
// expect: cache.evictions>=2000 spill.crossings>=200
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>
#include "e2e.h"

#define NOINLINE __attribute__((noinline))
enum { kThreads = 3, kRounds = 5, kBytes = 60000, kFarBytes = 6 << 20 };
typedef uint64_t __attribute__((aligned(1))) any64;

static unsigned char* far_bytes;  // spilled, never changed
static unsigned char value_of(size_t i) { return (unsigned char)(i * 131 + (i >> 8) * 17); }
static volatile uint64_t* far_word(uint64_t random) {
  return (uint64_t*)(far_bytes + random % (kFarBytes / 8) * 8);
}

// What one step wants far away, now and then: it has to wait, and pages that nobody holds go.
static uint64_t elsewhere(uint64_t i) { return i % 61 == 0 ? *far_word(i * 2654435761u) : i; }
NOINLINE static uint64_t call_elsewhere(uint64_t i) { return elsewhere(i * 61); }

// Both pointers go on; the target is written behind what was read.
NOINLINE static uint64_t copy_to_end(unsigned char* to, const unsigned char* from) {
  uint64_t sum = 0;
  unsigned char byte;
  do {
    byte = *from++;
    *to++ = byte;
    sum = sum * 31 + elsewhere(sum) + byte;
  } while (byte != 0);
  return sum;
}

// Two pointers that meet, of elements that lie across edges now and then.
NOINLINE static any64* split_at(any64* low, any64* high, uint64_t middle) {
  for (;;) {
    while (*low < middle) ++low;
    do --high;
    while (*high > middle);
    if (low >= high) return low;
    uint64_t swapped = *low;
    *low++ = *high;
    *high = swapped;
  }
}

// Neighbours that go down side by side, until one is not larger.
NOINLINE static uint64_t insert(any64* at) {
  uint64_t value = *at, moves = 0;
  any64* next = at - 1;
  while (value < *next) {
    *at = *next;
    at = next;
    --next;
    moves += 1 + (elsewhere(moves) & 1);
  }
  *at = value;
  return moves;
}

// A counter that does not move, of whose changes none may go to a page that was given up meanwhile.
NOINLINE static void count_bits(any64* total, const unsigned char* p, uint64_t calls) {
  for (uint64_t i = 0; *p != 0; ++p, ++i) {
    if (*p & 1) *total += 1 + (elsewhere(i) & 1);
    if (i % calls == calls - 1) *total ^= call_elsewhere(i);
  }
}

// An inner loop goes on where the last one ended.
NOINLINE static uint64_t words(const unsigned char* p, any64* lengths) {
  uint64_t count = 0;
  while (*p != 0) {
    const unsigned char* begin = p;
    while (*p > 40) ++p;
    lengths[count % 600] += (uint64_t)(p - begin) + elsewhere(count);
    ++count;
    if (*p != 0) ++p;
  }
  return count;
}

struct pieces {
  unsigned char *text, *copy, *numbers, *lengths, *total;
};

// The same in memory that is never spilled gives the same.
static uint64_t play(struct pieces at, uint64_t seed) {
  uint64_t random = seed, sum = 0;
  for (size_t i = 0; i < kBytes - 1; ++i) {
    unsigned char byte = (unsigned char)next_random(&random);
    at.text[i] = byte ? byte : 1;
  }
  at.text[kBytes - 1] = 0;
  sum += copy_to_end(at.copy, at.text);
  any64* numbers = (any64*)at.numbers;
  enum { kNumbers = kBytes / 8 };
  numbers[0] = 0, numbers[kNumbers - 1] = ~0ull;
  for (size_t i = 1; i < kNumbers - 1; ++i) numbers[i] = next_random(&random) >> 1;
  uint64_t middle = numbers[kNumbers / 2];
  any64* parts = split_at(numbers, numbers + kNumbers, middle);
  CHECK(parts > numbers && parts < numbers + kNumbers);
  for (any64* p = numbers; p < numbers + kNumbers; ++p) {
    CHECK(p < parts ? *p <= middle : *p >= middle);
    sum = sum * 31 + *p;
  }
  for (size_t i = 2; i < 300; ++i) sum = sum * 31 + insert(numbers + i);
  for (size_t i = 1; i < 300; ++i) CHECK(numbers[i - 1] <= numbers[i]);
  count_bits((any64*)at.total, at.copy, 1 + seed % 1000);
  sum += words(at.copy, (any64*)at.lengths);
  for (size_t i = 0; i < 600; ++i) sum = sum * 31 + ((any64*)at.lengths)[i];
  return sum * 31 + *(any64*)at.total;
}

static unsigned char plain[kThreads][3 * kBytes + 8192];

static struct pieces lay_out(unsigned char* memory, size_t offset) {
  memory += offset;
  return (struct pieces){memory, memory + kBytes, memory + 2 * kBytes, memory + 3 * kBytes,
                         memory + 3 * kBytes + 5000};
}

static void* work(void* argument) {
  size_t thread = (size_t)argument;
  uint64_t sum = 0;
  for (uint64_t round = 0; round < kRounds; ++round) {
    unsigned char* spilled = spilled_zeros(sizeof plain[0]);
    memset(plain[thread], 0, sizeof plain[0]);
    // Odd distances from the edge, so that elements cross it.
    uint64_t got = play(lay_out(spilled, 1 + round * 7 % 128), round * kThreads + thread);
    CHECK(got == play(lay_out(plain[thread], 1 + round * 7 % 128), round * kThreads + thread));
    CHECK(memcmp(spilled, plain[thread], sizeof plain[0]) == 0);
    free(spilled);
    sum = sum * 31 + got;
  }
  return (void*)sum;
}

int main(void) {
  far_bytes = mmap(NULL, kFarBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(far_bytes != MAP_FAILED);
  CHECK_SPILLED(far_bytes);
  for (size_t i = 0; i < kFarBytes; ++i) far_bytes[i] = value_of(i);
  pthread_t threads[kThreads];
  for (size_t i = 0; i < kThreads; ++i) CHECK(pthread_create(&threads[i], NULL, work, (void*)i) == 0);
  for (size_t i = 0; i < kThreads; ++i) {
    void* sum;
    CHECK(pthread_join(threads[i], &sum) == 0);
    printf("%zx\n", (size_t)sum);
  }
  return 0;
}
