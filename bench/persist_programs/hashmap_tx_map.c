/* A hash table of chains, changed by transactions; it doubles when there are twice as many entries as chains. */
#include "maps.h"

struct entry {
  uint64_t key, value;
  PMEMoid next;
};
struct table {
  uint64_t entries, mask;
  PMEMoid chains; /* an array of mask + 1 */
};
enum { kFirstChains = 16 };

static PMEMoid *chain_of(const struct table *table, uint64_t key) {
  return (PMEMoid *)at(table->chains) + (mixed(key) & table->mask);
}

static PMEMoid *find(PMEMoid *place, uint64_t key) {
  while (!OID_IS_NULL(*place) && ((struct entry *)at(*place))->key != key)
    place = &((struct entry *)at(*place))->next;
  return place;
}

static void grow(struct table *table) {
  const PMEMoid old = table->chains;
  const uint64_t count = table->mask + 1;
  tx_add(table, sizeof *table);
  table->chains = tx_new(2 * count * sizeof(PMEMoid));
  table->mask = 2 * count - 1;
  for (uint64_t i = 0; i < count; ++i)
    for (PMEMoid moved = ((PMEMoid *)at(old))[i]; !OID_IS_NULL(moved);) {
      struct entry *const entry = at(moved);
      const PMEMoid next = entry->next;
      PMEMoid *const chain = chain_of(table, entry->key);
      TX_ASSIGN(entry->next, *chain);
      *chain = moved;
      moved = next;
    }
  tx_free(old);
}

static void insert(PMEMobjpool *pool, PMEMoid *map, uint64_t key, uint64_t value) {
  tx_begin(pool);
  if (OID_IS_NULL(*map)) {
    TX_ASSIGN(*map, tx_new(sizeof(struct table)));
    struct table *const made = at(*map);
    made->mask = kFirstChains - 1;
    made->chains = tx_new(kFirstChains * sizeof(PMEMoid));
  }
  struct table *const table = at(*map);
  PMEMoid *const place = find(chain_of(table, key), key);
  if (!OID_IS_NULL(*place)) {
    TX_ASSIGN(((struct entry *)at(*place))->value, value);
  } else {
    const PMEMoid made = tx_new(sizeof(struct entry));
    *(struct entry *)at(made) = (struct entry){key, value, OID_NULL};
    TX_ASSIGN(*place, made);
    TX_ASSIGN(table->entries, table->entries + 1);
    if (table->entries > 2 * (table->mask + 1)) grow(table);
  }
  tx_end();
}

static int remove_key(PMEMobjpool *pool, PMEMoid *map, uint64_t key) {
  if (OID_IS_NULL(*map)) return 0;
  struct table *const table = at(*map);
  PMEMoid *const place = find(chain_of(table, key), key);
  if (OID_IS_NULL(*place)) return 0;
  tx_begin(pool);
  const PMEMoid gone = *place;
  TX_ASSIGN(*place, ((struct entry *)at(gone))->next);
  TX_ASSIGN(table->entries, table->entries - 1);
  tx_free(gone);
  tx_end();
  return 1;
}

static int lookup(PMEMoid map, uint64_t key, uint64_t *value) {
  if (OID_IS_NULL(map)) return 0;
  const PMEMoid *const place = find(chain_of(at(map), key), key);
  if (OID_IS_NULL(*place)) return 0;
  *value = ((struct entry *)at(*place))->value;
  return 1;
}

static void visit_all(PMEMoid map, visit_fn *visit, void *argument) {
  if (OID_IS_NULL(map)) return;
  const struct table *const table = at(map);
  for (uint64_t i = 0; i <= table->mask; ++i)
    for (PMEMoid next = ((PMEMoid *)at(table->chains))[i]; !OID_IS_NULL(next);) {
      const struct entry *const entry = at(next);
      visit(entry->key, entry->value, argument);
      next = entry->next;
    }
}

const struct map_kind hashmap_tx_map = {"hashmap_tx", insert, remove_key, lookup, visit_all};
