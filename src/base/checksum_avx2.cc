// checksum() for CPUs with AVX2, in a file of its own that is compiled with -mavx2.
#define XXH_INLINE_ALL
#define XXH_NO_STDLIB
#define XXH_NO_STREAM
#define XXH_FORCE_MEMORY_ACCESS 1
#include <xxhash.h>

#include "base/checksum.h"

namespace base {

uint64_t checksum_avx2(const void* bytes, size_t length);
uint64_t checksum_avx2(const void* bytes, size_t length) { return XXH3_64bits(bytes, length); }

uint64_t checksum_avx2(const void* bytes, size_t length, const unsigned char* secret);
uint64_t checksum_avx2(const void* bytes, size_t length, const unsigned char* secret) {
  return XXH3_64bits_withSecret(bytes, length, secret, kChecksumSecretBytes);
}

}  // namespace base
