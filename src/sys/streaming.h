// Stores that leave the CPU's cache alone, for memory that is written once and read much later; and the CPU's clock.
#pragma once
#include <immintrin.h>

#include <cstdint>

namespace sys {

// Copies a line of 64 bytes past the cache; both places are aligned to it. Other threads may see the line later than what is stored after it, until
// drain_streams() in this thread, or process_barrier() in any.
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

// The CPU's clock, read after all loads before it. It is the same on all CPUs, where Linux keeps time by it. Cost: some 30 cycles.
inline uint64_t cycle_clock() {
  _mm_lfence();
  return __rdtsc();
}

// Loads that follow in the program come after all loads, and after a cycle_clock(), that precede.
inline void finish_loads() { _mm_lfence(); }

}  // namespace sys
