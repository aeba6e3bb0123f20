// Included before a program of ./programs: has its stores, flushes and fences recorded, as code that is compiled for it would.
#ifndef RECORD_H
#define RECORD_H
#include <immintrin.h>
#include <stddef.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif
void record_domain(void* address, size_t bytes, const char* path);
void record_domain_ends(void* address, size_t bytes);
void record_store(const void* address, size_t bytes, int is_past_caches);
void record_flush(const void* address, int is_ordered);
void record_fence(void);
void record_marker(const char* text);
#ifdef __cplusplus
}
#endif

#define STORE(place, value)                             \
  do {                                                  \
    *(volatile __typeof__(*(place))*)(place) = (value); \
    record_store((place), sizeof *(place), 0);          \
  } while (0)
#define PM_DOMAIN record_domain
#define PM_DOMAIN_ENDS record_domain_ends
#define PM_MARKER record_marker
#define _mm_clwb(address) record_flush((address), 0)
#define _mm_clflush(address) record_flush((address), 1)
#define _mm_sfence() record_fence()
#define _mm_store_si128(place, value)          \
  do {                                         \
    *(place) = (value);                        \
    record_store((place), sizeof *(place), 0); \
  } while (0)
#define _mm_stream_si64(place, value)          \
  do {                                         \
    *(place) = (value);                        \
    record_store((place), sizeof *(place), 1); \
  } while (0)
#endif
