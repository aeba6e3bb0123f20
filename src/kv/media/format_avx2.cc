// The check of bytes for CPUs with AVX2; this file alone is compiled with -mavx2.
#define XXH_INLINE_ALL
#define XXH_NO_STDLIB
#define XXH_NO_STREAM
#define XXH_FORCE_MEMORY_ACCESS 1
#include <xxhash.h>

#include "kv/media/format.h"

namespace kv {

uint64_t check_of_avx2(const Secret& secret, const void* bytes, size_t length);
uint64_t check_of_avx2(const Secret& secret, const void* bytes, size_t length) {
  return XXH3_64bits_withSecret(bytes, length, secret.bytes, sizeof secret.bytes);
}

}  // namespace kv
