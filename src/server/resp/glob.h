// Patterns of KEYS, SCAN's MATCH and CONFIG GET, as Redis reads them. Bytes are compared, not characters.
//
//   *        any bytes, also none
//   ?        one byte
//   [...]    one of the bytes in it; a-c is a range, in either order; [^...] is one that is not in it. It
//            ends at the first ], and without one at the pattern's end
//   \x       x itself, also in brackets; a \ at the pattern's end is itself
#pragma once
#include <string_view>

namespace server::resp {

// Does the pattern match all of `text`? At most as many steps as the product of both lengths; no recursion.
bool glob_matches(std::string_view pattern, std::string_view text);
// The same where A and a are one letter.
bool glob_matches_in_any_case(std::string_view pattern, std::string_view text);

}  // namespace server::resp
