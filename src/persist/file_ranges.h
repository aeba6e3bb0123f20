// FileRanges: what one thread has flushed in files' mappings since its last fence, as ranges of OS pages.
//
// The kernel writes whole OS pages, so the lines of a page are one range, and neighbours join. If a fence has one range of a file, the kernel writes
// that (msync); if it has several, the kernel writes all of the file (fdatasync), since each call waits for the device by itself.
//
// Thread contract: one thread's.
#pragma once
#include <cstddef>

#include "base/error.h"
#include "persist/domains.h"
#include "persist/file_failures.h"
#include "persist/shared_sync.h"

namespace persist {

// Has the kernel write what has changed in [begin, end), part of a file's domain, and waits for that. Errors: as the kernel says, EIO or ENOSPC; they
// are noted in `failures`. May block for an I/O.
base::Expected<void> write_range(FileFailures& failures, const Domain& domain, uintptr_t begin,
                                 uintptr_t end);

class FileRanges {
 public:
  // `failures`: those of all threads, which outlive this.
  explicit FileRanges(FileFailures& failures) : failures_(failures), seen_(failures) {}

  // Can one more range of this domain be noted, maybe as part of another one?
  bool has_room(const Domain& domain) const;
  // Notes [begin, end), which lies in the domain, of kind kFile. REQUIRES: has_room(). Cost: some 10 ns.
  void add(const Domain& domain, uintptr_t begin, uintptr_t end);
  bool is_empty() const { return count_ == 0; }
  // Has the kernel write what was noted and still lies in a file's domain, waits for that, and forgets what was noted. `shared`: not null if
  // threads that wait for the same file share the write. REQUIRES: no domain is removed meanwhile. Errors: as the kernel says, EIO or ENOSPC: of the
  // first write that fails, or of one in these files that failed for another thread since this one was last told. What was noted may not be durable
  // then, and the kernel does not try again by itself. May block for an I/O.
  base::Expected<void> write(const Domains& domains, SharedSyncs* shared = nullptr);
  // The same, to make room; the next write() reports an error.
  void write_early(const Domains& domains);

 private:
  static constexpr size_t kMaxRanges = 16;

  struct Range {
    uintptr_t begin, end;  // OS pages
    uintptr_t domain_begin;
    int descriptor;

    // Another file's domain may begin where a part of this one's was removed.
    bool is_of(uintptr_t other_begin, int other_descriptor) const {
      return domain_begin == other_begin && descriptor == other_descriptor;
    }
  };

  // Each returns 0 or an errno value.
  int write_all(const Domains& domains, SharedSyncs* shared);
  int write_one(const Domains& domains, size_t number, SharedSyncs* shared);
  // Are no ranges after this one in the same file's domain?
  bool is_alone(size_t number) const;
  // Leaves out those that are, since one fdatasync writes them all.
  void skip_others(size_t number);

  FileFailures& failures_;
  FileFailures::Seen seen_;
  size_t count_ = 0;
  int error_ = 0;  // of write_early()
  Range ranges_[kMaxRanges];
};

}  // namespace persist
