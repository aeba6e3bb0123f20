// What calls of libpmem and libpmem2 are made of, as their binary interface has it.
#pragma once
#include <stddef.h>

namespace preload {

// Flags of copies; the same in both libraries.
inline constexpr unsigned kNoDrain = 1U << 0;
inline constexpr unsigned kNonTemporal = 1U << 1;
inline constexpr unsigned kTemporal = 1U << 2;
inline constexpr unsigned kWriteCombining = 1U << 3;  // as kNonTemporal
inline constexpr unsigned kWriteBack = 1U << 4;       // as kTemporal
inline constexpr unsigned kNoFlush = 1U << 5;         // nor a drain

// What libpmem2 says of a mapping: what must be done before a store there is durable.
enum Granularity { kByte = 0, kCacheLine = 1, kPage = 2 };

// Copies with these flags of libpmem: flushed and fenced, unless a flag says no. As memmove and memset. `site`: where the program called.
void copy(void* to, const void* from, size_t bytes, unsigned flags, const void* site);
void set(void* to, int byte, size_t bytes, unsigned flags, const void* site);

}  // namespace preload

#define SPILLWAY_EXPORT __attribute__((visibility("default")))
#define SPILLWAY_SITE __builtin_return_address(0)
