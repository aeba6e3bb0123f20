/* A red-black tree with links to parents. A nil node stands for every place without a node, below leaves and above the root. */
#include "maps.h"

struct node {
  uint64_t key, value;
  PMEMoid below[2], above;
  uint64_t is_red;
};
struct tree {
  PMEMoid root, nil;
};

static struct node *node_at(PMEMoid object) { return at(object); }

/* The place that holds this node: one of its parent's two, or the tree's root. */
static PMEMoid *place_of(struct tree *tree, PMEMoid child) {
  const PMEMoid above = node_at(child)->above;
  if (is_same(above, tree->nil)) return &tree->root;
  return &node_at(above)->below[is_same(node_at(above)->below[1], child)];
}

static int side_of(PMEMoid child) { return is_same(node_at(node_at(child)->above)->below[1], child); }

/* The node comes down to that side, and its other child takes its place. */
static void rotate(struct tree *tree, PMEMoid node, int side) {
  const PMEMoid child = node_at(node)->below[!side];
  const PMEMoid inner = node_at(child)->below[side];
  PMEMoid *const place = place_of(tree, node);
  tx_add(node_at(node), sizeof(struct node));
  tx_add(node_at(child), sizeof(struct node));
  node_at(node)->below[!side] = inner;
  if (!is_same(inner, tree->nil)) TX_ASSIGN(node_at(inner)->above, node);
  node_at(child)->above = node_at(node)->above;
  TX_ASSIGN(*place, child);
  node_at(child)->below[side] = node;
  node_at(node)->above = child;
}

static void paint(PMEMoid node, uint64_t is_red) {
  if (node_at(node)->is_red != is_red) TX_ASSIGN(node_at(node)->is_red, is_red);
}

static PMEMoid new_node(PMEMoid nil, PMEMoid above, uint64_t key, uint64_t value) {
  const PMEMoid made = tx_new(sizeof(struct node));
  *node_at(made) = (struct node){key, value, {nil, nil}, above, 1};
  return made;
}

static void mend_insert(struct tree *tree, PMEMoid node) {
  while (node_at(node_at(node)->above)->is_red) {
    const PMEMoid parent = node_at(node)->above, grandparent = node_at(parent)->above;
    const int side = side_of(parent);
    const PMEMoid uncle = node_at(grandparent)->below[!side];
    if (node_at(uncle)->is_red) {
      paint(parent, 0);
      paint(uncle, 0);
      paint(grandparent, 1);
      node = grandparent;
      continue;
    }
    if (side_of(node) != side) {
      node = parent;
      rotate(tree, node, side);
    }
    paint(node_at(node)->above, 0);
    paint(grandparent, 1);
    rotate(tree, grandparent, !side);
  }
  paint(tree->root, 0);
}

static void insert(PMEMobjpool *pool, PMEMoid *map, uint64_t key, uint64_t value) {
  tx_begin(pool);
  if (OID_IS_NULL(*map)) {
    TX_ASSIGN(*map, tx_new(sizeof(struct tree)));
    struct tree *const made = at(*map);
    made->root = made->nil = tx_new(sizeof(struct node));
    *node_at(made->nil) = (struct node){0, 0, {made->nil, made->nil}, made->nil, 0};
  }
  struct tree *const tree = at(*map);
  PMEMoid above = tree->nil, *place = &tree->root;
  while (!is_same(*place, tree->nil) && node_at(*place)->key != key) {
    above = *place;
    place = &node_at(above)->below[key > node_at(above)->key];
  }
  if (!is_same(*place, tree->nil)) {
    TX_ASSIGN(node_at(*place)->value, value);
  } else {
    const PMEMoid made = new_node(tree->nil, above, key, value);
    TX_ASSIGN(*place, made);
    mend_insert(tree, made);
  }
  tx_end();
}

/* One black node is missing on the way to `node`. */
static void mend_remove(struct tree *tree, PMEMoid node) {
  while (!is_same(node, tree->root) && !node_at(node)->is_red) {
    const PMEMoid parent = node_at(node)->above;
    const int side = side_of(node);
    PMEMoid brother = node_at(parent)->below[!side];
    if (node_at(brother)->is_red) {
      paint(brother, 0);
      paint(parent, 1);
      rotate(tree, parent, side);
      brother = node_at(parent)->below[!side];
    }
    if (!node_at(node_at(brother)->below[0])->is_red && !node_at(node_at(brother)->below[1])->is_red) {
      paint(brother, 1);
      node = parent;
      continue;
    }
    if (!node_at(node_at(brother)->below[!side])->is_red) {
      paint(node_at(brother)->below[side], 0);
      paint(brother, 1);
      rotate(tree, brother, !side);
      brother = node_at(parent)->below[!side];
    }
    paint(brother, node_at(parent)->is_red);
    paint(parent, 0);
    paint(node_at(brother)->below[!side], 0);
    rotate(tree, parent, side);
    node = tree->root;
  }
  paint(node, 0);
}

static PMEMoid find(const struct tree *tree, uint64_t key) {
  PMEMoid node = tree->root;
  while (!is_same(node, tree->nil) && node_at(node)->key != key)
    node = node_at(node)->below[key > node_at(node)->key];
  return node;
}

static int remove_key(PMEMobjpool *pool, PMEMoid *map, uint64_t key) {
  if (OID_IS_NULL(*map)) return 0;
  struct tree *const tree = at(*map);
  PMEMoid gone = find(tree, key);
  if (is_same(gone, tree->nil)) return 0;
  tx_begin(pool);
  if (!is_same(node_at(gone)->below[0], tree->nil) && !is_same(node_at(gone)->below[1], tree->nil)) {
    PMEMoid next = node_at(gone)->below[1];
    while (!is_same(node_at(next)->below[0], tree->nil)) next = node_at(next)->below[0];
    tx_add(node_at(gone), sizeof(struct node));
    node_at(gone)->key = node_at(next)->key;
    node_at(gone)->value = node_at(next)->value;
    gone = next;
  }
  const PMEMoid child = node_at(gone)->below[is_same(node_at(gone)->below[0], tree->nil)];
  TX_ASSIGN(*place_of(tree, gone), child);
  TX_ASSIGN(node_at(child)->above, node_at(gone)->above); /* of nil too: mending climbs from there */
  if (!node_at(gone)->is_red) mend_remove(tree, child);
  tx_free(gone);
  tx_end();
  return 1;
}

static int lookup(PMEMoid map, uint64_t key, uint64_t *value) {
  if (OID_IS_NULL(map)) return 0;
  const struct tree *const tree = at(map);
  const PMEMoid node = find(tree, key);
  if (is_same(node, tree->nil)) return 0;
  *value = node_at(node)->value;
  return 1;
}

static void visit_below(const struct tree *tree, PMEMoid node, visit_fn *visit, void *argument) {
  if (is_same(node, tree->nil)) return;
  visit_below(tree, node_at(node)->below[0], visit, argument);
  visit(node_at(node)->key, node_at(node)->value, argument);
  visit_below(tree, node_at(node)->below[1], visit, argument);
}

static void visit_all(PMEMoid map, visit_fn *visit, void *argument) {
  if (!OID_IS_NULL(map)) visit_below(at(map), ((struct tree *)at(map))->root, visit, argument);
}

const struct map_kind rbtree_map = {"rbtree", insert, remove_key, lookup, visit_all};
