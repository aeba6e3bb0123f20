// OpenMP on spilled memory: loops of every schedule, reductions, tasks with dependences, sections, locks, atomics, private copies, SIMD;
// its runtime library was not compiled by spillcc, and is given addresses in spilled memory.
// flags: -fopenmp
// chaos: 2
// pages: 4K 16K
// expect: cache.evictions>=100
#include <omp.h>

#include "e2e.h"

enum { kCount = 300000, kThreads = 3 };
struct Item {
  double weight;
  uint64_t key;
  struct Item* next;
} __attribute__((packed));

static uint64_t counted;
#pragma omp threadprivate(counted)

static uint64_t loops(struct Item* items) {
  uint64_t sum = 0, most = 0, all = 0;
#pragma omp parallel for schedule(dynamic, 1000)
  for (int i = 0; i < kCount; ++i)
    items[i] = (struct Item){i * 0.5, (uint64_t)i * 2654435761u, &items[(i * 7 + 1) % kCount]};
#pragma omp parallel for schedule(guided) reduction(+ : sum) reduction(max : most)
  for (int i = 0; i < kCount; ++i) {
    sum += items[i].next->key ^ (uint64_t)items[i].weight;
    if (items[i].key > most) most = items[i].key;
  }
#pragma omp parallel for schedule(static, 7) reduction(^ : all) collapse(2)
  for (int i = 0; i < 100; ++i)
    for (int j = 0; j < 300; ++j) all ^= items[i * 300 + j].key * (uint64_t)(j + 1);
  return sum ^ most ^ all;
}

// An array that each thread has a copy of, on its stack or its heap.
static uint64_t reduce_array(const struct Item* items) {
  uint64_t buckets[64] = {0}, sum = 0;
#pragma omp parallel for reduction(+ : buckets)
  for (int i = 0; i < kCount; ++i) buckets[items[i].key >> 20 & 63] += items[i].key;
  for (int i = 0; i < 64; ++i) sum = sum * 31 + buckets[i];
  return sum;
}

static uint64_t shared_updates(void) {
  uint64_t* cells = calloc(50000, sizeof *cells);
  double* numbers = calloc(50000, sizeof *numbers);
  omp_lock_t* locks = malloc(64 * sizeof *locks);
  uint64_t* guarded = calloc(64 * 512, sizeof *guarded);
  uint64_t critical = 0, sum = 0, own = 0;
  for (int i = 0; i < 64; ++i) omp_init_lock(&locks[i]);
#pragma omp parallel reduction(+ : own)
  {
    counted = 0;
#pragma omp for
    for (int i = 0; i < 60000; ++i) {
      const int at = (int)((uint64_t)i * 2654435761u % 50000);
#pragma omp atomic
      cells[at] += (uint64_t)i;
#pragma omp atomic update
      numbers[(at + i) % 50000] += 0.5;
      if (i % 16 == 0) {
        omp_set_lock(&locks[at % 64]);
        guarded[at % 64 * 512] += (uint64_t)i;
        omp_unset_lock(&locks[at % 64]);
#pragma omp critical
        critical += cells[at] != 0;
      }
      ++counted;
    }
    own += counted;
#pragma omp single
    sum += 5;
#pragma omp sections reduction(+ : sum)
    {
#pragma omp section
      for (int i = 0; i < 25000; ++i) sum += cells[i] + (uint64_t)numbers[i];
#pragma omp section
      for (int i = 25000; i < 50000; ++i) sum += cells[i] + (uint64_t)numbers[i];
    }
  }
  for (int i = 0; i < 64; ++i) {
    omp_destroy_lock(&locks[i]);
    sum = sum * 3 + guarded[i * 512];
  }
  CHECK(own == 60000 && critical >= 60000 / 16 - 1);
  free(guarded), free(locks), free(numbers), free(cells);
  return sum;
}

// Tasks take structures of spilled memory along, as copies.
struct Tree {
  struct Tree* side[2];
  struct Item item;
};
static struct Tree* grow(int depth, uint64_t key) {
  struct Tree* t = malloc(sizeof *t);
  t->side[0] = t->side[1] = NULL;
  t->item = (struct Item){(double)depth, key, NULL};
  if (depth > 0) {
    const struct Tree copy = *t;
#pragma omp task shared(t) firstprivate(copy) if (depth > 6)
    t->side[0] = grow(depth - 1, copy.item.key * 3 + 1);
#pragma omp task shared(t) firstprivate(copy) if (depth > 6)
    t->side[1] = grow(depth - 1, copy.item.key * 5 + 2);
#pragma omp taskwait
  }
  return t;
}
static uint64_t cut(struct Tree* t) {
  if (t == NULL) return 7;
  const uint64_t sum = cut(t->side[0]) * 31 + cut(t->side[1]) * 17 + t->item.key + (uint64_t)t->item.weight;
  free(t);
  return sum;
}
static uint64_t tasks(void) {
  struct Tree* root = NULL;
  uint64_t* chain = calloc(4096, sizeof *chain);
#pragma omp parallel
#pragma omp single
  {
    root = grow(12, 1);
    for (int i = 0; i < 200; ++i) {
#pragma omp task depend(inout : chain[0])
      chain[0] = chain[0] * 3 + 1;
#pragma omp task depend(in : chain[0]) depend(out : chain[512 * (i % 8)])
      chain[512 * (i % 8) + 1 + i / 8] = chain[0];
    }
#pragma omp taskloop grainsize(10)
    for (int i = 100; i < 500; ++i) chain[i] += (uint64_t)i;
  }
  uint64_t sum = cut(root);
  for (int i = 0; i < 4096; ++i) sum = sum * 31 + chain[i];
  free(chain);
  return sum;
}

static uint64_t simd(void) {
  float* a = malloc(kCount * sizeof *a);
  float* b = malloc(kCount * sizeof *b);
  uint64_t sum = 0;
  for (int i = 0; i < kCount; ++i) a[i] = (float)(i % 1000), b[i] = (float)(i % 77);
#pragma omp parallel for simd
  for (int i = 0; i < kCount; ++i) a[i] = a[i] * 2 + b[i];
#pragma omp simd reduction(+ : sum)
  for (int i = 0; i < kCount; ++i) sum += (uint64_t)a[i];
  free(a), free(b);
  return sum;
}

int main(void) {
  omp_set_num_threads(kThreads);
  omp_set_dynamic(0);
  struct Item* items = malloc(kCount * sizeof *items);
  CHECK_SPILLED(items);
  printf("loops %016llx\n", (unsigned long long)loops(items));
  printf("array %016llx\n", (unsigned long long)reduce_array(items));
  printf("shared %016llx\n", (unsigned long long)shared_updates());
  printf("tasks %016llx\n", (unsigned long long)tasks());
  printf("simd %016llx\n", (unsigned long long)simd());
  free(items);
  return 0;
}
