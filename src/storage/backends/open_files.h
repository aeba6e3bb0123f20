// A device of files that others have opened. An offset names a descriptor and a place in its file, so that one queue can read from any number
// of files, and need not be told when one is opened or closed.
//
//   offset   descriptor << kOpenFileOffsetBits | place in the file
//
// It only reads: by Linux AIO, or by blocking calls where AIO cannot be had (aio.h). From a descriptor without direct I/O, AIO reads before
// submit() returns. A read is short where the file ends. Its Ios are not counted in storage's statistics.
// REQUIRES: a descriptor stays open until its reads are done.
#pragma once
#include <optional>

#include "storage/device.h"

namespace storage {

inline constexpr unsigned kOpenFileOffsetBits = 44;

// Errors: ENOMEM.
base::Expected<Device*> make_open_files_device();

// Nothing if an offset has no room for it: a place beyond 16 TiB, or a descriptor from 2^19 on.
std::optional<uint64_t> offset_in_open_file(int descriptor, uint64_t place_bytes, uint64_t length_bytes);

}  // namespace storage
