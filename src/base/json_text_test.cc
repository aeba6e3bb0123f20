#include "base/json_text.h"

#include <gtest/gtest.h>

#include <string>

namespace base {
namespace {

template <size_t kBytes = 64>
std::string quoted(std::string_view text, size_t behind_bytes = 0) {
  Text<kBytes> to;
  put_json_string(text, behind_bytes, to);
  return std::string(to.view());
}

TEST(JsonText, WhatHasAMeaningIsEscaped) {
  EXPECT_EQ(quoted("a\"b\\c\n\x01"), "\"a\\\"b\\\\c\\u000a\\u0001\"");
  EXPECT_EQ(quoted("\x7f/\xc3\xa9"), "\"\x7f/\xc3\xa9\"");
  EXPECT_EQ(quoted("a\xff\xc3"), "\"a\\ufffd\\ufffd\"");
}

TEST(JsonText, TakesAsMuchAsWasSaid) {
  for (const std::string text : {"", "plain", "a\"b\\c\n\x01", "\xc3\xa9\xff"})
    EXPECT_EQ(quoted(text).size(), json_escaped_bytes(text) + 2) << text;
}

TEST(JsonText, EndsBeforeACharacterThatLeavesNoRoom) {
  EXPECT_EQ(quoted<8>("ab\xc3\xa9z"), "\"ab\xc3\xa9z\"");
  EXPECT_EQ(quoted<8>("ab\xc3\xa9z", 1), "\"ab\xc3\xa9\"");
  EXPECT_EQ(quoted<8>("ab\xc3\xa9z", 2), "\"ab\"");
}

}  // namespace
}  // namespace base
