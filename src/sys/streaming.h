// Stores that leave the CPU's cache alone, for memory that is written once and read much later; and the CPU's clock.
#pragma once
#include <immintrin.h>

#include <cstdint>

namespace sys {

// Copies a line of 64 bytes past the cache; both addresses are multiples of 64. Other threads may see what is stored after it earlier than the line, until
// drain_streams() in this thread, or process_barrier() in any.
inline void stream_line(void* to, const void* from) {
#if __has_feature(thread_sanitizer)
  __builtin_memcpy(to, from, 64);  // it does not see non-temporal stores
#else
  const auto* const source = static_cast<const __m128i*>(from);
  auto* const target = static_cast<__m128i*>(to);
  for (int i = 0; i < 4; ++i) _mm_stream_si128(target + i, _mm_load_si128(source + i));
#endif
}
inline void drain_streams() { _mm_sfence(); }

// The CPU's clock, read after all earlier loads. It is the same on all CPUs where Linux keeps time by it. Cost: some 30 cycles.
inline uint64_t cycle_clock() {
  _mm_lfence();
  return __rdtsc();
}

// Later loads are not executed before all earlier loads, and an earlier cycle_clock(), are done.
inline void finish_loads() { _mm_lfence(); }

}  // namespace sys
