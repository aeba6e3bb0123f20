// UTF-8 characters in texts that may have any bytes.
#pragma once
#include <cstddef>
#include <string_view>

namespace base {

// How many bytes the text's first character has in UTF-8; 0: the text does not begin with one. REQUIRES: the text is not empty.
constexpr size_t character_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  // Bounds of the second byte: they exclude overlong forms, characters above U+10FFFF, and halves of surrogate pairs.
  const unsigned least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (first < 0xc2 || first > 0xf4 || byte(1) < least || byte(1) > most) return 0;
  for (size_t i = 2; i < bytes; ++i)
    if (byte(i) < 0x80 || byte(i) > 0xbf) return 0;
  return bytes;
}

}  // namespace base
