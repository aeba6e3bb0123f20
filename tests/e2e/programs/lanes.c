// Vectors of addresses: gathers and scatters whose lanes lie in one page, in several, across page edges; whose
// mask switches lanes off that hold no address at all, or all lanes; and scatters whose lanes overlap.
// levels: avx512
// needs: avx512vl
// expect: cache.evictions>=100
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))
#define PRAGMA(text) _Pragma(#text)
#define LANES(count) PRAGMA(clang loop vectorize(assume_safety) interleave(disable) vectorize_width(count))

enum { kPage = 4096, kPages = 320, kBytes = kPages * kPage, kLanes = 192 };

static uint64_t state = 88172645463325252u;
static uint64_t random_u64(void) {
  state ^= state << 13, state ^= state >> 7;
  return state ^= state << 17;
}

static uint64_t hash(const void *data, size_t n) {
  uint64_t h = 14695981039346656037u;
  for (size_t i = 0; i < n; ++i) h = (h ^ ((const unsigned char *)data)[i]) * 1099511628211u;
  return h;
}

// Accesses of one type in vectors of one number of lanes.
#define KERNELS(name, type, count)                                                                   \
  NOINLINE void name##_gather(type *restrict to, type *const *from, size_t n) {                      \
    LANES(count) for (size_t i = 0; i < n; ++i) to[i] = *from[i];                                    \
  }                                                                                                  \
  NOINLINE void name##_gather_some(type *restrict to, type *const *from, const type *on, size_t n) { \
    LANES(count) for (size_t i = 0; i < n; ++i) if (on[i]) to[i] = *from[i];                         \
  }                                                                                                  \
  NOINLINE void name##_scatter(type *const *to, const type *from, size_t n) {                        \
    LANES(count) for (size_t i = 0; i < n; ++i) to[i][0] = from[i];                                  \
  }                                                                                                  \
  NOINLINE void name##_scatter_some(type *const *to, const type *from, const type *on, size_t n) {   \
    LANES(count) for (size_t i = 0; i < n; ++i) if (on[i]) to[i][0] = from[i];                       \
  }                                                                                                  \
  static uint64_t name##_round(char *const *lanes, const char *mask, char *values, char *results) {  \
    type *const *at = (type *const *)lanes;                                                          \
    type on[kLanes];                                                                                 \
    for (size_t i = 0; i < kLanes; ++i) on[i] = (type)mask[i];                                       \
    name##_scatter_some(at, (const type *)values, on, kLanes);                                       \
    name##_gather_some((type *)results, at, on, kLanes);                                             \
    if (memchr(mask, 0, kLanes)) return hash(results, kLanes * sizeof(type));                        \
    name##_scatter(at, (const type *)values + 1, kLanes);                                            \
    name##_gather((type *)results, at, kLanes);                                                      \
    return hash(results, kLanes * sizeof(type));                                                     \
  }
KERNELS(words64, uint32_t, 64)
KERNELS(words, uint32_t, 16)
KERNELS(floats, float, 8)
KERNELS(longs, uint64_t, 8)
KERNELS(doubles, double, 4)
KERNELS(pairs, uint64_t, 2)

// Memory on the stack, at any distance: plain, and in no page with the rest.
NOINLINE uint64_t local(const uint32_t *index, size_t n) {
  uint64_t table[600], total = 0;
  for (size_t i = 0; i < 600; ++i) table[i] = i * i;
  LANES(8) for (size_t i = 0; i < n; ++i) total += table[index[i] % 600];
  return total;
}

// The addresses themselves are what is stored.
NOINLINE void point_to_itself(char **const *to, size_t n) {
  LANES(8) for (size_t i = 0; i < n; ++i) to[i][0] = (char *)to[i];
}

