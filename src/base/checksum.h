// Checksums of data on storage media: XXH3 with 64 bits.
//
// They detect accidental damage; with a secret that others do not know, also deliberate changes.
#pragma once
#include <cstddef>
#include <cstdint>

namespace base {

inline constexpr size_t kChecksumSecretBytes = 192;

// The same on every machine. Cost with AVX2: about 90 ns for 4 KiB in the CPU's cache, 400 ns otherwise.
uint64_t checksum(const void* bytes, size_t length);
uint64_t checksum(const void* bytes, size_t length, const unsigned char (&secret)[kChecksumSecretBytes]);

}  // namespace base
