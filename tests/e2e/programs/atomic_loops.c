// Loops that load a word atomically and exchange it if it has changed, over rows of a graph whose description lies in
// spilled memory too, and that call now and then: shortest paths, trees that are joined, counters. On aligned data and at
// odd addresses, where words lie across pages' edges; no byte may be lost.
// flags: -pthread
// memory: 1M
// storage: memory:64M
// levels: O2
// chaos: 2
// pages: 4K 16K
// expect: cache.evictions>=300 spill.crossings>=50
#include <pthread.h>

#include "e2e.h"

#define NOINLINE __attribute__((noinline))
enum { kThreads = 2, kVertices = 4000, kEdges = 26000, kBins = 64, kStep = 32 };

struct list {
  uint32_t* items;
  uint64_t count, room;
};

// What a loop reads of it in each iteration, before and behind what it calls.
struct graph {
  uint64_t vertices;
  uint64_t unused[3];
  const uint64_t* offsets;
  const uint32_t* ends;
  const uint32_t* weights;
};

NOINLINE static void grow(struct list* list) {
  list->room = list->room * 2 + 1;
  list->items = realloc(list->items, list->room * sizeof *list->items);
  CHECK(list->items != NULL);
}

NOINLINE static void relax(const struct graph* graph, uint32_t* distances, uint32_t u, struct list* bins) {
  const uint32_t distance = __atomic_load_n(&distances[u], __ATOMIC_RELAXED);
  for (uint64_t e = graph->offsets[u]; e < graph->offsets[u + 1]; ++e) {
    const uint32_t v = graph->ends[e], better = distance + graph->weights[e];
    uint32_t old = __atomic_load_n(&distances[v], __ATOMIC_RELAXED);
    while (better < old)
      if (__atomic_compare_exchange_n(&distances[v], &old, better, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        struct list* bin = &bins[better / kStep % kBins];
        if (bin->count == bin->room) grow(bin);
        bin->items[bin->count++] = v;
        break;
      }
  }
}

NOINLINE static uint64_t paths(const struct graph* graph, uint32_t* distances) {
  struct list* bins = calloc(kBins, sizeof *bins);
  memset(distances, 0xff, kVertices * sizeof *distances);
  distances[0] = 0;
  for (uint32_t v = 0, left = 1; left != 0;) {
    relax(graph, distances, v, bins);
    left = 0;
    for (unsigned at = 0; at < kBins && left == 0; ++at)
      if (bins[at].count != 0) v = bins[at].items[--bins[at].count], left = 1;
  }
  uint64_t sum = 0;
  for (uint32_t v = 0; v < kVertices; ++v) sum = sum * 31 + distances[v];
  for (unsigned at = 0; at < kBins; ++at) free(bins[at].items);
  free(bins);
  return sum;
}

NOINLINE static void join(uint32_t* parents, uint32_t u, uint32_t v) {
  uint32_t p = __atomic_load_n(&parents[u], __ATOMIC_RELAXED),
           q = __atomic_load_n(&parents[v], __ATOMIC_RELAXED);
  while (p != q) {
    const uint32_t high = p > q ? p : q, low = p > q ? q : p;
    uint32_t above = __atomic_load_n(&parents[high], __ATOMIC_RELAXED);
    if (above == low) return;
    if (above == high &&
        __atomic_compare_exchange_n(&parents[high], &above, low, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
      return;
    p = __atomic_load_n(&parents[__atomic_load_n(&parents[high], __ATOMIC_RELAXED)], __ATOMIC_RELAXED);
    q = __atomic_load_n(&parents[low], __ATOMIC_RELAXED);
  }
}

NOINLINE static void flatten(uint32_t* parents) {
  for (uint64_t v = 0; v < kVertices; ++v)
    while (__atomic_load_n(&parents[v], __ATOMIC_RELAXED) !=
           __atomic_load_n(&parents[__atomic_load_n(&parents[v], __ATOMIC_RELAXED)], __ATOMIC_RELAXED))
      __atomic_store_n(
          &parents[v],
          __atomic_load_n(&parents[__atomic_load_n(&parents[v], __ATOMIC_RELAXED)], __ATOMIC_RELAXED),
          __ATOMIC_RELAXED);
}

NOINLINE static uint64_t components(const struct graph* graph, uint32_t* parents) {
  for (uint32_t v = 0; v < kVertices; ++v) parents[v] = v;
  for (uint32_t v = 0; v < kVertices; ++v)
    for (uint64_t e = graph->offsets[v]; e < graph->offsets[v + 1]; ++e)
      if (graph->weights[e] % 8 == 0) join(parents, v, graph->ends[e]);
  flatten(parents);
  uint64_t sum = 0;
  for (uint32_t v = 0; v < kVertices; ++v) sum = sum * 31 + parents[v];
  return sum;
}

// Of neighbouring words one is loaded first, another changed.
NOINLINE static void count(uint32_t* counters, const uint32_t* which, uint64_t n) {
  for (uint64_t i = 0; i < n; ++i) {
    uint32_t* at = &counters[which[i] % kVertices];
    if (__atomic_load_n(at, __ATOMIC_ACQUIRE) % 3 != 0) at[1] += which[i];
    __atomic_fetch_add(at, which[i] | 1, __ATOMIC_RELAXED);
    at[2] ^= __atomic_exchange_n(at + 3, which[i], __ATOMIC_SEQ_CST);
  }
}

struct memory {
  unsigned char* graph;
  unsigned char* words;
};
static size_t graph_bytes(void) {
  return sizeof(struct graph) + (kVertices + 1) * sizeof(uint64_t) + 2 * kEdges * sizeof(uint32_t) + 64;
}
enum { kWordBytes = (kVertices + 4) * 4 + 64 };

// `odd`: how far words are from where they should be.
static uint64_t play(struct memory at, uint64_t seed, unsigned odd) {
  struct graph* graph = (struct graph*)at.graph;
  uint64_t* offsets = (uint64_t*)(at.graph + sizeof *graph + odd);
  uint32_t* ends = (uint32_t*)((unsigned char*)offsets + (kVertices + 1) * sizeof *offsets);
  uint32_t* weights = ends + kEdges;
  uint64_t random = seed, sum = 0;
  for (uint64_t v = 0; v <= kVertices; ++v) offsets[v] = v * kEdges / kVertices;
  for (uint64_t e = 0; e < kEdges; ++e) {
    ends[e] = (uint32_t)(next_random(&random) % kVertices);
    weights[e] = (uint32_t)(1 + next_random(&random) % 255);
  }
  *graph = (struct graph){kVertices, {0}, offsets, ends, weights};
  uint32_t* words = (uint32_t*)(at.words + odd);
  HIDE(graph);
  HIDE(words);
  sum += paths(graph, words);
  sum = sum * 31 + components(graph, words);
  count(words, ends, kEdges);
  for (uint32_t v = 0; v < kVertices; ++v) sum = sum * 31 + words[v];
  return sum;
}

static void* work(void* argument) {
  size_t thread = (size_t)argument;
  uint64_t sum = 0;
  for (unsigned round = 0; round < 2; ++round) {
    struct memory spilled = {spilled_zeros(graph_bytes()), spilled_zeros(kWordBytes)};
    sum = sum * 31 + play(spilled, thread + round, round == 0 ? 0 : 1 + (unsigned)thread * 2);
    free(spilled.graph), free(spilled.words);
  }
  return (void*)sum;
}

// Threads that change the same words.
static uint32_t* shared_words;
static const struct graph* shared_graph;
static void* work_together(void* argument) {
  for (uint32_t v = (uint32_t)(size_t)argument; v < kVertices; v += kThreads)
    for (uint64_t e = shared_graph->offsets[v]; e < shared_graph->offsets[v + 1]; ++e)
      join(shared_words, v, shared_graph->ends[e]);
  return NULL;
}

static uint64_t together(unsigned odd) {
  unsigned char* memory = spilled_zeros(graph_bytes());
  uint64_t sum = play((struct memory){memory, spilled_zeros(kWordBytes)}, 5, odd);
  shared_graph = (struct graph*)memory;
  shared_words = (uint32_t*)((unsigned char*)spilled_zeros(kWordBytes) + odd);
  for (uint32_t v = 0; v < kVertices; ++v) shared_words[v] = v;
  pthread_t threads[kThreads];
  for (size_t i = 0; i < kThreads; ++i)
    CHECK(pthread_create(&threads[i], NULL, work_together, (void*)i) == 0);
  for (size_t i = 0; i < kThreads; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  flatten(shared_words);
  for (uint32_t v = 0; v < kVertices; ++v) sum = sum * 31 + shared_words[v];
  return sum;
}

int main(void) {
  pthread_t threads[kThreads];
  for (size_t i = 0; i < kThreads; ++i) CHECK(pthread_create(&threads[i], NULL, work, (void*)i) == 0);
  for (size_t i = 0; i < kThreads; ++i) {
    void* sum;
    CHECK(pthread_join(threads[i], &sum) == 0);
    printf("%zx\n", (size_t)sum);
  }
  printf("%llx\n", (unsigned long long)together(0));
  printf("%llx\n", (unsigned long long)together(2));
  return 0;
}
