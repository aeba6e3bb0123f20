// For tests: how often what is random, or is done at each of many places, is tried.
#pragma once
#include <cstdint>

namespace kv {

// The thread sanitizer, which makes a try some ten times as long and looks at orders that a few show, has one part of so many.
#if __has_feature(thread_sanitizer)
inline constexpr uint64_t kEffortParts = 5;
#else
inline constexpr uint64_t kEffortParts = 1;
#endif

}  // namespace kv
