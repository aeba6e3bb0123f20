// The pmem backend: a file that is itself memory, on a file system with DAX over persistent memory. The file is mapped: a read is a copy, a
// write a copy past the CPU's caches and a fence, a flush a fence, by a persistence runtime of the device's own. There are no system calls.
//
// A write survives a power failure as soon as it has completed. Bytes that the hardware has lost, or that another process has cut off the
// file, raise SIGBUS in the middle of a copy, and the process cannot continue. A store to a hole would do the same when the medium is full, so
// all of the file is allocated when it is opened.
// Nothing is ever discarded. Ios finish inside submit() and complete at the next poll(). After fork both processes have the same medium.
//
// For tests and comparison it takes any file if told so: the mapping then goes through the kernel's page cache, and a flush is fdatasync.
#pragma once
#include "persist/domain.h"
#include "storage/backends/file.h"

namespace storage {

inline constexpr uint64_t kMaxPmemBytes = uint64_t{8} << 40;

struct PmemSettings {
  // A smaller file is enlarged to this size; of a larger one only so much is used. 0: all of the file, as it is.
  uint64_t size_bytes = 0;
  bool needs_dax = true;
};

// Takes over the medium, even on errors. Errors: EOPNOTSUPP if the file is not memory and needs_dax; EINVAL if it is empty and settings
// give no size; ENOSPC, EFBIG; ENOMEM. Each has one line for the user, and leaves the file's size and content unchanged.
base::Expected<Device*> make_pmem_device(const Medium& medium, const PmemSettings& settings);

// For tests: a device on memory that was mapped by sys, and that the device unmaps; its cache lines are flushed to `lines`, which outlives it.
// Errors: ENOMEM.
base::Expected<Device*> make_pmem_device(char* bytes, uint64_t capacity_bytes, persist::LineDevice& lines);

}  // namespace storage
