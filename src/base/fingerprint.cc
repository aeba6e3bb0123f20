#include "base/fingerprint.h"

#define XXH_INLINE_ALL
#define XXH_NO_STDLIB
#define XXH_NO_STREAM
#include <xxhash.h>

#include "base/check.h"

namespace base {
namespace {

struct Secrets {
  unsigned char bytes[2][192];
  Fingerprint zero;
  bool wide;  // the CPU has AVX2
};
Secrets secrets;

alignas(64) const unsigned char kZeros[kOsPageBytes] = {};

}  // namespace

// Defined in fingerprint_avx2.cc, the same function compiled for wider registers.
Fingerprint take_fingerprint_avx2(const void* os_page, const unsigned char* secret_low,
                                  const unsigned char* secret_high);

Fingerprint take_fingerprint(const void* os_page) {
  Fingerprint result;
  if (secrets.wide) {
    result = take_fingerprint_avx2(os_page, secrets.bytes[0], secrets.bytes[1]);
  } else {
    result = {XXH3_64bits_withSecret(os_page, kOsPageBytes, secrets.bytes[0], sizeof secrets.bytes[0]),
              XXH3_64bits_withSecret(os_page, kOsPageBytes, secrets.bytes[1], sizeof secrets.bytes[1])};
  }
  if (result.is_unknown()) result.high = 0;
  return result;
}

void set_fingerprint_secrets(const unsigned char* random_bytes, size_t length_bytes) {
  CHECK_EQ(length_bytes, sizeof secrets.bytes);
  for (size_t i = 0; i < length_bytes; ++i) secrets.bytes[i / 192][i % 192] = random_bytes[i];
  __builtin_cpu_init();
  secrets.wide = __builtin_cpu_supports("avx2") != 0;
  secrets.zero = take_fingerprint(kZeros);
}

Fingerprint zero_fingerprint() { return secrets.zero; }

}  // namespace base
