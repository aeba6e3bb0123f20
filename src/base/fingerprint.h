// Content fingerprints: how the cache knows that plain stores changed a page (docs/ARCHITECTURE.md,
// "Fingerprints").
//
// A fingerprint is 128 bits per OS page, two XXH3 hashes of 64 bits under independent secrets that
// are drawn from the kernel when the process starts, so whoever chooses the content does not know the
// function. Two different contents collide with a probability of about 2^-128.
// The all-ones value means "unknown" and equals no content (take_fingerprint() never returns it).
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/ids.h"

namespace base {

struct Fingerprint {
  uint64_t low;
  uint64_t high;

  static constexpr Fingerprint unknown() { return {~uint64_t{0}, ~uint64_t{0}}; }
  constexpr bool is_unknown() const { return low == ~uint64_t{0} && high == ~uint64_t{0}; }
  // Unknown equals nothing, not even unknown.
  constexpr bool same_content_as(const Fingerprint& other) const {
    return low == other.low && high == other.high && !is_unknown();
  }
};

// Draws the secrets. REQUIRES: called once, before the first take_fingerprint(), with 2 * 192 random bytes.
void set_fingerprint_secrets(const unsigned char* random_bytes, size_t length_bytes);
inline constexpr size_t kFingerprintSecretBytes = 2 * 192;

// The fingerprint of the kOsPageBytes at `os_page`. Cost: 80-250 ns when the page is in the CPU's
// cache, up to 1 us when it is not.
Fingerprint take_fingerprint(const void* os_page);

// The fingerprint of an OS page of zeros, computed when the secrets were set.
Fingerprint zero_fingerprint();

}  // namespace base
