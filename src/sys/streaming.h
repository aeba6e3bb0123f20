// Memory that is written once and read much later: stores that leave the CPU's cache alone; and the CPU's clock.
#pragma once
#include <immintrin.h>

#include <cstdint>

namespace sys {

// Copies a line of 64 bytes, both aligned, past the cache. Other threads may see it late, whatever is stored after it: until drain_streams() here, or
// process_barrier() anywhere.
inline void stream_line(void* to, const void* from) {
#if __has_feature(thread_sanitizer)
  __builtin_memcpy(to, from, 64);  // it does not see the others
#else
  const auto* const source = static_cast<const __m128i*>(from);
  auto* const target = static_cast<__m128i*>(to);
  for (int i = 0; i < 4; ++i) _mm_stream_si128(target + i, _mm_load_si128(source + i));
#endif
}
inline void drain_streams() { _mm_sfence(); }

// The CPU's clock, which is the same on all CPUs that Linux keeps time by it on: later than what the caller has seen happen before. Cost: some 30 cycles.
inline uint64_t cycle_clock() {
  _mm_lfence();
  return __rdtsc();
}

// Loads that follow come after all that precede, and after cycle_clock().
inline void finish_loads() { _mm_lfence(); }

}  // namespace sys
