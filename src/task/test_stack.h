// How large the stacks of tests' tasks are.
#pragma once
#include <cstddef>

namespace task {

// Frames of the sanitizers are several times as large.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr size_t kTestStackBytes = 512 << 10;
#else
inline constexpr size_t kTestStackBytes = 64 << 10;
#endif

}  // namespace task
