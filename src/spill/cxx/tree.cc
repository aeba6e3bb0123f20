// The C++ library's red-black trees: what std::map and std::set call out of line (libstdc++'s stl_tree.h declares it).
// Compiled by the plugin, so that nodes in spilled memory are reached by translation instead of the fault path.
//
// Code that spillcc did not compile keeps the library's own functions, and both work on the same trees. So these
// hold after every call:
//  1 the header's parent is the root (null when empty), its left the first node and its right the last (itself when
//    empty); it is red, and the root's parent is the header
//  2 the root is black, no red node has a red child, and every way down from a node passes as many black ones
//  3 nodes change their places, never their addresses: iterators stay valid
// The cases of both repairs are those of Cormen, Leiserson, Rivest and Stein, Introduction to Algorithms, chapter 13.
#include <cstdint>

#include "spill/abi.h"

namespace spill {
namespace {

enum Colour : uint32_t { kRed, kBlack };
enum Side : unsigned { kLeft, kRight };

// std::_Rb_tree_node_base.
struct Node {
  Colour colour;
  Node* parent;
  Node* child[2];
};
static_assert(sizeof(Node) == 32);

constexpr Side other(Side side) { return side == kLeft ? kRight : kLeft; }

Side side_of(const Node* node, const Node* parent) { return parent->child[kLeft] == node ? kLeft : kRight; }

bool is_red(const Node* node) { return node != nullptr && node->colour == kRed; }

template <class AnyNode>
AnyNode* outermost(AnyNode* node, Side side) {
  while (node->child[side] != nullptr) node = node->child[side];
  return node;
}

// The next node towards `side`, or the header. REQUIRES: `node` is not the header.
template <class AnyNode>
AnyNode* neighbour(AnyNode* node, Side side) {
  if (node->child[side] != nullptr) return outermost<AnyNode>(node->child[side], other(side));
  AnyNode* above = node->parent;
  while (node == above->child[side]) {
    node = above;
    above = above->parent;
  }
  // From a root that is the outermost node the climb went through the header, back to the root.
  return node->child[side] == above ? node : above;
}

// The header's neighbours are the first and the last node; it alone is red and its own grandparent.
template <class AnyNode>
AnyNode* previous(AnyNode* node) {
  if (node->colour == kRed && node->parent->parent == node) return node->child[kRight];
  return neighbour(node, kLeft);
}

// Makes the parent of `node`, or the header, point to `replacement`, which may be null.
void replace(Node* node, Node* replacement, Node& header) {
  if (header.parent == node)
    header.parent = replacement;
  else
    node->parent->child[side_of(node, node->parent)] = replacement;
}

// Moves `node` down towards `side`; the child opposite takes its place. REQUIRES: that child exists.
void rotate(Node* node, Side side, Node& header) {
  Node* riser = node->child[other(side)];
  Node* moved = riser->child[side];
  node->child[other(side)] = moved;
  if (moved != nullptr) moved->parent = node;
  replace(node, riser, header);
  riser->parent = node->parent;
  riser->child[side] = node;
  node->parent = riser;
}

// `node` is red, and its parent may be too.
void repair_after_insert(Node* node, Node& header) {
  while (node != header.parent && node->parent->colour == kRed) {
    Node* parent = node->parent;
    Node* grandparent = parent->parent;  // a node, since the root is black
    const Side side = side_of(parent, grandparent);
    Node* uncle = grandparent->child[other(side)];
    if (is_red(uncle)) {
      parent->colour = kBlack;
      uncle->colour = kBlack;
      grandparent->colour = kRed;
      node = grandparent;
      continue;
    }
    if (side_of(node, parent) != side) {
      rotate(parent, side, header);
      parent = node;
    }
    parent->colour = kBlack;
    grandparent->colour = kRed;
    rotate(grandparent, other(side), header);
    break;
  }
  header.parent->colour = kBlack;
}

// Ways through `node`, the child of `parent` on `side` and possibly null, have one black node too few.
void repair_after_erase(Node* node, Node* parent, Side side, Node& header) {
  while (node != header.parent && !is_red(node)) {
    Node* sibling = parent->child[other(side)];
    if (sibling->colour == kRed) {
      sibling->colour = kBlack;
      parent->colour = kRed;
      rotate(parent, side, header);
      sibling = parent->child[other(side)];
    }
    if (!is_red(sibling->child[kLeft]) && !is_red(sibling->child[kRight])) {
      sibling->colour = kRed;
      node = parent;
      parent = node->parent;
      side = side_of(node, parent);
      continue;
    }
    if (!is_red(sibling->child[other(side)])) {
      sibling->child[side]->colour = kBlack;
      sibling->colour = kRed;
      rotate(sibling, other(side), header);
      sibling = parent->child[other(side)];
    }
    sibling->colour = parent->colour;
    parent->colour = kBlack;
    sibling->child[other(side)]->colour = kBlack;
    rotate(parent, side, header);
    return;
  }
  if (node != nullptr) node->colour = kBlack;
}

// What an erased node left: `node` stands at `side` of `parent`, and a node of `colour` is gone above it.
struct Gap {
  Node* node;
  Node* parent;
  Side side;
  Colour colour;
};

// The next node takes the place and the colour of `erased`, which has two children.
Gap replace_by_next(Node* erased, Node& header) {
  Node* next = outermost(erased->child[kRight], kLeft);
  Gap gap = {next->child[kRight], next, kRight, next->colour};
  if (next->parent != erased) {
    gap.parent = next->parent;
    gap.side = kLeft;
    gap.parent->child[kLeft] = gap.node;
    if (gap.node != nullptr) gap.node->parent = gap.parent;
    next->child[kRight] = erased->child[kRight];
    next->child[kRight]->parent = next;
  }
  next->child[kLeft] = erased->child[kLeft];
  next->child[kLeft]->parent = next;
  replace(erased, next, header);
  next->parent = erased->parent;
  next->colour = erased->colour;
  return gap;
}

// The only child of `erased`, or nothing, takes its place; the header's first and last node follow.
Gap replace_by_child(Node* erased, Node& header) {
  Node* child = erased->child[erased->child[kLeft] != nullptr ? kLeft : kRight];
  Node* parent = erased->parent;
  const Side side = side_of(erased, parent);
  for (const Side end : {kLeft, kRight})
    if (header.child[end] == erased) header.child[end] = child != nullptr ? outermost(child, end) : parent;
  replace(erased, child, header);
  if (child != nullptr) child->parent = parent;
  return {child, parent, side, erased->colour};
}

}  // namespace

SPILL_EXPORT Node* __spill__ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base(Node* node) {
  return neighbour(node, kRight);
}

SPILL_EXPORT const Node* __spill__ZSt18_Rb_tree_incrementPKSt18_Rb_tree_node_base(const Node* node) {
  return neighbour(node, kRight);
}

SPILL_EXPORT Node* __spill__ZSt18_Rb_tree_decrementPSt18_Rb_tree_node_base(Node* node) {
  return previous(node);
}

SPILL_EXPORT const Node* __spill__ZSt18_Rb_tree_decrementPKSt18_Rb_tree_node_base(const Node* node) {
  return previous(node);
}

SPILL_EXPORT void __spill__ZSt29_Rb_tree_insert_and_rebalancebPSt18_Rb_tree_node_baseS0_RS_(bool left,
                                                                                            Node* node,
                                                                                            Node* parent,
                                                                                            Node& header) {
  *node = {kRed, parent, {nullptr, nullptr}};
  if (parent == &header) {
    header = {kRed, node, {node, node}};
  } else {
    const Side side = left ? kLeft : kRight;
    parent->child[side] = node;
    if (header.child[side] == parent) header.child[side] = node;
  }
  repair_after_insert(node, header);
}

// Takes `node` out of the tree and returns it.
SPILL_EXPORT Node* __spill__ZSt28_Rb_tree_rebalance_for_erasePSt18_Rb_tree_node_baseRS_(Node* node,
                                                                                        Node& header) {
  const bool two_children = node->child[kLeft] != nullptr && node->child[kRight] != nullptr;
  const Gap gap = two_children ? replace_by_next(node, header) : replace_by_child(node, header);
  if (gap.colour == kBlack) repair_after_erase(gap.node, gap.parent, gap.side, header);
  return node;
}

}  // namespace spill
