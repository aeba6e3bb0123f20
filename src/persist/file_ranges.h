// FileRanges: what one thread has flushed of files' mappings since its last fence, as ranges of OS pages.
//
// The kernel writes whole OS pages, so lines of a page are one range, and neighbours join. A fence with one range of a file has the kernel write that (msync); with
// several, or more than there is room for, all of the file (fdatasync), since each call waits for the device by itself.
//
// Thread contract: one thread's.
#pragma once
#include <cstddef>

#include "base/error.h"
#include "persist/domains.h"
#include "persist/file_failures.h"
#include "persist/shared_sync.h"

namespace persist {

// Has the kernel write what has changed in [begin, end), part of a file's domain, and waits for it. Errors: as the kernel says, EIO or ENOSPC; noted. May block for the time of an
// I/O.
base::Expected<void> write_range(FileFailures& failures, const Domain& domain, uintptr_t begin,
                                 uintptr_t end);

class FileRanges {
 public:
  // The failures are those of all threads, and outlive it.
  explicit FileRanges(FileFailures& failures) : failures_(failures), seen_(failures) {}

  // Is there room for one more range of this domain, be it in another one of it?
  bool has_room(const Domain& domain) const;
  // Notes [begin, end), which lies in the domain, of kind kFile. REQUIRES: has_room(). Cost: some 10 ns.
  void add(const Domain& domain, uintptr_t begin, uintptr_t end);
  bool is_empty() const { return count_ == 0; }
  // Has the kernel write what was noted and lies in a file's domain still, and waits for it; nothing is noted any more. `shared`: who else waits for the same file, if that is to be shared. REQUIRES: none of them is removed meanwhile.
  // Errors: as the kernel says, EIO or ENOSPC, of the first that fails, or of what others have met in these files since this thread was told: what was noted may not be durable then,
  // and the kernel will not try again by itself. May block for the time of an I/O.
  base::Expected<void> write(const Domains& domains, SharedSyncs* shared = nullptr);
  // The same, to have room; write() tells of the error.
  void write_early(const Domains& domains);

 private:
  static constexpr size_t kRangesMax = 16;

  struct Range {
    uintptr_t begin, end;  // OS pages
    uintptr_t domain_begin;
    int descriptor;
  };

  // Each returns 0 or an errno value.
  int write_all(const Domains& domains, SharedSyncs* shared);
  int write_one(const Domains& domains, size_t number, SharedSyncs* shared);
  // Of ranges behind it that are of its domain's file: one fdatasync writes them all.
  bool is_alone(size_t number) const;
  void skip_others(size_t number);

  FileFailures& failures_;
  FileFailures::Seen seen_;
  size_t count_ = 0;
  int error_ = 0;  // of what was written early
  Range ranges_[kRangesMax];
};

}  // namespace persist
