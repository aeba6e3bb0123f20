// The pmem backend: a file that is memory itself, on a file system with DAX over persistent memory. It is mapped; reads are copies,
// writes are copies past the caches and a fence, flushes a fence. No system calls.
//
// What a write has done when it completes survives a power failure. All of the file is allocated when it is opened, since a store to a
// hole on a full medium would end the process; as would a load of a piece that the hardware has lost (SIGBUS).
// Nothing is ever discarded. Ios finish inside submit() and complete at the next poll(). After fork both processes have the same medium.
//
// For tests and comparison it takes any file if told so: then it goes through the page cache, and a flush is fdatasync.
#pragma once
#include "storage/file.h"

namespace storage {

inline constexpr uint64_t kMaxPmemBytes = uint64_t{8} << 40;

struct PmemSettings {
  uint64_t size_bytes =
      0;  // a file is made so large if it is smaller, and no more of it is used; 0: as large as it is
  bool needs_dax = true;
};

// Takes over medium.descriptor, also on errors. Errors: EOPNOTSUPP if it is not memory, but should be; EINVAL if it has no size;
// ENOSPC, EFBIG; ENOMEM. Each with one line for the user.
base::Expected<Device*> make_pmem_device(const Medium& medium, const PmemSettings& settings);

}  // namespace storage
