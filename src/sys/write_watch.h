// WriteWatch: which OS pages of shared memory have not been stored to, according to the MMU.
//
// Pages are write-protected in one mapping. At the first store through that mapping (by the program, or by the kernel for it) the kernel lifts the page's
// protection without asking us; and it can be asked which pages are still protected. Stores through another mapping of the same memory leave no trace.
// This takes Linux 6.7: userfaultfd with asynchronous write protection, and the page map's scan.
//
// A page counts as untouched only if it is in memory, and protected, when the kernel is asked: not if the kernel has swapped it out, moved it or never
// mapped it. Zeros that take the place of memory that was given back may count as untouched, since nobody has stored to them.
//
// Thread contract: open before any other thread calls; the rest from any thread.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/error.h"

namespace sys {

class WriteWatch {
 public:
  static constexpr uint64_t kMaxPages = 1024;  // OS pages asked about at a time

  // Errors: ENOSYS, EINVAL, EPERM and others where the kernel or its settings do not offer it.
  base::Expected<void> open();
  void close();
  bool is_open() const { return fault_descriptor_ >= 0; }

  // From now on this memory may be protected. REQUIRES: open; a shared mapping of a memory file. Errors: as open.
  base::Expected<void> add(const void* memory, uint64_t bytes);

  // From now on stores to these OS pages leave a trace. False: the kernel refused, and nothing is known of the pages.
  // Cost: about 2 us, and an interrupt for every other processor that runs the process; the first store to
  // each page afterwards costs a fault, 0.8 us.
  bool protect(const void* memory, uint64_t bytes);

  // Sets bit i of `untouched` if OS page i of `memory` was protected and not stored to since, else clears it.
  // REQUIRES: page_count <= kMaxPages. Cost: about 1 us for 100 pages.
  void find_untouched(const void* memory, uint64_t page_count, uint64_t* untouched) const;

 private:
  int fault_descriptor_ = -1;
  int page_map_descriptor_ = -1;
};

}  // namespace sys
