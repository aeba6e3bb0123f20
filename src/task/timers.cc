#include "task/timers.h"

#include <utility>

#include "base/check.h"

namespace task {

// Makes one heap of two, ignoring their siblings.
Timers::Node* Timers::join(Node* a, Node* b) {
  if (a == nullptr) return b;
  if (b == nullptr) return a;
  if (b->due_ns < a->due_ns) std::swap(a, b);
  b->next = a->child;
  if (b->next != nullptr) b->next->previous = b;
  b->previous = a;
  a->child = b;
  return a;
}

// Makes one heap of a list of heaps: joins pairs from the front, then these pairs from the back.
Timers::Node* Timers::join_all(Node* list) {
  Node* pairs = nullptr;  // last one first
  while (list != nullptr) {
    Node* const a = list;
    Node* const b = a->next;
    list = b == nullptr ? nullptr : b->next;
    a->next = a->previous = nullptr;
    if (b != nullptr) b->next = b->previous = nullptr;
    Node* const pair = join(a, b);
    pair->next = pairs;
    pairs = pair;
  }
  Node* all = nullptr;
  while (pairs != nullptr) {
    Node* const pair = pairs;
    pairs = pair->next;
    pair->next = nullptr;
    all = join(all, pair);
  }
  return all;
}

void Timers::add(Node& node) {
  CHECK(!node.is_queued);
  node.child = node.next = node.previous = nullptr;
  node.is_queued = true;
  root_ = join(root_, &node);
}

void Timers::remove(Node& node) {
  CHECK(node.is_queued);
  node.is_queued = false;
  if (&node == root_) {
    root_ = join_all(node.child);
    return;
  }
  if (node.previous->child == &node)
    node.previous->child = node.next;
  else
    node.previous->next = node.next;
  if (node.next != nullptr) node.next->previous = node.previous;
  root_ = join(root_, join_all(node.child));
}

}  // namespace task
