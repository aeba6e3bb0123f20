// Numbers from spilled strings. A copy of the start of the string is parsed; it is made longer until
// the number provably ends inside it, so that parsing the head of a huge text costs what its number does.
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "spill/intercept/intercept.h"

namespace spill {
namespace {

// What a number may still continue with after the point where parsing a truncated copy stopped:
// "infinity" after "inf", an exponent after "1", digits after "0x". "nan(" has no bound and is asked for.
constexpr size_t kUndecidedBytes = 16;

bool is_decided(const char* text, size_t length, const char* end) {
  size_t at = static_cast<size_t>(end - text);
  if (at == 0)
    while (at < length && isspace(static_cast<unsigned char>(text[at]))) ++at;
  return at + kUndecidedBytes < length && text[at] != '(';
}

// A base that there is not leaves `end` alone.
template <class Parse>
auto parse_number(const char* text, char** end, Parse parse) {
  char* stop = nullptr;
  if (plain(text)) {
    auto value = parse(text, &stop);
    if (end != nullptr && stop != nullptr) store(end, stop);
    return value;
  }
  const int error_before = errno;
  for (size_t capacity = 128;; capacity *= 8) {
    const size_t length = string_length(text, capacity);
    Scratch head(length + 1);
    if (head.data() == nullptr) {
      errno = ENOMEM;
      if (end != nullptr) store(end, const_cast<char*>(text));
      return decltype(parse(text, &stop)){};
    }
    copy(head.data(), text, length);
    head.data()[length] = 0;
    errno = error_before;
    auto value = parse(static_cast<const char*>(head.data()), &stop);
    if (stop == nullptr) return value;
    if (length == capacity && !is_decided(head.data(), length, stop)) continue;
    if (end != nullptr) store(end, const_cast<char*>(text) + (stop - head.data()));
    return value;
  }
}

}  // namespace
}  // namespace spill

using spill::plain;

#define SPILL_INTEGER(T, name, function)                                                                     \
  SPILL_EXPORT T __spill_##name(const char* text, char** end, int base) {                                    \
    if (plain(text, end)) [[likely]]                                                                         \
      return function(text, end, base);                                                                      \
    return spill::parse_number(text, end, [base](const char* t, char** e) { return function(t, e, base); }); \
  }
SPILL_INTEGER(long, strtol, strtol)
SPILL_INTEGER(unsigned long, strtoul, strtoul)
SPILL_INTEGER(long long, strtoll, strtoll)
SPILL_INTEGER(unsigned long long, strtoull, strtoull)
SPILL_INTEGER(long long, strtoq, strtoll)
SPILL_INTEGER(unsigned long long, strtouq, strtoull)
SPILL_INTEGER(intmax_t, strtoimax, strtoimax)
SPILL_INTEGER(uintmax_t, strtoumax, strtoumax)
// Names that newer C libraries' headers give to the same functions; programs built against them say
// 0b101 is a number where this C library knows it.
SPILL_INTEGER(long, __isoc23_strtol, strtol)
SPILL_INTEGER(unsigned long, __isoc23_strtoul, strtoul)
SPILL_INTEGER(long long, __isoc23_strtoll, strtoll)
SPILL_INTEGER(unsigned long long, __isoc23_strtoull, strtoull)
SPILL_INTEGER(intmax_t, __isoc23_strtoimax, strtoimax)
SPILL_INTEGER(uintmax_t, __isoc23_strtoumax, strtoumax)
#undef SPILL_INTEGER

#define SPILL_FLOATING(T, name)                                                                \
  SPILL_EXPORT T __spill_##name(const char* text, char** end) {                                \
    if (plain(text, end)) [[likely]]                                                           \
      return name(text, end);                                                                  \
    return spill::parse_number(text, end, [](const char* t, char** e) { return name(t, e); }); \
  }
SPILL_FLOATING(double, strtod)
SPILL_FLOATING(float, strtof)
SPILL_FLOATING(long double, strtold)
#undef SPILL_FLOATING

SPILL_EXPORT int __spill_atoi(const char* text) {
  return static_cast<int>(__spill_strtol(text, nullptr, 10));
}
SPILL_EXPORT long __spill_atol(const char* text) { return __spill_strtol(text, nullptr, 10); }
SPILL_EXPORT long long __spill_atoll(const char* text) { return __spill_strtoll(text, nullptr, 10); }
SPILL_EXPORT double __spill_atof(const char* text) { return __spill_strtod(text, nullptr); }
