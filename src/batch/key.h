// Key: the bytes of a key as two words. Keys of the same length have the same words if, and only if, their bytes are the same.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/mix.h"

namespace batch {

struct Key {
  uint64_t low = 0;   // the first 8 bytes, or all if there are fewer, as a little-endian number
  uint64_t high = 0;  // of a longer key: its last 8 bytes

  friend bool operator==(const Key&, const Key&) = default;
};

// `at` may have any alignment. Does not call the C library's memcpy, since this is in the innermost loops.
template <class Word>
[[gnu::always_inline]] inline Word load_word(const std::byte* at) {
  Word word;
  __builtin_memcpy(&word, at, sizeof word);
  return word;
}

// REQUIRES: kMinKeyBytes <= bytes <= kMaxKeyBytes.
[[gnu::always_inline]] inline Key load_key(const std::byte* at, uint32_t bytes) {
  if (bytes >= 8) return {load_word<uint64_t>(at), bytes == 8 ? 0 : load_word<uint64_t>(at + bytes - 8)};
  // The second word repeats some bytes of the first one; they are shifted out.
  return {load_word<uint32_t>(at) | uint64_t{load_word<uint32_t>(at + bytes - 4)} >> 8 * (8 - bytes) << 32,
          0};
}

[[gnu::always_inline]] inline uint64_t hash_of(const Key& key) {
  // The two words of a key overlap if it has less than 16 bytes; mixing one of them keeps equal bytes from cancelling each other out.
  return base::mix(key.low ^ base::mix(key.high));
}

}  // namespace batch
