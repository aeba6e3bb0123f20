// Loops over rows that begin anywhere, as those of vertices in a queue: the loop over the queue looks ahead to where rows begin, the loop over a row to
// what is in it. What they compute is what they would compute without: where pointers are loaded anew, or really change on the way, where a
// row ends before its time, and where rows and queue end with the memory.
// expect: cache.prefetches>=500 cache.ahead_used>=400
// pages: 4K 16K
// chaos: 2
#include <pthread.h>
#include <stdatomic.h>

#include "e2e.h"

enum { VERTICES = 1 << 10, VALUES = 1 << 16, LONGEST = 150 };

struct graph {
  uint64_t* offsets;
  uint32_t* edges;
  uint64_t* values;
};

static struct graph graph;
static uint32_t* queue;

__attribute__((noinline)) static uint64_t sum(const struct graph* g, const uint32_t* order, size_t n) {
  uint64_t s = 0;
  for (size_t i = 0; i < n; ++i) {
    uint64_t t = 0;
    for (uint64_t e = g->offsets[order[i]]; e < g->offsets[order[i] + 1]; ++e) t += g->values[g->edges[e]];
    s = s * 3 + t;
  }
  return s;
}

// After each store g's pointers are loaded anew.
__attribute__((noinline)) static uint64_t mark(struct graph* g, const uint32_t* order, size_t n) {
  uint64_t s = 0;
  for (size_t i = 0; i < n; ++i)
    for (uint64_t e = g->offsets[order[i]]; e < g->offsets[order[i] + 1]; ++e) {
      uint64_t* value = &g->values[g->edges[e]];
      if (*value & 1) *value += i;
      s = s * 5 + *value;
    }
  return s;
}

// The values really are others from time to time.
__attribute__((noinline)) static uint64_t change(struct graph* g, uint64_t* others, const uint32_t* order,
                                                 size_t n) {
  uint64_t s = 0;
  for (size_t i = 0; i < n; ++i) {
    for (uint64_t e = g->offsets[order[i]]; e < g->offsets[order[i] + 1]; ++e) {
      g->values[g->edges[e]] += e;
      s = s * 7 + g->values[g->edges[e] / 2];
    }
    if (i % 97 == 0) {
      uint64_t* mine = g->values;
      g->values = others;
      others = mine;
    }
  }
  return s;
}

__attribute__((noinline)) static uint64_t first_odd(const struct graph* g, const uint32_t* order, size_t n) {
  uint64_t s = 0;
  for (size_t i = 0; i < n; ++i)
    for (uint64_t e = g->offsets[order[i]]; e < g->offsets[order[i] + 1]; ++e)
      if (g->values[g->edges[e]] % 8 == 1) {
        s = s * 11 + e;
        break;
      }
  return s;
}

// Rows in order, most of them left out.
__attribute__((noinline)) static uint64_t some(const struct graph* g, const uint32_t* order, size_t n) {
  uint64_t s = 0;
  for (size_t v = 0; v < n; ++v) {
    if (order[v] % 8 != 0) continue;
    for (uint64_t e = g->offsets[v]; e < g->offsets[v + 1]; ++e) s = s * 13 + g->values[g->edges[e]];
  }
  return s;
}

static _Atomic size_t next_part;
static _Atomic uint64_t found;

static void* part(void* none) {
  for (size_t at; (at = atomic_fetch_add(&next_part, 64)) < VERTICES;)
    atomic_fetch_add(&found, sum(&graph, queue + at, 64));
  return none;
}

int main(void) {
  uint64_t state = 1;
  graph.offsets = malloc((VERTICES + 1) * sizeof *graph.offsets);
  uint64_t entries = 0;
  for (size_t v = 0; v < VERTICES; ++v) {
    graph.offsets[v] = entries;
    entries += v % 5 == 0 ? 0 : next_random(&state) % LONGEST;
  }
  graph.offsets[VERTICES] = entries;
  graph.edges = malloc(entries * sizeof *graph.edges);
  for (uint64_t e = 0; e < entries; ++e) graph.edges[e] = (uint32_t)(next_random(&state) % VALUES);
  graph.values = malloc(VALUES * sizeof *graph.values);
  uint64_t* others = malloc(VALUES * sizeof *others);
  for (size_t i = 0; i < VALUES; ++i) graph.values[i] = others[i] = next_random(&state);
  queue = malloc(VERTICES * sizeof *queue);
  for (size_t i = 0; i < VERTICES; ++i) queue[i] = (uint32_t)i;
  for (size_t i = VERTICES - 1; i > 0; --i) {
    const size_t other = next_random(&state) % (i + 1);
    const uint32_t mine = queue[i];
    queue[i] = queue[other];
    queue[other] = mine;
  }
  const size_t n = VERTICES;
  printf("sum %llx\n", (unsigned long long)sum(&graph, queue, n));
  printf("first odd %llx\n", (unsigned long long)first_odd(&graph, queue, n));
  printf("some %llx\n", (unsigned long long)some(&graph, queue, n));
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) CHECK(pthread_create(&threads[i], NULL, part, NULL) == 0);
  for (int i = 0; i < 2; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  printf("by two %llx\n", (unsigned long long)found);
  printf("mark %llx\n", (unsigned long long)mark(&graph, queue, n));
  printf("change %llx\n", (unsigned long long)change(&graph, others, queue, n));
  printf("sum %llx\n", (unsigned long long)sum(&graph, queue, n));
  return 0;
}
