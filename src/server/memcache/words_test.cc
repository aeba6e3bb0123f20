#include "server/memcache/words.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/text.h"

namespace server::memcache {
namespace {

std::vector<std::string> all(std::string_view text) {
  Words words(text);
  std::vector<std::string> found;
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) found.emplace_back(word);
  EXPECT_TRUE(words.next().empty());
  return found;
}

TEST(Words, OnlyBlanksPartThem) {
  EXPECT_EQ(all(""), (std::vector<std::string>{}));
  EXPECT_EQ(all("   "), (std::vector<std::string>{}));
  EXPECT_EQ(all("get"), (std::vector<std::string>{"get"}));
  EXPECT_EQ(all("  get   a b  "), (std::vector<std::string>{"get", "a", "b"}));
  EXPECT_EQ(all("a\tb c\r"), (std::vector<std::string>{"a\tb", "c\r"}));
}

TEST(Words, TheRestIsWhatWasNotReturned) {
  Words words(" a  b c");
  EXPECT_EQ(words.rest(), " a  b c");
  EXPECT_EQ(words.next(), "a");
  EXPECT_EQ(words.rest(), "  b c");
  Words copy = words;
  EXPECT_EQ(copy.next(), "b");
  EXPECT_EQ(words.next(), "b");
  EXPECT_EQ(words.next(), "c");
  EXPECT_EQ(words.rest(), "");
}

TEST(Numbers, UnsignedAreDigitsOnly) {
  EXPECT_EQ(parse_number<uint32_t>("0"), 0u);
  EXPECT_EQ(parse_number<uint32_t>("007"), 7u);
  EXPECT_EQ(parse_number<uint32_t>("4294967295"), UINT32_MAX);
  EXPECT_EQ(parse_number<uint64_t>("18446744073709551615"), UINT64_MAX);
  for (const char* text : {"", "-1", "-0", "+1", "1x", "x1", "0x1", " 1", "1 ", "1\t", "1.5", "4294967296"})
    EXPECT_EQ(parse_number<uint32_t>(text), std::nullopt) << text;
  EXPECT_EQ(parse_number<uint64_t>("18446744073709551616"), std::nullopt);
  EXPECT_EQ(parse_number<uint32_t>(std::string_view("1\0", 2)), std::nullopt);
}

TEST(Numbers, SignedMayHaveAMinus) {
  EXPECT_EQ(parse_number<int64_t>("-1"), -1);
  EXPECT_EQ(parse_number<int64_t>("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(parse_number<int64_t>("9223372036854775807"), INT64_MAX);
  for (const char* text : {"", "-", "--1", "+1", "9223372036854775808", "1-"})
    EXPECT_EQ(parse_number<int64_t>(text), std::nullopt) << text;
}

}  // namespace
}  // namespace server::memcache
