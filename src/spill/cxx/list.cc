// The C++ library's lists: what std::list calls out of line (libstdc++'s stl_list.h declares it). Compiled by the
// plugin; tree.cc says why, and who else works on the same objects.
//
// A list is a ring of nodes and its header, which is a node without a value. An empty one points to itself.
#include <utility>

#include "spill/abi.h"

namespace {

// std::__detail::_List_node_base.
struct Node {
  Node* next;
  Node* previous;
};
static_assert(sizeof(Node) == 16);

void join(Node* first, Node* second) {
  first->next = second;
  second->previous = first;
}

}  // namespace

// Puts `node` before `position`.
SPILL_EXPORT void __spill__ZNSt8__detail15_List_node_base7_M_hookEPS0_(Node* node, Node* position) {
  join(position->previous, node);
  join(node, position);
}

// What `node` itself points to stays.
SPILL_EXPORT void __spill__ZNSt8__detail15_List_node_base9_M_unhookEv(Node* node) {
  join(node->previous, node->next);
}

// Moves [first, last) before `position`, which is not in it.
SPILL_EXPORT void __spill__ZNSt8__detail15_List_node_base11_M_transferEPS0_S1_(Node* position, Node* first,
                                                                               Node* last) {
  if (position == last) return;
  Node* end = last->previous;
  join(first->previous, last);
  join(position->previous, first);
  join(end, position);
}

SPILL_EXPORT void __spill__ZNSt8__detail15_List_node_base10_M_reverseEv(Node* header) {
  Node* node = header;
  do {
    Node* next = node->next;
    node->next = node->previous;
    node->previous = next;
    node = next;
  } while (node != header);
}

// Two headers exchange their nodes.
SPILL_EXPORT void __spill__ZNSt8__detail15_List_node_base4swapERS0_S1_(Node& first, Node& second) {
  std::swap(first, second);
  for (const auto& [header, old] : {std::pair(&first, &second), std::pair(&second, &first)}) {
    if (header->next == old) {
      join(header, header);
    } else {
      join(header, header->next);
      join(header->previous, header);
    }
  }
}
