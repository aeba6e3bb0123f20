#include "server/resp/inline.h"

#include <cstddef>

namespace server::resp {
namespace {

constexpr std::string_view kBlanks = " \t\n\v\f\r";
constexpr std::string_view kEndsOfWords = " \t\n\r";  // where no quote is open

bool is_blank(char c) { return kBlanks.contains(c); }

// -1: none.
int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// What a backslash in double quotes and what follows it mean.
struct Escape {
  char byte;
  size_t bytes;  // of the text
};

// REQUIRES: the text begins with a backslash, which is not its last byte.
Escape read_escape(std::string_view text) {
  const char kind = text[1];
  if (kind == 'x' && text.size() >= 4 && hex_digit(text[2]) >= 0 && hex_digit(text[3]) >= 0)
    return {static_cast<char>(hex_digit(text[2]) * 16 + hex_digit(text[3])), 4};
  switch (kind) {
    case 'n': return {'\n', 2};
    case 'r': return {'\r', 2};
    case 't': return {'\t', 2};
    case 'b': return {'\b', 2};
    case 'a': return {'\a', 2};
    default: return {kind, 2};
  }
}

// Appends what stands in the quotes that the text begins with. Returns where they are closed; npos: they are
// not.
size_t read_quoted(std::string_view text, std::string& words) {
  const char quote = text[0];
  for (size_t at = 1; at < text.size();) {
    const bool has_next = at + 1 < text.size();
    if (quote == '"' && text[at] == '\\' && has_next) {
      const Escape escape = read_escape(text.substr(at));
      words += escape.byte;
      at += escape.bytes;
    } else if (quote == '\'' && text[at] == '\\' && has_next && text[at + 1] == '\'') {
      words += '\'';
      at += 2;
    } else if (text[at] == quote) {
      return at;
    } else {
      words += text[at++];
    }
  }
  return std::string_view::npos;
}

}  // namespace

Word take_word(std::string_view& line, std::string& words) {
  const size_t begin = line.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return Word::kNone;
  line.remove_prefix(begin);
  size_t at = 0;
  for (; at < line.size() && !kEndsOfWords.contains(line[at]); ++at) {
    if (line[at] != '"' && line[at] != '\'') {
      words += line[at];
      continue;
    }
    const size_t close = read_quoted(line.substr(at), words);
    if (close == std::string_view::npos) return Word::kUnbalanced;
    at += close + 1;
    if (at < line.size() && !is_blank(line[at])) return Word::kUnbalanced;
    break;
  }
  line.remove_prefix(at);
  return Word::kWord;
}

}  // namespace server::resp
