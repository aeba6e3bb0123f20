// CHECK: a programmer's mistake ends the process with one line that names the place and both values.
// Always on. DCHECK is the same in builds without NDEBUG and under sanitizers and does nothing elsewhere,
// for conditions that cost too much there. Operating errors are base::Error, never a CHECK.
#pragma once
#include <concepts>
#include <cstdint>
#include <type_traits>

namespace base {

[[noreturn]] void check_failed(const char* file, int line, const char* condition);
[[noreturn]] void check_failed(const char* file, int line, const char* condition, uint64_t left,
                               uint64_t right);

template <class T>
constexpr uint64_t check_value(const T& value) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<uint64_t>(value);
  } else {
    return static_cast<uint64_t>(value);
  }
}

}  // namespace base

#define CHECK(condition)                             \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? (void)0                                     \
       : ::base::check_failed(__FILE_NAME__, __LINE__, #condition))
#define BASE_CHECK_BINARY(a, op, b)                                                                       \
  do {                                                                                                    \
    const auto& base_check_a = (a);                                                                       \
    const auto& base_check_b = (b);                                                                       \
    if (__builtin_expect(!(base_check_a op base_check_b), 0))                                             \
      ::base::check_failed(__FILE_NAME__, __LINE__, #a " " #op " " #b, ::base::check_value(base_check_a), \
                           ::base::check_value(base_check_b));                                            \
  } while (0)
#define CHECK_EQ(a, b) BASE_CHECK_BINARY(a, ==, b)
#define CHECK_NE(a, b) BASE_CHECK_BINARY(a, !=, b)
#define CHECK_LT(a, b) BASE_CHECK_BINARY(a, <, b)
#define CHECK_LE(a, b) BASE_CHECK_BINARY(a, <=, b)
#define CHECK_GT(a, b) BASE_CHECK_BINARY(a, >, b)
#define CHECK_GE(a, b) BASE_CHECK_BINARY(a, >=, b)

#if !defined(NDEBUG) || __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DCHECK(condition) CHECK(condition)
#else
#define DCHECK(condition) ((void)sizeof(static_cast<bool>(condition)))
#endif
