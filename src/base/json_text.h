// Texts of any bytes as JSON strings: bytes that are not UTF-8 are replaced. Async-signal-safe.
#pragma once
#include <cstddef>
#include <string_view>

#include "base/text.h"

namespace base {

// How many bytes the text takes as a string, without the quotation marks: at most six for each of its bytes.
size_t json_escaped_bytes(std::string_view text);

// Appends the text as a string, cut off where the next character would not leave room for `behind_bytes` after the string. REQUIRES: there is room
// for these and for two quotation marks.
void put_json_string(std::string_view text, size_t behind_bytes, TextRef& to);

}  // namespace base
