#include "server/resp/glob.h"

#include <algorithm>
#include <cstddef>

#include "server/resp/words.h"

namespace server::resp {
namespace {

// What a byte is compared as.
using Fold = unsigned char (*)(char byte);
unsigned char as_it_is(char byte) { return static_cast<unsigned char>(byte); }
unsigned char in_lower_case(char byte) { return as_it_is(to_lower(byte)); }

// What stands for one byte at the beginning of a pattern.
struct One {
  bool matches;  // the byte that was asked for
  size_t bytes;  // of the pattern
};

// REQUIRES: the pattern begins with "[".
One match_bracket(std::string_view pattern, unsigned char byte, Fold fold) {
  size_t at = 1;
  const bool is_inverse = at < pattern.size() && pattern[at] == '^';
  if (is_inverse) ++at;
  bool is_in = false;
  for (; at < pattern.size() && pattern[at] != ']'; ++at) {
    const size_t left = pattern.size() - at;
    if (pattern[at] == '\\' && left >= 2) {
      ++at;
      is_in = is_in || fold(pattern[at]) == byte;
    } else if (left >= 3 && pattern[at + 1] == '-') {
      const auto [low, high] = std::minmax({fold(pattern[at]), fold(pattern[at + 2])});
      is_in = is_in || (low <= byte && byte <= high);
      at += 2;
    } else {
      is_in = is_in || fold(pattern[at]) == byte;
    }
  }
  const size_t end = std::min(at + 1, pattern.size());
  return {.matches = is_in != is_inverse, .bytes = end};
}

// REQUIRES: the pattern begins with something else than "*".
One match_one(std::string_view pattern, unsigned char byte, Fold fold) {
  switch (pattern[0]) {
    case '?': return {.matches = true, .bytes = 1};
    case '[': return match_bracket(pattern, byte, fold);
    case '\\':
      if (pattern.size() >= 2) return {.matches = fold(pattern[1]) == byte, .bytes = 2};
      [[fallthrough]];
    default: return {.matches = fold(pattern[0]) == byte, .bytes = 1};
  }
}

bool matches(std::string_view pattern, std::string_view text, Fold fold) {
  // Of the stars that were passed only the last one needs backtracking: what the earlier ones took has
  // matched already.
  constexpr size_t kNone = std::string_view::npos;
  size_t star = kNone, star_text = 0;
  size_t p = 0, t = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
      if (p == pattern.size()) return true;
      continue;
    }
    if (p < pattern.size()) {
      const One one = match_one(pattern.substr(p), fold(text[t]), fold);
      if (one.matches) {
        p += one.bytes;
        ++t;
        continue;
      }
    }
    if (star == kNone) return false;
    p = star + 1;
    t = ++star_text;
  }
  return pattern.find_first_not_of('*', p) == kNone;
}

}  // namespace

bool glob_matches(std::string_view pattern, std::string_view text) {
  return matches(pattern, text, as_it_is);
}

bool glob_matches_in_any_case(std::string_view pattern, std::string_view text) {
  return matches(pattern, text, in_lower_case);
}

}  // namespace server::resp
