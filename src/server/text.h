// What all protocols, and the values that they store, have in common as text: whole numbers, and blanks.
#pragma once
#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>

namespace server {

// All of `text` in decimal digits, for signed types after a '-' perhaps. None: it is something else, a plus or blanks among it, or the type has
// no such number.
template <std::integral Number>
constexpr std::optional<Number> parse_number(std::string_view text) {
  Number number = 0;
  const char *const begin = text.data(), *const end = begin + text.size();
  const auto [read, error] = std::from_chars(begin, end, number);
  if (error != std::errc() || read != end) return std::nullopt;
  return number;
}

// As C has them.
constexpr bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

}  // namespace server
