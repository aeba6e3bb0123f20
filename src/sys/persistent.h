// Mapped files, and persistent memory.
#pragma once
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "base/error.h"

namespace sys {

// Maps the first `bytes` of a file, shared, to read and write; a child of fork has it too. With `is_memory`, only if the file lies in
// persistent memory, and what has been flushed and fenced survives a power failure without a further system call (DAX: MAP_SYNC).
// Errors: EOPNOTSUPP if it does not; ENOMEM, and what else mmap says.
base::Expected<char*> map_file(int descriptor, uint64_t bytes, bool is_memory);

// On return, the thread's stores that bypassed the caches, and the lines that it flushed, are in memory.
inline void fence_stores() { _mm_sfence(); }

}  // namespace sys
