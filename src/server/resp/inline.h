// Inline commands: a line as a person types it, split into words.
//
// Words stand between blanks. In "double quotes" \n \r \t \b \a and \xHH are the bytes that C has for them,
// and \ before any other byte is that byte; in 'single quotes' only \' is one. Quotes may begin inside a
// word, and end it. A zero byte is a byte like any other.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace server::resp {

enum class Word : uint8_t {
  kWord,
  kNone,        // only blanks were left
  kUnbalanced,  // a quote is not closed, or there is no blank behind one that is
};

// Takes a word from the front of the line and appends it, without quotes, to `words`: at most as many bytes
// as it took.
Word take_word(std::string_view& line, std::string& words);

}  // namespace server::resp
