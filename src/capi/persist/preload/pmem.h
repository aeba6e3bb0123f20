// Constants of libpmem's and libpmem2's binary interface, and the copies that both have.
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

// The granularity of a mapping of libpmem2: what is written back at a time to make a store durable; bytes: nothing needs to be.
enum Granularity { kByte = 0, kCacheLine = 1, kPage = 2 };

// As memmove and memset, with a flush and a fence unless the flags say no. `site`: where the program called.
void copy(void* to, const void* from, size_t bytes, unsigned flags, const void* site);
void set(void* to, int byte, size_t bytes, unsigned flags, const void* site);

}  // namespace preload

#define SPILLWAY_EXPORT __attribute__((visibility("default")))
#define SPILLWAY_SITE __builtin_return_address(0)
