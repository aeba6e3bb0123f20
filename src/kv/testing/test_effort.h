// For tests: how often what is random, or is done at each of many places, is tried.
#pragma once
#include <cstdint>
#include <cstdlib>

namespace kv {

// The thread sanitizer, which makes a try some ten times as long and looks at orders that a few show, has one part of so many.
#if __has_feature(thread_sanitizer)
inline constexpr uint64_t kEffortParts = 5;
#else
inline constexpr uint64_t kEffortParts = 1;
#endif

// What the environment asks for by this name.
inline uint64_t setting(const char* name, uint64_t otherwise) {
  const char* const text = getenv(name);
  return text != nullptr ? strtoull(text, nullptr, 10) : otherwise;
}

}  // namespace kv
