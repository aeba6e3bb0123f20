#include "server/resp/numbers.h"

#include <cerrno>
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/check.h"
#include "server/text.h"

namespace server::resp {
namespace {

static_assert(LDBL_MAX_10_EXP + 1 + 17 + 4 <= kMaxPrintedFloatBytes, "of any, with a zero behind it");

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::optional<int64_t> parse_integer(std::string_view text) {
  if (text == "0") return 0;
  const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  if (digits.empty() || !is_digit(digits[0]) || digits[0] == '0') return std::nullopt;
  return parse_number<int64_t>(text);
}

std::optional<uint64_t> parse_cursor(std::string_view text) {
  if (text.empty()) return 0;
  const bool is_negated = text.starts_with('-');
  if (is_negated || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || !is_digit(text[0])) return std::nullopt;
  const auto value = parse_number<uint64_t>(text);
  if (!value) return std::nullopt;
  return is_negated ? uint64_t{0} - *value : *value;
}

std::optional<long double> parse_float(std::string_view text) {
  if (text.empty() || text.size() > kMaxFloatTextBytes) return std::nullopt;
  if (is_blank(text[0])) return std::nullopt;
  char copy[kMaxFloatTextBytes + 1];
  memcpy(copy, text.data(), text.size());
  copy[text.size()] = 0;
  char* end = nullptr;
  errno = 0;
  const long double value = strtold(copy, &end);
  if (end != copy + text.size() || std::isnan(value)) return std::nullopt;
  if (errno == ERANGE && (std::isinf(value) || value == 0)) return std::nullopt;
  return value;
}

size_t print_float(long double value, std::span<char, kMaxPrintedFloatBytes> to) {
  CHECK(std::isfinite(value));
  const int printed = snprintf(to.data(), to.size(), "%.17Lf", value);
  CHECK(printed > 0 && static_cast<size_t>(printed) < to.size());
  std::string_view text(to.data(), static_cast<size_t>(printed));
  text.remove_suffix(text.size() - 1 - text.find_last_not_of('0'));
  if (text.ends_with('.')) text.remove_suffix(1);
  if (text != "-0") return text.size();
  to[0] = '0';
  return 1;
}

}  // namespace server::resp
