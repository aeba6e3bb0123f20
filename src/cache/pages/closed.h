// Closed: OS pages that the table must not translate even if their page is in memory. Their entries are Table::kDirect, so that an access goes to the
// address itself (spill: memory that the program has protected).
#pragma once
#include "base/ids.h"

namespace cache {

class Closed {
 public:
  // Both are called whenever entries are opened, under the lock of the page's partition: they must take no lock. Their loads are sequentially
  // consistent, and pair with the fence in Table::may_have_residents. Cost: a few loads.
  virtual bool has_any(base::PageId page) = 0;
  // Is the page's i-th OS page closed?
  virtual bool has(base::PageId page, uint64_t i) = 0;

 protected:
  ~Closed() = default;
};

}  // namespace cache
