// Numbers in values as memcached reads them. Pure functions. What Redis takes for an integer is in
// server/resp/numbers.h.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace server {

// The most characters that a number of 64 bits has, with its sign.
inline constexpr size_t kMaxDigits = 20;

// Reads a value as memcached's incr does: blanks, an optional plus, the digits of an unsigned number of 64 bits, then the end, or a blank and
// anything behind it.
std::optional<uint64_t> unsigned_of_value(std::string_view value);
// Writes the number to `to`, which has room for kMaxDigits characters; returns how many they are.
size_t write_unsigned(uint64_t number, char* to);
size_t write_integer(int64_t number, char* to);

}  // namespace server
