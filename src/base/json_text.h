// Texts of any bytes as JSON has them: bytes that are no UTF-8 are replaced. Async-signal-safe.
#pragma once
#include <cstddef>
#include <string_view>

#include "base/text.h"

namespace base {

// How many bytes the text takes as a string, without the quotation marks: at most six for each of its own.
size_t json_escaped_bytes(std::string_view text);

// Appends the text as a string, with as many of its characters as leave room for so much behind it. REQUIRES: there is room for that and for two
// quotation marks.
void put_json_string(std::string_view text, size_t behind_bytes, TextRef& to);

}  // namespace base
