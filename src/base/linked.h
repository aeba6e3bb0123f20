// Singly linked lists through the objects' own member `next`. For few objects that seldom come and go; a list does not own them.
//
// Thread contract: none of its own; the list's owner locks it.
#pragma once

namespace base {

// Puts `one` before all others. `first` is the list: its first object, or null.
template <class One>
void link(One*& first, One& one) {
  one.next = first;
  first = &one;
}

// REQUIRES: it is in the list. Cost: a step for each object before it.
template <class One>
void unlink(One*& first, One& one) {
  One** at = &first;
  while (*at != &one) at = &(*at)->next;
  *at = one.next;
}

}  // namespace base
