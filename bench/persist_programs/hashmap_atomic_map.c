/* A hash table of chains without transactions: an entry is complete before it is the first of its chain, by one allocation that sets the chain's begin; it goes by one
   publication that frees it and passes it over. The number of chains is fixed. */
#include "maps.h"

struct entry {
  uint64_t key, value;
  PMEMoid next;
};
enum { kChains = 4096 };

static PMEMoid *chain_of(PMEMoid map, uint64_t key) { return (PMEMoid *)at(map) + mixed(key) % kChains; }

static PMEMoid *find(PMEMoid *place, uint64_t key) {
  while (!OID_IS_NULL(*place) && ((struct entry *)at(*place))->key != key)
    place = &((struct entry *)at(*place))->next;
  return place;
}

static int construct(PMEMobjpool *pool, void *place, void *argument) {
  *(struct entry *)place = *(const struct entry *)argument;
  pmemobj_persist(pool, place, sizeof(struct entry));
  return 0;
}

static void insert(PMEMobjpool *pool, PMEMoid *map, uint64_t key, uint64_t value) {
  if (OID_IS_NULL(*map) && pmemobj_zalloc(pool, map, kChains * sizeof(PMEMoid), 1) != 0) die("zalloc");
  PMEMoid *const chain = chain_of(*map, key);
  const PMEMoid found = *find(chain, key);
  if (!OID_IS_NULL(found)) {
    struct entry *const entry = at(found);
    entry->value = value;
    pmemobj_persist(pool, &entry->value, sizeof entry->value);
    return;
  }
  struct entry made = {key, value, *chain};
  if (pmemobj_alloc(pool, chain, sizeof made, 2, construct, &made) != 0) die("alloc");
}

static int remove_key(PMEMobjpool *pool, PMEMoid *map, uint64_t key) {
  if (OID_IS_NULL(*map)) return 0;
  PMEMoid *const place = find(chain_of(*map, key), key);
  if (OID_IS_NULL(*place)) return 0;
  const PMEMoid next = ((struct entry *)at(*place))->next;
  struct pobj_action actions[3];
  pmemobj_defer_free(pool, *place, &actions[0]);
  pmemobj_set_value(pool, &actions[1], &place->off, next.off);
  pmemobj_set_value(pool, &actions[2], &place->pool_uuid_lo, next.pool_uuid_lo);
  if (pmemobj_publish(pool, actions, 3) != 0) die("publish");
  return 1;
}

static int lookup(PMEMoid map, uint64_t key, uint64_t *value) {
  if (OID_IS_NULL(map)) return 0;
  const PMEMoid *const place = find(chain_of(map, key), key);
  if (OID_IS_NULL(*place)) return 0;
  *value = ((struct entry *)at(*place))->value;
  return 1;
}

static void visit_all(PMEMoid map, visit_fn *visit, void *argument) {
  if (OID_IS_NULL(map)) return;
  for (int i = 0; i < kChains; ++i)
    for (PMEMoid next = ((PMEMoid *)at(map))[i]; !OID_IS_NULL(next);) {
      const struct entry *const entry = at(next);
      visit(entry->key, entry->value, argument);
      next = entry->next;
    }
}

const struct map_kind hashmap_atomic_map = {"hashmap_atomic", insert, remove_key, lookup, visit_all};
