// UserFaults: memory of this process whose missing pages a thread of ours supplies (userfaultfd).
//
// A thread that touches a missing page of registered memory, itself or by a system call, waits in the kernel until the thread that reads the events
// supplies the page. A page can be taken away again as a whole, in one step (move): it holds all earlier stores, and later accesses to its old address
// wait.
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

  // From now on accesses to missing pages of this memory wait. REQUIRES: private anonymous memory. Errors: EINVAL, ENOMEM.
  base::Expected<void> add(uint64_t address, uint64_t bytes);

  // Waits until a thread waits for a page; returns how many addresses of such OS pages were put into `to`. A page that several threads wait for may be
  // reported more than once, even after it was supplied. 0: the call was interrupted.
  size_t wait(std::span<uint64_t> to);

  // copy and move return how many bytes they have done, from the beginning, or -errno if none: -EEXIST (a page is there already), -ENOENT (there is
  // nothing to move; or the memory is not registered), -EBUSY (the page is shared with a child of fork, or the kernel is transferring to or from it),
  // -EINVAL (the memory may not be written), -ENOMEM.

  // Copies the OS pages at `from`, which must be there, to `to`, where none are, and wakes the threads that wait for them.
  long copy(uint64_t to, const void* from, uint64_t bytes);
  // Takes the OS pages at `from` away, puts them at `to`, where none are, and wakes the threads that wait there. REQUIRES: both are registered.
  long move(uint64_t to, uint64_t from, uint64_t bytes);
  // Wakes the threads that wait for pages of this memory, which are there by now.
  void wake(uint64_t address, uint64_t bytes);

 private:
  int descriptor_ = -1;
};

}  // namespace sys
