/* Persistent maps of 64-bit keys and values over libpmemobj, each its own way: what `spillway bench persist-programs` and tests/persist_pmem run as programs that know nothing of the runtime.

   A map begins with a PMEMoid in the pool's root object, which is null at first. Operations are durable when they return; what fails ends the process. One thread. */
#ifndef SPILLWAY_BENCH_MAPS_H
#define SPILLWAY_BENCH_MAPS_H
#include <libpmemobj.h>
#include <stdint.h>

typedef void visit_fn(uint64_t key, uint64_t value, void *argument);

struct map_kind {
  const char *name;
  /* Sets the value of a key, new or not. */
  void (*insert)(PMEMobjpool *pool, PMEMoid *map, uint64_t key, uint64_t value);
  /* 1: it was there. */
  int (*remove)(PMEMobjpool *pool, PMEMoid *map, uint64_t key);
  int (*lookup)(PMEMoid map, uint64_t key, uint64_t *value);
  /* All entries, in any order. */
  void (*visit)(PMEMoid map, visit_fn *visit, void *argument);
};

extern const struct map_kind ctree_map, btree_map, rbtree_map, hashmap_tx_map, hashmap_atomic_map;

/* Ends the process with one line and status 1. */
_Noreturn void die(const char *what);

/* A change of several places, all or nothing: between tx_begin() and tx_end(), which makes it durable. */
void tx_begin(PMEMobjpool *pool);
void tx_end(void);
/* Of such a change: memory of zeros; that it goes; that [place, place + bytes) is about to change. */
PMEMoid tx_new(size_t bytes);
void tx_free(PMEMoid object);
void tx_add(void *place, size_t bytes);
/* Sets a place that has been there before. */
#define TX_ASSIGN(place, value) (tx_add(&(place), sizeof(place)), (place) = (value))

static inline void *at(PMEMoid object) { return pmemobj_direct(object); }
static inline int is_same(PMEMoid a, PMEMoid b) { return a.off == b.off; }

/* A number that looks random, and is the same each time. */
static inline uint64_t mixed(uint64_t number) {
  number += 0x9e3779b97f4a7c15U;
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9U;
  number = (number ^ (number >> 27)) * 0x94d049bb133111ebU;
  return number ^ (number >> 31);
}
#endif
