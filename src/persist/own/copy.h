// Copies of the calling thread's runtime (persist/copy.h).
#pragma once
#include "persist/copy.h"

namespace persist::own {

// As memmove and memset; durable after the thread's fence. `site`: where the program called.
void copy(void* to, const void* from, size_t bytes, Caches caches, const void* site);
void set(void* to, int byte, size_t bytes, Caches caches, const void* site);

}  // namespace persist::own
