// Timers: the deadlines of one worker. A pairing heap (Fredman, Sedgewick, Sleator, Tarjan: "The pairing heap", 1986) whose nodes belong to
// their users, so that it takes no memory of its own. Adding a node and looking at the first one take constant time, removing one amortised
// logarithmic time.
//
// Invariants
//  1 no node is due before its parent
//  2 the children of a node are a list by `next`, and `previous` of the first one is the parent
#pragma once
#include <cstddef>
#include <cstdint>

namespace task {

inline constexpr uint64_t kNever = ~uint64_t{0};

class Timers {
 public:
  // Users set only due_ns. A node must not move while it is queued.
  struct Node {
    uint64_t due_ns = kNever;
    Node* child = nullptr;
    Node* next = nullptr;
    Node* previous = nullptr;
    bool is_queued = false;
  };

  // REQUIRES: not queued.
  void add(Node& node);
  // REQUIRES: queued.
  void remove(Node& node);
  // The node that is due first, or null.
  Node* first() const { return root_; }
  uint64_t due_ns() const { return root_ == nullptr ? kNever : root_->due_ns; }

 private:
  static Node* join(Node* a, Node* b);
  static Node* join_all(Node* list);

  Node* root_ = nullptr;
};

}  // namespace task
