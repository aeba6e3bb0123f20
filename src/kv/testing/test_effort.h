// For tests: how many random tries a test makes, and at how many of all places it tries something.
#pragma once
#include <cstdint>
#include <cstdlib>

namespace kv {

// A test does one part in so many of its work; with SPILLWAY_TEST_LONG all of it, which takes minutes.
inline const uint64_t kEffortParts = getenv("SPILLWAY_TEST_LONG") != nullptr ? 1 : 5;

// The number in this environment variable; `otherwise` if it is not set.
inline uint64_t setting(const char* name, uint64_t otherwise) {
  const char* const text = getenv(name);
  return text != nullptr ? strtoull(text, nullptr, 10) : otherwise;
}

}  // namespace kv
