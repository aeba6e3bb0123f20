#include "base/checksum.h"

#define XXH_INLINE_ALL
#define XXH_NO_STDLIB
#define XXH_NO_STREAM
#define XXH_FORCE_MEMORY_ACCESS 1  // otherwise its loads call memcpy, which is not a builtin here
#include <xxhash.h>

namespace base {

// Defined in checksum_avx2.cc, the same functions compiled for wider registers.
uint64_t checksum_avx2(const void* bytes, size_t length);
uint64_t checksum_avx2(const void* bytes, size_t length, const unsigned char* secret);

uint64_t checksum(const void* bytes, size_t length) {
  if (__builtin_cpu_supports("avx2")) return checksum_avx2(bytes, length);
  return XXH3_64bits(bytes, length);
}

uint64_t checksum(const void* bytes, size_t length, const unsigned char (&secret)[kChecksumSecretBytes]) {
  if (__builtin_cpu_supports("avx2")) return checksum_avx2(bytes, length, secret);
  return XXH3_64bits_withSecret(bytes, length, secret, sizeof secret);
}

}  // namespace base
