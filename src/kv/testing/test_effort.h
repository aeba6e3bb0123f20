// For tests: how often what is random, or is done at each of many places, is tried.
#pragma once
#include <cstdint>
#include <cstdlib>

namespace kv {

// One part of so many. All of it takes minutes: with SPILLWAY_TEST_LONG.
inline const uint64_t kEffortParts = getenv("SPILLWAY_TEST_LONG") != nullptr ? 1 : 5;

// What the environment asks for by this name.
inline uint64_t setting(const char* name, uint64_t otherwise) {
  const char* const text = getenv(name);
  return text != nullptr ? strtoull(text, nullptr, 10) : otherwise;
}

}  // namespace kv
