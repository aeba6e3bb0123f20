// The pmem backend: a file that is memory itself, on a file system with DAX over persistent memory. It is mapped; reads are copies,
// writes are copies past the caches and a fence, flushes a fence, by a persistence runtime of the device's own. No system calls.
//
// What a write has done when it completes survives a power failure. What cannot be loaded or stored raises SIGBUS in the middle of a
// copy, after which nothing goes on: a piece that the hardware has lost, or that another process has cut off the file; also a store
// to a hole when the medium is full, so all of the file is allocated when it is opened.
// Nothing is ever discarded. Ios finish inside submit() and complete at the next poll(). After fork both processes have the same medium.
//
// For tests and comparison it takes any file if told so: then it goes through the page cache, and a flush is fdatasync.
#pragma once
#include "persist/domain.h"
#include "storage/backends/file.h"

namespace storage {

inline constexpr uint64_t kMaxPmemBytes = uint64_t{8} << 40;

struct PmemSettings {
  uint64_t size_bytes =
      0;  // a file is made so large if it is smaller, and no more of it is used; 0: as large as it is
  bool needs_dax = true;
};

// Takes over medium.descriptor, also on errors. Errors: EOPNOTSUPP if it is not memory, but should be; EINVAL if it has no size;
// ENOSPC, EFBIG; ENOMEM. Each with one line for the user; the file has its size and content still.
base::Expected<Device*> make_pmem_device(const Medium& medium, const PmemSettings& settings);

// For tests: on memory of the caller's, mapped by sys and unmapped by the device, whose lines go to `lines`, which outlives it. Errors: ENOMEM.
base::Expected<Device*> make_pmem_device(char* bytes, uint64_t capacity_bytes, persist::LineDevice& lines);

}  // namespace storage
