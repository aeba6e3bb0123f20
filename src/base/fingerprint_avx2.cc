// take_fingerprint() for CPUs with AVX2, in a file of its own that is compiled with -mavx2.
#define XXH_INLINE_ALL
#define XXH_NO_STDLIB
#define XXH_NO_STREAM
#include <xxhash.h>

#include "base/fingerprint.h"

namespace base {

Fingerprint take_fingerprint_avx2(const void* os_page, const unsigned char* secret_low,
                                  const unsigned char* secret_high);
Fingerprint take_fingerprint_avx2(const void* os_page, const unsigned char* secret_low,
                                  const unsigned char* secret_high) {
  return {XXH3_64bits_withSecret(os_page, kOsPageBytes, secret_low, 192),
          XXH3_64bits_withSecret(os_page, kOsPageBytes, secret_high, 192)};
}

}  // namespace base
