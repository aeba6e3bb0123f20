#include "server/resp/inline.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace server::resp {
namespace {

using Words = std::vector<std::string>;

// The words of the line; only "UNBALANCED" if its quotes are.
Words split(std::string_view line) {
  Words words;
  for (;;) {
    std::string word;
    const size_t before = line.size();
    switch (take_word(line, word)) {
      case Word::kNone: return words;
      case Word::kUnbalanced: return {"UNBALANCED"};
      case Word::kWord: break;
    }
    EXPECT_LE(word.size(), before - line.size());
    words.push_back(word);
  }
}

TEST(Inline, WordsStandBetweenBlanks) {
  EXPECT_EQ(split(""), Words{});
  EXPECT_EQ(split(" \t\r\n\v\f"), Words{});
  EXPECT_EQ(split("a"), Words{"a"});
  EXPECT_EQ(split("  a  bc\td\re\n"), (Words{"a", "bc", "d", "e"}));
  EXPECT_EQ(split("a\vb \v c"), (Words{"a\vb", "c"}));
  EXPECT_EQ(split(std::string_view("a\0b c", 5)), (Words{std::string("a\0b", 3), "c"}));
  EXPECT_EQ(split("a\\nb \\x41"), (Words{"a\\nb", "\\x41"}));
}

TEST(Inline, DoubleQuotes) {
  EXPECT_EQ(split("\"a b\" \"\" c"), (Words{"a b", "", "c"}));
  EXPECT_EQ(split("\"\\n\\r\\t\\b\\a\""), Words{"\n\r\t\b\a"});
  EXPECT_EQ(split("\"\\x00\\xfF\\x41\""), Words{std::string("\0\xff\x41", 3)});
  EXPECT_EQ(split("\"\\xg1\\x4\""), Words{"xg1x4"});
  EXPECT_EQ(split("\"\\\"\\\\\\q'\""), Words{"\"\\q'"});
  EXPECT_EQ(split("ab\"c d\" e"), (Words{"abc d", "e"}));
  EXPECT_EQ(split("\"a\"\vb"), (Words{"a", "b"}));
}

TEST(Inline, SingleQuotes) {
  EXPECT_EQ(split("'a b' ''"), (Words{"a b", ""}));
  EXPECT_EQ(split("'\\n\\x41\\'\"'"), Words{"\\n\\x41'\""});
  EXPECT_EQ(split("a'b'"), Words{"ab"});
}

TEST(Inline, UnbalancedQuotes) {
  for (const char* line : {"\"", "'", "a \"b", "a 'b", "\"a\"b", "'a'b", "\"a\"\"b\"", "'a'\"b\"", "\"a\\\"",
                           "\"a\\", "'a\\'", "'a\\\\' b", "\"\\x4", "a\"b\"c"})
    EXPECT_EQ(split(line), Words{"UNBALANCED"}) << line;
}

}  // namespace
}  // namespace server::resp
