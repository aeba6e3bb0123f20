#include "server/resp/glob.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace server::resp {
namespace {

struct Case {
  const char* pattern;
  const char* text;
};

TEST(Glob, Matches) {
  constexpr Case kCases[] = {
      {"", ""},           {"*", ""},          {"**", ""},
      {"*", "abc"},       {"a*", "a"},        {"a*c", "abbc"},
      {"a*c", "ac"},      {"*a*", "bab"},     {"*abc", "ababc"},
      {"a**b", "axb"},    {"*a*b*c*", "abc"}, {"?", "x"},
      {"h?llo", "hello"}, {"?*", "x"},        {"[abc]", "b"},
      {"[a-c]", "b"},     {"[c-a]", "b"},     {"[^a]", "b"},
      {"[^a-c]", "d"},    {"[a-]", "_"},      {"[^]", "x"},
      {"[^", "x"},        {"[a", "a"},        {"[ab", "b"},
      {"[\\]]", "]"},     {"[\\^a]", "^"},    {"[a^]", "^"},
      {"[\\-a]", "-"},    {"\\*", "*"},       {"\\?", "?"},
      {"\\[a]", "[a]"},   {"\\", "\\"},       {"a\\", "a\\"},
      {"\\a", "a"},       {"[\\", "\\"},      {"a]", "a]"},
      {"*[0-9]", "key7"}, {"k[e-e]y", "key"}, {"user:*:na?e", "user:1:2:name"},
  };
  for (const auto& [pattern, text] : kCases)
    EXPECT_TRUE(glob_matches(pattern, text)) << pattern << ' ' << text;
}

TEST(Glob, MatchesNot) {
  constexpr Case kCases[] = {
      {"", "a"},    {"a", ""},      {"?", ""},      {"?", "ab"},     {"a", "A"},       {"a*", "ba"},
      {"*a", "ab"}, {"a*c", "acb"}, {"[abc]", "d"}, {"[a-c]", "d"},  {"[^a]", "a"},    {"[^a-c]", "b"},
      {"[]", "]"},  {"[]", "a"},    {"[]a", "a"},   {"[", "["},      {"[a-c]", "-"},   {"[\\-a]", "b"},
      {"\\*", "a"}, {"\\", "a"},    {"[a]", ""},    {"*[0-9]", "k"}, {"*a*b", "bab1"}, {"[^", ""},
      {"ab", "a"},  {"a", "ab"},    {"*?", ""},
  };
  for (const auto& [pattern, text] : kCases)
    EXPECT_FALSE(glob_matches(pattern, text)) << pattern << ' ' << text;
}

TEST(Glob, BytesNotCharacters) {
  EXPECT_TRUE(glob_matches("[\x80-\xff]", "\xc3"));
  EXPECT_TRUE(glob_matches("[a-\xff]", "\x80"));
  EXPECT_FALSE(glob_matches("[a-\xff]", "A"));
  EXPECT_TRUE(glob_matches("??", "\xc3\xa4"));
  EXPECT_TRUE(glob_matches(std::string_view("a\0*", 3), std::string_view("a\0b", 3)));
  EXPECT_FALSE(glob_matches(std::string_view("a\0b", 3), std::string_view("a\0c", 3)));
}

TEST(Glob, InAnyCase) {
  for (const auto& [pattern, text] :
       {Case{"MaxMemory*", "maxmemory-policy"}, Case{"[A-C]?", "bX"}, Case{"[a-c]", "B"}, Case{"[^x]", "Y"},
        Case{"\\A", "a"}, Case{"[\\A]", "a"}, Case{"*", ""}})
    EXPECT_TRUE(glob_matches_in_any_case(pattern, text)) << pattern << ' ' << text;
  for (const auto& [pattern, text] :
       {Case{"A", "b"}, Case{"[^A]", "a"}, Case{"[A-C]", "D"}, Case{"\\*", "a"}})
    EXPECT_FALSE(glob_matches_in_any_case(pattern, text)) << pattern << ' ' << text;
}

// Tries every length for every star.
bool matches_simply(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*')
    return matches_simply(pattern.substr(1), text) ||
           (!text.empty() && matches_simply(pattern, text.substr(1)));
  if (text.empty() || (pattern[0] != '?' && pattern[0] != text[0])) return false;
  return matches_simply(pattern.substr(1), text.substr(1));
}

TEST(Glob, AsASimplerOne) {
  std::mt19937_64 random(5);
  const auto any = [&random](std::string_view alphabet, size_t most) {
    std::string text;
    for (size_t length = random() % (most + 1); length > 0; --length)
      text += alphabet[random() % alphabet.size()];
    return text;
  };
  int match_count = 0;
  for (int round = 0; round < 20000; ++round) {
    const std::string pattern = any("ab*?", 7), text = any("ab", 8);
    const bool matches = matches_simply(pattern, text);
    EXPECT_EQ(glob_matches(pattern, text), matches) << pattern << ' ' << text;
    match_count += matches;
  }
  EXPECT_GT(match_count, 1000);
}

TEST(Glob, ManyStarsTakeNoLonger) {
  std::string pattern;
  for (int i = 0; i < 2000; ++i) pattern += "*a";
  EXPECT_FALSE(glob_matches(pattern + "b", std::string(4000, 'a')));
  EXPECT_TRUE(glob_matches(pattern + "*", std::string(4000, 'a')));
}

}  // namespace
}  // namespace server::resp
