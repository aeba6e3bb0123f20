/* A crit-bit tree: inner nodes know the highest bit in which the keys below them differ. */
#include "maps.h"

struct slot {
  PMEMoid to;
  uint64_t is_inner;
};
struct inner {
  uint64_t bit;
  struct slot below[2];
};
struct leaf {
  uint64_t key, value;
};

/* The map is an object with one slot. */
static struct slot *first_slot(PMEMoid map) { return at(map); }

static struct slot *next_slot(struct inner *node, uint64_t key) { return &node->below[key >> node->bit & 1]; }

static struct leaf *nearest(struct slot *slot, uint64_t key) {
  while (slot->is_inner) slot = next_slot(at(slot->to), key);
  return OID_IS_NULL(slot->to) ? NULL : at(slot->to);
}

static struct slot new_leaf(uint64_t key, uint64_t value) {
  const PMEMoid made = tx_new(sizeof(struct leaf));
  *(struct leaf *)at(made) = (struct leaf){key, value};
  return (struct slot){made, 0};
}

static void insert(PMEMobjpool *pool, PMEMoid *map, uint64_t key, uint64_t value) {
  tx_begin(pool);
  if (OID_IS_NULL(*map)) TX_ASSIGN(*map, tx_new(sizeof(struct slot)));
  struct slot *slot = first_slot(*map);
  struct leaf *const other = nearest(slot, key);
  if (other == NULL) {
    TX_ASSIGN(*slot, new_leaf(key, value));
  } else if (other->key == key) {
    TX_ASSIGN(other->value, value);
  } else {
    const uint64_t bit = 63 - (uint64_t)__builtin_clzll(other->key ^ key);
    while (slot->is_inner && ((struct inner *)at(slot->to))->bit > bit) slot = next_slot(at(slot->to), key);
    const PMEMoid made = tx_new(sizeof(struct inner));
    struct inner *const node = at(made);
    node->bit = bit;
    node->below[key >> bit & 1] = new_leaf(key, value);
    node->below[~key >> bit & 1] = *slot;
    TX_ASSIGN(*slot, ((struct slot){made, 1}));
  }
  tx_end();
}

static int remove_key(PMEMobjpool *pool, PMEMoid *map, uint64_t key) {
  if (OID_IS_NULL(*map)) return 0;
  struct slot *above = NULL, *slot = first_slot(*map);
  while (slot->is_inner) {
    above = slot;
    slot = next_slot(at(slot->to), key);
  }
  if (OID_IS_NULL(slot->to) || ((struct leaf *)at(slot->to))->key != key) return 0;
  tx_begin(pool);
  tx_free(slot->to);
  if (above == NULL) {
    TX_ASSIGN(*slot, ((struct slot){OID_NULL, 0}));
  } else {
    struct inner *const node = at(above->to);
    const struct slot other = node->below[slot == &node->below[0]];
    tx_free(above->to);
    TX_ASSIGN(*above, other);
  }
  tx_end();
  return 1;
}

static int lookup(PMEMoid map, uint64_t key, uint64_t *value) {
  const struct leaf *const leaf = OID_IS_NULL(map) ? NULL : nearest(first_slot(map), key);
  if (leaf == NULL || leaf->key != key) return 0;
  *value = leaf->value;
  return 1;
}

static void visit_slot(const struct slot *slot, visit_fn *visit, void *argument) {
  if (slot->is_inner) {
    const struct inner *const node = at(slot->to);
    visit_slot(&node->below[0], visit, argument);
    visit_slot(&node->below[1], visit, argument);
  } else if (!OID_IS_NULL(slot->to)) {
    const struct leaf *const leaf = at(slot->to);
    visit(leaf->key, leaf->value, argument);
  }
}

static void visit_all(PMEMoid map, visit_fn *visit, void *argument) {
  if (!OID_IS_NULL(map)) visit_slot(first_slot(map), visit, argument);
}

const struct map_kind ctree_map = {"ctree", insert, remove_key, lookup, visit_all};
