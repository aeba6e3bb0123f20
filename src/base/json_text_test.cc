#include "base/json_text.h"

#include <gtest/gtest.h>

#include <string>

namespace base {
namespace {

template <size_t kBytes = 64>
std::string in_quotes(std::string_view text, size_t behind_bytes = 0) {
  Text<kBytes> to;
  put_json_string(text, behind_bytes, to);
  return std::string(to.view());
}

TEST(JsonText, WhatHasAMeaningIsEscaped) {
  EXPECT_EQ(in_quotes("a\"b\\c\n\x01"), "\"a\\\"b\\\\c\\u000a\\u0001\"");
  EXPECT_EQ(in_quotes("\x7f/\xc3\xa9"), "\"\x7f/\xc3\xa9\"");
  EXPECT_EQ(in_quotes("a\xff\xc3"), "\"a\\ufffd\\ufffd\"");
}

TEST(JsonText, TakesAsMuchAsWasSaid) {
  for (const std::string text : {"", "plain", "a\"b\\c\n\x01", "\xc3\xa9\xff"})
    EXPECT_EQ(in_quotes(text).size(), json_escaped_bytes(text) + 2) << text;
}

TEST(JsonText, EndsBeforeACharacterThatLeavesNoRoom) {
  EXPECT_EQ(in_quotes<8>("ab\xc3\xa9z"), "\"ab\xc3\xa9z\"");
  EXPECT_EQ(in_quotes<8>("ab\xc3\xa9z", 1), "\"ab\xc3\xa9\"");
  EXPECT_EQ(in_quotes<8>("ab\xc3\xa9z", 2), "\"ab\"");
}

}  // namespace
}  // namespace base
