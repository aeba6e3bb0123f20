#include "base/json_text.h"

#include "base/utf8.h"

namespace base {
namespace {

constexpr size_t kEscapedBytes = 6;  // such as \u001f

// Appends the text's first character in the form that it has in a JSON string. Returns how many bytes of the text it took.
size_t put_character(std::string_view text, TextRef& to) {
  const size_t bytes = character_bytes(text);
  const auto first = static_cast<unsigned char>(text.front());
  if (bytes == 0)
    to << "\\ufffd";
  else if (first == '"' || first == '\\')
    to << '\\' << text.front();
  else if (first < 0x20)
    to << "\\u00" << "0123456789abcdef"[first >> 4] << "0123456789abcdef"[first & 15];
  else
    to << text.substr(0, bytes);
  return bytes == 0 ? 1 : bytes;
}

}  // namespace

size_t json_escaped_bytes(std::string_view text) {
  size_t bytes = 0;
  while (!text.empty()) {
    Text<kEscapedBytes + 1> character;
    text.remove_prefix(put_character(text, character));
    bytes += character.size();
  }
  return bytes;
}

void put_json_string(std::string_view text, size_t behind_bytes, TextRef& to) {
  to << '"';
  while (!text.empty()) {
    Text<kEscapedBytes + 1> character;
    const size_t bytes = put_character(text, character);
    if (character.size() + 1 + behind_bytes > to.room_bytes()) break;
    to << character.view();
    text.remove_prefix(bytes);
  }
  to << '"';
}

}  // namespace base
