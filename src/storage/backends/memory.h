// The memory backend: a device whose bytes are anonymous memory of this process. For tests, and for
// measuring what everything above storage costs.
//
// Bytes that were never written, or were discarded, read as zeros. Ios finish inside submit() and complete at the
// next poll(). A child of fork has a copy, not the same medium.
#pragma once
#include "storage/device.h"

namespace storage {

// `capacity_bytes` is rounded down to 4 KiB; memory is taken from the OS as it is written. Errors: ENOMEM;
// EINVAL for less than 4 KiB.
base::Expected<Device*> make_memory_device(uint64_t capacity_bytes);

}  // namespace storage
