#include "server/items/numbers.h"

#include <algorithm>
#include <charconv>

#include "server/text.h"

namespace server {
namespace {

template <class Number>
size_t write(Number number, char* to) {
  return static_cast<size_t>(std::to_chars(to, to + kMaxDigits, number).ptr - to);
}

}  // namespace

std::optional<uint64_t> unsigned_of_value(std::string_view value) {
  while (!value.empty() && is_blank(value.front())) value.remove_prefix(1);
  if (!value.empty() && value.front() == '+') value.remove_prefix(1);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc()) return std::nullopt;
  value.remove_prefix(static_cast<size_t>(end - value.data()));
  if (!value.empty() && !is_blank(value.front())) return std::nullopt;
  return number;
}

size_t write_unsigned(uint64_t number, char* to) { return write(number, to); }
size_t write_integer(int64_t number, char* to) { return write(number, to); }

}  // namespace server
