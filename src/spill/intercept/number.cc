// Numbers from spilled strings. A copy of the start of the string is parsed; it is made longer until the number
// provably ends inside it, so that parsing a number at the start of a huge text costs no more than the number.
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <langinfo.h>
#include <stdlib.h>

#include <string_view>

#include "spill/intercept/intercept.h"

namespace spill {
namespace {

constexpr size_t kFirstBytes = 128;

// The rest of a text after the bytes that a number takes; if it takes none, after white space and a sign.
std::string_view rest_of(std::string_view text, size_t taken) {
  text.remove_prefix(taken);
  if (taken > 0) return text;
  while (!text.empty() && isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  return text;
}

// Whether `rest` is a proper prefix of `word`, ignoring case. REQUIRES: `word` is in lower case.
bool begins(std::string_view rest, std::string_view word) {
  const auto is_same = [](char a, char b) { return (a | 0x20) == b; };
  return rest.size() < word.size() && std::equal(rest.begin(), rest.end(), word.begin(), is_same);
}

// Whether a number that takes the first `taken` bytes of a truncated text might take more of the whole text: the rest
// begins something that can be part of a number.
using MayGoOn = bool(std::string_view text, size_t taken);

bool integer_may_go_on(std::string_view text, size_t taken) {
  const std::string_view rest = rest_of(text, taken);
  return rest.empty() || (taken > 0 && text[taken - 1] == '0' && (rest == "x" || rest == "X"));
}

bool floating_may_go_on(std::string_view text, size_t taken) {
  const std::string_view point = nl_langinfo(RADIXCHAR);
  const std::string_view rest = rest_of(text, taken);
  if (point.starts_with(rest)) return true;  // also if nothing is left
  if (taken == 0) return begins(rest, "inf") || begins(rest, "nan");
  const char last = text[taken - 1];
  std::string_view more = rest;
  more.remove_prefix(1);
  switch (rest.front()) {
    case 'e':
    case 'E':
    case 'p':
    case 'P': return more.empty() || more == "+" || more == "-";
    case 'x':
    case 'X': return last == '0' && point.starts_with(more);
    case 'i':
    case 'I': return begins(rest, "inity");
    case '(':
      return (last == 'n' || last == 'N') && std::all_of(more.begin(), more.end(), [](unsigned char c) {
               return c == '_' || isalnum(c) != 0;
             });
    default: return false;
  }
}

// An invalid base leaves `end` alone.
template <class Parse>
auto parse_number(const char* text, char** end, MayGoOn* may_go_on, Parse parse) {
  char* stop = nullptr;
  if (plain(text)) {
    auto value = parse(text, &stop);
    if (end != nullptr && stop != nullptr) store(end, stop);
    return value;
  }
  const int error_before = errno;
  for (size_t capacity = first_window(text, kFirstBytes);; capacity = next_window(text, capacity)) {
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
    const auto taken = static_cast<size_t>(stop - head.data());
    if (length == capacity && may_go_on({head.data(), length}, taken)) continue;
    if (end != nullptr) store(end, const_cast<char*>(text) + taken);
    return value;
  }
}

}  // namespace
}  // namespace spill

using spill::plain;

#define SPILL_INTEGER(T, name, function)                                                          \
  SPILL_EXPORT T __spill_##name(const char* text, char** end, int base) {                         \
    if (plain(text, end)) [[likely]]                                                              \
      return function(text, end, base);                                                           \
    return spill::parse_number(text, end, spill::integer_may_go_on,                               \
                               [base](const char* t, char** e) { return function(t, e, base); }); \
  }
SPILL_INTEGER(long, strtol, strtol)
SPILL_INTEGER(unsigned long, strtoul, strtoul)
SPILL_INTEGER(long long, strtoll, strtoll)
SPILL_INTEGER(unsigned long long, strtoull, strtoull)
SPILL_INTEGER(long long, strtoq, strtoll)
SPILL_INTEGER(unsigned long long, strtouq, strtoull)
SPILL_INTEGER(intmax_t, strtoimax, strtoimax)
SPILL_INTEGER(uintmax_t, strtoumax, strtoumax)
// The names of the same functions in newer C libraries' headers; for programs built with these, 0b101 is a number
// if this C library supports it.
SPILL_INTEGER(long, __isoc23_strtol, strtol)
SPILL_INTEGER(unsigned long, __isoc23_strtoul, strtoul)
SPILL_INTEGER(long long, __isoc23_strtoll, strtoll)
SPILL_INTEGER(unsigned long long, __isoc23_strtoull, strtoull)
SPILL_INTEGER(intmax_t, __isoc23_strtoimax, strtoimax)
SPILL_INTEGER(uintmax_t, __isoc23_strtoumax, strtoumax)
#undef SPILL_INTEGER

#define SPILL_FLOATING(T, name)                                                     \
  SPILL_EXPORT T __spill_##name(const char* text, char** end) {                     \
    if (plain(text, end)) [[likely]]                                                \
      return name(text, end);                                                       \
    return spill::parse_number(text, end, spill::floating_may_go_on,                \
                               [](const char* t, char** e) { return name(t, e); }); \
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
