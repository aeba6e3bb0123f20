// Copies into a domain that are flushed as they are made.
//
// A line that is written whole is written past the caches: that needs neither a read of it before nor a flush after, and no line is thrown out. Parts of lines, at both ends, are
// stored and flushed. All is durable after the thread's fence.
#pragma once
#include <cstddef>

namespace persist::own {

// From this size on, where there is a choice: below it, what is copied is likely to be read soon.
inline constexpr size_t kPastCachesBytes = 256;

enum class Caches { kChoose, kThrough, kPast };

// As memmove and memset, of the calling thread's runtime. Cost: of copies past the caches some 5 ns a line.
void copy(void* to, const void* from, size_t bytes, Caches caches, const void* site);
void set(void* to, int byte, size_t bytes, Caches caches, const void* site);

}  // namespace persist::own
