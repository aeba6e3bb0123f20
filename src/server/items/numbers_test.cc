#include "server/items/numbers.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "server/resp/numbers.h"

namespace server {
namespace {

std::string text(uint64_t number) {
  char digits[kMaxDigits];
  return {digits, write_unsigned(number, digits)};
}
std::string signed_text(int64_t number) {
  char digits[kMaxDigits];
  return {digits, write_integer(number, digits)};
}

TEST(NumbersTest, UnsignedAsMemcachedReadsThem) {
  EXPECT_EQ(unsigned_of_value("0"), 0u);
  EXPECT_EQ(unsigned_of_value("007"), 7u);
  EXPECT_EQ(unsigned_of_value("+7"), 7u);
  EXPECT_EQ(unsigned_of_value(" \t\r\n\v\f12"), 12u);
  EXPECT_EQ(unsigned_of_value("12  "), 12u);
  EXPECT_EQ(unsigned_of_value("12 apples"), 12u);
  EXPECT_EQ(unsigned_of_value("18446744073709551615"), ~uint64_t{0});
  EXPECT_EQ(unsigned_of_value("0018446744073709551615"), ~uint64_t{0});
  for (const char* text : {"", " ", "x", "12x", "1.5", "0x10", "-1", "+-1", "+ 1", "++1",
                           "18446744073709551616", "99999999999999999999999"})
    EXPECT_EQ(unsigned_of_value(text), std::nullopt) << text;
  EXPECT_EQ(unsigned_of_value(std::string_view("1\0", 2)), std::nullopt);
}

TEST(NumbersTest, WrittenAsTheyAreRead) {
  EXPECT_EQ(text(0), "0");
  EXPECT_EQ(text(~uint64_t{0}), "18446744073709551615");
  EXPECT_EQ(signed_text(std::numeric_limits<int64_t>::min()), "-9223372036854775808");
  for (int64_t number : {int64_t{0}, int64_t{-7}, std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(resp::parse_integer(signed_text(number)), number);
    EXPECT_EQ(unsigned_of_value(text(static_cast<uint64_t>(number))), static_cast<uint64_t>(number));
  }
}

}  // namespace
}  // namespace server