struct Node {
  uint64_t a, b;
  double c;
  uint32_t d[10];
};
NOINLINE uint64_t fields(struct Node *nodes, size_t n) {
  uint64_t total = 0;
  for (size_t i = 0; i < n; ++i) {
    nodes[i].b = nodes[i].a * 3 + nodes[i].d[7];
    total += nodes[i].b ^ nodes[i].d[2];
  }
  return total;
}

// Where a lane lies, relative to the page and the edge that the group of lanes was given.
static size_t place(unsigned kind, size_t page, size_t lane) {
  uint64_t random = random_u64();
  switch (kind) {
    case 0: return page * kPage + random % (kPage - 8);          // anywhere in the page
    case 1: return page * kPage + lane % 8 * 40 + random % 16;   // near each other
    case 2: return page * kPage + kPage - 8 - random % 4 * 8;    // its last bytes
    case 3: return page * kPage + kPage - 1 - random % 12;       // over its edge too
    case 4: return (page + random % 2) * kPage + random % 4000;  // in two pages
    case 5: return page * kPage - (lane % 5 == 4 ? 24 : 0);      // the page before
    case 6: return random % (kBytes - 16);                       // anywhere
    default: return page * kPage + random % 3 * 4 + 64;          // on top of each other
  }
}

int main(void) {
  char *memory = aligned_alloc(kPage, kBytes);
  for (size_t i = 0; i < kBytes; ++i) memory[i] = (char)(i * 131 >> 5 & 63);
  char **lanes = calloc(kLanes, sizeof *lanes);
  char *values = malloc((kLanes + 1) * 8), *results = calloc(kLanes, 8);
  uint64_t sum = 0;
  for (int round = 0; round < 360; ++round) {
    char mask[kLanes];
    uint64_t random = random_u64();
    unsigned kind = 0, off = random >> 8 & 7;
    size_t page = 0;
    for (size_t i = 0; i < kLanes; ++i) {
      if (i % 8 == 0) kind = random_u64() % 16, page = 1 + random_u64() % (kPages - 3);
      // Off are: none; most; all of some vectors; some.
      uint64_t dice = random_u64();
      mask[i] = off < 3 ? 1 : off == 3 ? dice % 9 == 0 : off == 4 ? i / 8 % 3 != 0 : dice % 3 != 0;
      lanes[i] = mask[i] ? memory + place(kind % 8, page, i) : (char *)(dice | dice >> 1 << 63);
    }
    // Numbers that are the same as integers and in floating point.
    for (size_t i = 0; i < (kLanes + 1) * 8; ++i) values[i] = (char)(random_u64() >> 59);
    switch (random % 6) {
      case 0: sum += words64_round(lanes, mask, values, results); break;
      case 1: sum += words_round(lanes, mask, values, results); break;
      case 2: sum += floats_round(lanes, mask, values, results); break;
      case 3: sum += longs_round(lanes, mask, values, results); break;
      case 4: sum += doubles_round(lanes, mask, values, results); break;
      default: sum += pairs_round(lanes, mask, values, results);
    }
    if (round % 24 == 0) printf("%d %016llx\n", round, (unsigned long long)sum);
  }
  printf("%016llx\n", (unsigned long long)hash(memory, kBytes));
  printf("%016llx\n", (unsigned long long)local((uint32_t *)memory, kBytes / 64));

  // At offsets that let the last node of a vector cross an edge.
  uint64_t total = 0;
  for (size_t shift = 0; shift < 64; shift += 24)
    total =
        total * 31 + fields((struct Node *)(memory + 5 * kPage + shift), kBytes / 2 / sizeof(struct Node));
  printf("%016llx\n", (unsigned long long)total);

  for (size_t i = 0; i < kLanes; ++i) lanes[i] = memory + (7 + i / 16) * kPage + i * 56;
  point_to_itself((char **const *)lanes, kLanes);
  size_t wrong = 0;
  for (size_t i = 0; i < kLanes; ++i) wrong += *(char **)lanes[i] != lanes[i];
  printf("%zu wrong\n", wrong);
  free(results);
  free(values);
  free(lanes);
  free(memory);
}
