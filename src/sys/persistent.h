// Files that are memory: mapped, and stored to past the CPU's caches.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/error.h"

namespace sys {

// Maps the first `bytes` of a file, shared, to read and write; a child of fork has it too. With `is_memory`, only if the file lies in
// memory that keeps its content, and what has been stored and fenced is there after a power failure without a further system call
// (DAX: MAP_SYNC). Errors: EOPNOTSUPP if it does not; ENOMEM, and what else mmap says.
base::Expected<char*> map_file(int descriptor, uint64_t bytes, bool is_memory);

// Copies without leaving the bytes in a cache. They are in memory after fence_stores(), and may come to lie there in any order before.
// REQUIRES: addresses and length are multiples of 16.
void copy_past_caches(void* to, const void* from, size_t bytes);
void fence_stores();

}  // namespace sys
