// Pointers that walk through spilled memory in loops that are left at any moment: searches, rows of a graph, a
// partition from both ends, records that lie across pages' edges; on aligned data and on data at odd addresses.
// While pages come and go, every loop must do what it does natively.
// memory: 1M
// storage: memory:64M
// chaos: 2
// expect: cache.evictions>=1000 spill.crossings>=100
#include "e2e.h"

enum { kWords = 120000, kVertices = 3000, kEdges = 40000, kRecords = 20000 };

typedef uint32_t __attribute__((aligned(1))) any32;
typedef uint64_t __attribute__((aligned(1))) any64;

__attribute__((noinline)) static size_t find(const any32* words, uint32_t wanted) {
  size_t i = 0;
  while (words[i] != wanted) ++i;
  return i;
}

__attribute__((noinline)) static size_t find_last(const any32* words, size_t end, uint32_t wanted) {
  while (words[--end] != wanted) {
  }
  return end;
}

// Two pointers and a store, under conditions.
__attribute__((noinline)) static size_t merge(const any32* a, const any32* a_end, const any32* b,
                                              const any32* b_end, any32* to) {
  any32* const begin = to;
  while (a != a_end && b != b_end)
    if (*a < *b)
      *to++ = *a++;
    else if (*b < *a)
      *to++ = *b++;
    else
      ++b;
  while (a != a_end) *to++ = *a++;
  while (b != b_end) *to++ = *b++;
  return (size_t)(to - begin);
}

__attribute__((noinline)) static uint64_t pull(const any32* offsets, const any32* edges, const any32* values,
                                               any64* sums, size_t n) {
  uint64_t total = 0;
  for (size_t v = 0; v < n; ++v) {
    uint64_t sum = 0;
    for (uint32_t e = offsets[v]; e < offsets[v + 1]; ++e) {
      if (values[edges[e]] == 77) break;
      sum += values[edges[e]];
    }
    sums[v] = sum;
    total += sum * v;
  }
  return total;
}

__attribute__((noinline)) static void sort_words(any32* first, any32* last) {
  while (last - first > 12) {
    const uint32_t pivot = first[(last - first) / 2];
    any32 *i = first, *j = last - 1;
    for (;;) {
      while (*i < pivot) ++i;
      while (pivot < *j) --j;
      if (i >= j) break;
      const uint32_t word = *i;
      *i++ = *j;
      *j-- = word;
    }
    if (i == first) ++i;
    sort_words(first, i);
    first = i;
  }
  for (any32* i = first; i != last; ++i) {
    const uint32_t word = *i;
    any32* at = i;
    for (; at != first && word < at[-1]; --at) *at = at[-1];
    *at = word;
  }
}

struct __attribute__((packed)) record {
  uint32_t id;
  uint64_t weight;
  uint16_t kind;
  uint64_t next;
};

__attribute__((noinline)) static uint64_t visit(struct record* records, uint32_t last) {
  uint64_t sum = 0;
  for (struct record* r = records;; ++r) {
    sum += r->weight ^ r->next;
    r->weight += r->kind;
    r->next = sum;
    if (r->id == last) return sum;
  }
}

// Addresses anywhere: asked for an edge only where the base is at an odd one.
__attribute__((noinline)) static uint64_t scatter(any64* words, uint64_t count, uint64_t steps) {
  uint64_t random = 1, sum = 0;
  for (uint64_t i = 0; i < steps; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    sum += words[(random >> 20) % count] += random;
  }
  return sum;
}

static void work(unsigned shift) {
  uint64_t random = shift + 1;
  any32* words = (any32*)((char*)calloc(kWords + 2, 4) + shift);
  any32* merged = (any32*)((char*)calloc(kWords + 2, 4) + shift);
  CHECK_SPILLED(words);
  for (size_t i = 0; i < kWords; ++i) words[i] = (uint32_t)next_random(&random) | 1;
  for (int i = 0; i < 6; ++i) {
    const size_t at = next_random(&random) % kWords;
    const uint32_t kept = words[at];
    words[at] = 2;
    CHECK(find(words, 2) == at && find_last(words, kWords, 2) == at);
    words[at] = kept;
  }
  sort_words(words, words + kWords / 2);
  sort_words(words + kWords / 2, words + kWords);
  for (size_t i = 1; i < kWords; ++i) CHECK(i == kWords / 2 || words[i - 1] <= words[i]);
  const size_t merged_count = merge(words, words + kWords / 2, words + kWords / 2, words + kWords, merged);
  uint64_t sum = merged_count;
  for (size_t i = 0; i < merged_count; ++i) sum = sum * 31 + merged[i];
  printf("%u: merged %llx\n", shift, (unsigned long long)sum);

  any32* offsets = (any32*)((char*)calloc(kVertices + 3, 4) + shift);
  any32* edges = (any32*)((char*)calloc(kEdges + 2, 4) + shift);
  any64* sums = (any64*)((char*)calloc(kVertices + 2, 8) + shift);
  for (size_t v = 1; v <= kVertices; ++v) {
    const uint32_t left = kEdges - offsets[v - 1], most = left * 2 / (uint32_t)(kVertices - v + 2);
    offsets[v] = offsets[v - 1] + (most == 0 ? 0 : (uint32_t)(next_random(&random) % most));
  }
  for (size_t e = 0; e < kEdges; ++e) edges[e] = (uint32_t)(next_random(&random) % kWords);
  for (int i = 0; i < 3; ++i) {
    sum = pull(offsets, edges, merged, sums, kVertices);
    for (size_t v = 0; v < kVertices; ++v) sum = sum * 31 + sums[v];
    printf("%u: pulled %llx\n", shift, (unsigned long long)sum);
    merged[edges[next_random(&random) % kEdges]] = 77;
  }

  struct record* records = (struct record*)((char*)calloc(kRecords + 1, sizeof(struct record)) + shift);
  for (uint32_t i = 0; i < kRecords; ++i)
    records[i] = (struct record){i, next_random(&random), (uint16_t)i, next_random(&random)};
  for (int i = 0; i < 3; ++i)
    printf("%u: visited %llx\n", shift, (unsigned long long)visit(records, kRecords - 1));
  printf("%u: scattered %llx\n", shift,
         (unsigned long long)scatter((any64*)((char*)merged), kWords / 2 - 1, 10000));
  free((char*)words - shift);
  free((char*)merged - shift);
  free((char*)offsets - shift);
  free((char*)edges - shift);
  free((char*)sums - shift);
  free((char*)records - shift);
}

int main(void) {
  work(0);
  work(1);
  work(6);
  return 0;
}
