// Closed OS pages: those that the table leads nobody to, although their page may be in memory. Their entries are
// Table::kDirect while it is: an access goes to the address itself (spill: memory that the program has protected).
#pragma once
#include "base/ids.h"

namespace cache {

class Closed {
 public:
  // Both are asked whenever entries are opened, under the page's partition's lock: they take no lock, a few loads.
  // Sequentially consistent: pairs with the fence in Table::may_have_residents.
  virtual bool has_any(base::PageId page) = 0;
  // Is the page's i-th OS page closed?
  virtual bool has(base::PageId page, uint64_t i) = 0;

 protected:
  ~Closed() = default;
};

}  // namespace cache
