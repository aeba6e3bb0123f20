// UserFaults: memory of this process whose missing pages a thread of ours supplies (userfaultfd).
//
// A thread that touches a missing page of registered memory, or a system call that does so for it, waits in the
// kernel until the page is there; whoever reads the events supplies it. Pages can be taken away again as a whole, at
// once (move): the page that was moved is exactly what all stores before left, and whoever touches its old address
// afterwards waits.
//
// Thread contract: one thread reads events; the rest from any thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"

namespace sys {

class UserFaults {
 public:
  // Errors: ENOSYS, EPERM, EACCES (the kernel or its settings forbid it, or allow it without faults of system calls
  // only), ENOTSUP (a kernel before 6.8). The message says what to change.
  base::Expected<void> open();
  void close();
  int descriptor() const { return descriptor_; }

  // Missing pages of this memory wait from now on. REQUIRES: private anonymous memory. Errors: EINVAL, ENOMEM.
  base::Expected<void> add(uint64_t address, uint64_t bytes);

  // Waits until a page is missing somewhere; returns how many addresses (of OS pages) were put into `to`. A page
  // that several threads wait for may be told of more than once, also after it was supplied. 0: interrupted.
  size_t wait(std::span<uint64_t> to);

  // These return how many bytes, from the beginning, were done, or -errno when none were: -EEXIST (a page is there
  // already), -ENOENT (nothing to move; not registered), -EBUSY (shared with a child of fork, or the kernel is
  // transferring to or from it), -EINVAL (memory that may not be written), -ENOMEM.

  // Puts copies of the OS pages at `from` at `to`, where none are, and lets those go on who wait for them. `from`
  // must be there.
  long copy(uint64_t to, const void* from, uint64_t bytes);
  // Takes the OS pages at `from` away and puts them at `to`, where none are; both registered.
  long move(uint64_t to, uint64_t from, uint64_t bytes);
  // Lets those go on who wait for pages that are there.
  void wake(uint64_t address, uint64_t bytes);

 private:
  int descriptor_ = -1;
};

}  // namespace sys
