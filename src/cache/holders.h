// Holders: tells which pages' memory may be in use without the cache's knowledge. The user of a cache
// (spill: hazard slots) implements it; the cache asks before a page's frame changes.
#pragma once
#include "base/ids.h"

namespace cache {

class Holders {
 public:
  // When it returns, each thread either sees the entries that were locked before the call, or its hold shows in visit(). It provides the fence
  // between a store and a later load that holders omit on their side.
  virtual void barrier() = 0;

  // Calls visit(context, page) for every page that is held, in any order, some more than once, some no
  // longer held. Cost: a load per slot of every thread.
  virtual void visit(void (*visit)(void* context, base::PageId page), void* context) = 0;

 protected:
  ~Holders() = default;
};

}  // namespace cache
