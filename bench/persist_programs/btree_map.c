/* A B-tree with up to seven entries in a node. Insertion splits full nodes on its way down, removal fills those that have the least. */
#include <string.h>

#include "maps.h"

enum { kHalf = 4, kFull = 2 * kHalf - 1 };

struct item {
  uint64_t key, value;
};
struct node {
  uint64_t count;
  struct item items[kFull];
  PMEMoid below[kFull + 1]; /* null in a leaf */
};
struct tree {
  PMEMoid root;
};

static struct node *changed(PMEMoid object) {
  struct node *const node = at(object);
  tx_add(node, sizeof *node);
  return node;
}

static int is_leaf(const struct node *node) { return OID_IS_NULL(node->below[0]); }

/* The first entry whose key is not below this one. */
static uint64_t place_in(const struct node *node, uint64_t key) {
  uint64_t i = 0;
  while (i < node->count && node->items[i].key < key) ++i;
  return i;
}

static int has_key(const struct node *node, uint64_t i, uint64_t key) {
  return i < node->count && node->items[i].key == key;
}

static void open_gap(struct node *node, uint64_t i) {
  memmove(&node->items[i + 1], &node->items[i], (node->count - i) * sizeof(struct item));
  memmove(&node->below[i + 2], &node->below[i + 1], (node->count - i) * sizeof(PMEMoid));
  ++node->count;
}

/* Entry i goes, and the child behind it. */
static void close_gap(struct node *node, uint64_t i) {
  --node->count;
  memmove(&node->items[i], &node->items[i + 1], (node->count - i) * sizeof(struct item));
  memmove(&node->below[i + 1], &node->below[i + 2], (node->count - i) * sizeof(PMEMoid));
}

static void split_child(struct node *node, uint64_t i) {
  struct node *const left = changed(node->below[i]);
  const PMEMoid made = tx_new(sizeof(struct node));
  struct node *const right = at(made);
  right->count = kHalf - 1;
  memcpy(right->items, &left->items[kHalf], sizeof(struct item) * (kHalf - 1));
  memcpy(right->below, &left->below[kHalf], sizeof(PMEMoid) * kHalf);
  left->count = kHalf - 1;
  open_gap(node, i);
  node->items[i] = left->items[kHalf - 1];
  node->below[i + 1] = made;
}

static void insert(PMEMobjpool *pool, PMEMoid *map, uint64_t key, uint64_t value) {
  tx_begin(pool);
  if (OID_IS_NULL(*map)) {
    TX_ASSIGN(*map, tx_new(sizeof(struct tree)));
    ((struct tree *)at(*map))->root = tx_new(sizeof(struct node));
  }
  struct tree *const tree = at(*map);
  if (((struct node *)at(tree->root))->count == kFull) {
    const PMEMoid made = tx_new(sizeof(struct node));
    struct node *const root = at(made);
    root->below[0] = tree->root;
    split_child(root, 0);
    TX_ASSIGN(tree->root, made);
  }
  PMEMoid object = tree->root;
  for (;;) {
    struct node *const node = at(object);
    uint64_t i = place_in(node, key);
    if (has_key(node, i, key)) {
      TX_ASSIGN(node->items[i].value, value);
      break;
    }
    if (is_leaf(node)) {
      open_gap(changed(object), i);
      node->items[i] = (struct item){key, value};
      break;
    }
    if (((struct node *)at(node->below[i]))->count == kFull) {
      split_child(changed(object), i);
      continue;
    }
    object = node->below[i];
  }
  tx_end();
}

/* Child i, entry i and child i + 1 become one. */
static void merge(struct node *node, uint64_t i) {
  struct node *const left = changed(node->below[i]);
  const PMEMoid gone = node->below[i + 1];
  const struct node *const right = at(gone);
  left->items[left->count] = node->items[i];
  memcpy(&left->items[left->count + 1], right->items, right->count * sizeof(struct item));
  memcpy(&left->below[left->count + 1], right->below, (right->count + 1) * sizeof(PMEMoid));
  left->count += right->count + 1;
  close_gap(node, i);
  tx_free(gone);
}

