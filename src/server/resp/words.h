// Words of the protocol, which are compared without case.
#pragma once
#include <cstddef>
#include <string_view>

namespace server::resp {

constexpr char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
constexpr char to_upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

// REQUIRES: `word` is in lower case.
constexpr bool is_word(std::string_view text, std::string_view word) {
  if (text.size() != word.size()) return false;
  for (size_t i = 0; i < text.size(); ++i)
    if (to_lower(text[i]) != word[i]) return false;
  return true;
}

}  // namespace server::resp
