// The C++ library's hash of bytes, behind std::hash of strings: MurmurHash64A (Austin Appleby's algorithm), as the
// library implements it: the bytes beyond the last eight count as one number. Compiled by the plugin; tree.cc says
// why. The result is the library's: containers are shared with code that spillcc did not compile.
#include <cstddef>
#include <cstdint>

#include "spill/abi.h"

namespace {

constexpr uint64_t kMultiplier = 0xc6a4a7935bd1e995;

uint64_t fold(uint64_t value) { return value ^ value >> 47; }

uint64_t mix(uint64_t hash, uint64_t value) { return (hash ^ value) * kMultiplier; }

struct __attribute__((packed, may_alias)) Word {
  uint64_t value;
};

}  // namespace

SPILL_EXPORT size_t __spill__ZSt11_Hash_bytesPKvmm(const void* bytes, size_t size, size_t seed) {
  const char* at = static_cast<const char*>(bytes);
  const char* end = at + size;
  uint64_t hash = seed ^ size * kMultiplier;
  for (; end - at >= 8; at += 8)
    hash = mix(hash, fold(reinterpret_cast<const Word*>(at)->value * kMultiplier) * kMultiplier);
  if (at != end) {
    uint64_t rest = 0;
    for (unsigned shift = 0; at != end; ++at, shift += 8)
      rest |= uint64_t{static_cast<unsigned char>(*at)} << shift;
    hash = mix(hash, rest);
  }
  return fold(fold(hash) * kMultiplier);
}