/* Child i has one entry more than the least afterwards. Returns its number, which is another if it was merged with the one before. */
static uint64_t fill_child(struct node *node, uint64_t i) {
  if (((struct node *)at(node->below[i]))->count >= kHalf) return i;
  if (i > 0 && ((struct node *)at(node->below[i - 1]))->count >= kHalf) {
    struct node *const child = changed(node->below[i]), *const left = changed(node->below[i - 1]);
    memmove(&child->items[1], child->items, child->count * sizeof(struct item));
    memmove(&child->below[1], child->below, (child->count + 1) * sizeof(PMEMoid));
    child->items[0] = node->items[i - 1];
    child->below[0] = left->below[left->count];
    ++child->count;
    node->items[i - 1] = left->items[--left->count];
    return i;
  }
  if (i < node->count && ((struct node *)at(node->below[i + 1]))->count >= kHalf) {
    struct node *const child = changed(node->below[i]), *const right = changed(node->below[i + 1]);
    child->items[child->count] = node->items[i];
    child->below[++child->count] = right->below[0];
    node->items[i] = right->items[0];
    memmove(right->items, &right->items[1], (right->count - 1) * sizeof(struct item));
    memmove(right->below, &right->below[1], right->count * sizeof(PMEMoid));
    --right->count;
    return i;
  }
  if (i == node->count) --i;
  merge(node, i);
  return i;
}

/* The last entry below, or the first. */
static struct item outermost(PMEMoid object, int is_last) {
  const struct node *node = at(object);
  while (!is_leaf(node)) node = at(node->below[is_last ? node->count : 0]);
  return node->items[is_last ? node->count - 1 : 0];
}

/* The node has more entries than the least, or is the root. */
static void remove_below(PMEMoid object, uint64_t key) {
  for (;;) {
    struct node *const node = changed(object);
    uint64_t i = place_in(node, key);
    if (is_leaf(node)) {
      close_gap(node, i);
      return;
    }
    if (has_key(node, i, key)) {
      const int left_has = ((struct node *)at(node->below[i]))->count >= kHalf;
      const int right_has = ((struct node *)at(node->below[i + 1]))->count >= kHalf;
      if (left_has || right_has) {
        node->items[i] = outermost(node->below[left_has ? i : i + 1], left_has);
        key = node->items[i].key;
        object = node->below[left_has ? i : i + 1];
      } else {
        merge(node, i);
        object = node->below[i];
      }
    } else {
      object = node->below[fill_child(node, i)];
    }
  }
}

static int lookup(PMEMoid map, uint64_t key, uint64_t *value) {
  PMEMoid object = OID_IS_NULL(map) ? OID_NULL : ((struct tree *)at(map))->root;
  while (!OID_IS_NULL(object)) {
    const struct node *const node = at(object);
    const uint64_t i = place_in(node, key);
    if (has_key(node, i, key)) {
      *value = node->items[i].value;
      return 1;
    }
    object = node->below[is_leaf(node) ? 0 : i];
  }
  return 0;
}

static int remove_key(PMEMobjpool *pool, PMEMoid *map, uint64_t key) {
  uint64_t value;
  if (!lookup(*map, key, &value)) return 0;
  tx_begin(pool);
  struct tree *const tree = at(*map);
  remove_below(tree->root, key);
  const struct node *const root = at(tree->root);
  if (root->count == 0 && !is_leaf(root)) {
    const PMEMoid gone = tree->root;
    TX_ASSIGN(tree->root, root->below[0]);
    tx_free(gone);
  }
  tx_end();
  return 1;
}

static void visit_below(PMEMoid object, visit_fn *visit, void *argument) {
  const struct node *const node = at(object);
  for (uint64_t i = 0; i <= node->count; ++i) {
    if (!is_leaf(node)) visit_below(node->below[i], visit, argument);
    if (i < node->count) visit(node->items[i].key, node->items[i].value, argument);
  }
}

static void visit_all(PMEMoid map, visit_fn *visit, void *argument) {
  if (!OID_IS_NULL(map)) visit_below(((struct tree *)at(map))->root, visit, argument);
}

const struct map_kind btree_map = {"btree", insert, remove_key, lookup, visit_all};
