// A device of files that others have opened: an offset names a descriptor and a place in its file, so that one queue reads from as many files
// as there are, and nothing is to be told when one is opened or closed.
//
//   offset   descriptor << kOpenFileOffsetBits | place in the file
//
// It only reads, by Linux AIO, or by blocking calls where that cannot be had (aio.h): at once, where the descriptor's direct reads are not
// to be had either. The file's end, as ever, is where a read is short. Its Ios are not counted as storage's.
// REQUIRES: the descriptor stays open until its reads are done.
#pragma once
#include <optional>

#include "storage/device.h"

namespace storage {

inline constexpr unsigned kOpenFileOffsetBits = 44;

// Errors: ENOMEM.
base::Expected<Device*> make_open_files_device();

// Nothing for what an offset has no room for: places behind 16 TiB.
std::optional<uint64_t> offset_in_open_file(int descriptor, uint64_t place_bytes, uint64_t length_bytes);

}  // namespace storage
