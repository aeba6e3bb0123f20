// Lists of objects that name the next one themselves (`next`). For few objects, which come and go seldom; their owners keep their memory.
//
// Thread contract: none of its own; whoever has such a list has a lock for it.
#pragma once

namespace base {

// Puts `one` before all others. `first` is the list: its first object, or null.
template <class One>
void link(One*& first, One& one) {
  one.next = first;
  first = &one;
}

// REQUIRES: it is in the list. Cost: a look at each one before it.
template <class One>
void unlink(One*& first, One& one) {
  One** at = &first;
  while (*at != &one) at = &(*at)->next;
  *at = one.next;
}

}  // namespace base
