// Numbers as Redis reads and prints them. All functions are pure. None: the text is no such number.
//
//   integer   "0", or a digit from 1 to 9 and more digits, a minus before them or not, within 64 bits; no
//             plus, blanks or leading zeros
//   cursor    of SCAN: digits within 64 unsigned bits, also with leading zeros, a plus or a minus, which
//             negates; "" is 0
//   float     of INCRBYFLOAT: what C's strtold takes as a whole, but no blanks before it and no NaN; 80 bits
//             on x86-64
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace server::resp {

std::optional<int64_t> parse_integer(std::string_view text);

std::optional<uint64_t> parse_cursor(std::string_view text);

// Infinite if the text says so, never NaN. Too large, or so small that only zero is left: refused.
// A few KiB of stack, as print_float.
std::optional<long double> parse_float(std::string_view text);
inline constexpr size_t kMaxFloatTextBytes = 5 * 1024 - 1;  // longer ones are refused

// Prints 17 digits behind the point, without the zeros at their end and without the point if nothing is left
// there; no exponent. Returns how many bytes of `to` that took. REQUIRES: `value` is finite.
inline constexpr size_t kMaxPrintedFloatBytes = 4960;
size_t print_float(long double value, std::span<char, kMaxPrintedFloatBytes> to);

}  // namespace server::resp
