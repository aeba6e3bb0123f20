// Numbers in values as memcached reads them. Pure functions. What Redis takes for an integer is in
// server/resp/numbers.h.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace server {

// Digits of any number of 64 bits, with its sign.
inline constexpr size_t kDigitsMost = 20;

// What memcached's incr takes for a number: blanks, then an optional plus, then digits of an unsigned number of 64 bits, then the end or a
// blank, and behind that anything. Cost: reads all leading blanks.
std::optional<uint64_t> unsigned_of_value(std::string_view value);
// Writes it to `to`, kDigitsMost long; how many characters.
size_t write_unsigned(uint64_t number, char* to);
size_t write_integer(int64_t number, char* to);

}  // namespace server
