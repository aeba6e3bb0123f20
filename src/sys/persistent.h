// Files that are memory.
#pragma once
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "base/error.h"

namespace sys {

// Maps the first `bytes` of a file, shared, to read and write; a child of fork has it too. With `is_memory`, only if the file lies in
// memory that keeps its content, and what has been stored and fenced is there after a power failure without a further system call
// (DAX: MAP_SYNC). Errors: EOPNOTSUPP if it does not; ENOMEM, and what else mmap says.
base::Expected<char*> map_file(int descriptor, uint64_t bytes, bool is_memory);

// What the thread has stored past the caches, and what lines it has flushed, is in memory.
inline void fence_stores() { _mm_sfence(); }

}  // namespace sys
