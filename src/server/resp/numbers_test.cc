#include "server/resp/numbers.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <limits>
#include <random>
#include <string>

namespace server::resp {
namespace {

TEST(Numbers, Integers) {
  EXPECT_EQ(parse_integer("0"), 0);
  EXPECT_EQ(parse_integer("7"), 7);
  EXPECT_EQ(parse_integer("-7"), -7);
  EXPECT_EQ(parse_integer("1234567890"), 1234567890);
  EXPECT_EQ(parse_integer("9223372036854775807"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(parse_integer("-9223372036854775808"), std::numeric_limits<int64_t>::min());
}

TEST(Numbers, WhatIsNoInteger) {
  for (const char* text : {"",
                           "-",
                           "+",
                           "+1",
                           " 1",
                           "1 ",
                           "01",
                           "00",
                           "-0",
                           "-01",
                           "--1",
                           "1x",
                           "x",
                           "0x1",
                           "1.0",
                           "1e3",
                           "9223372036854775808",
                           "-9223372036854775809",
                           "18446744073709551616",
                           "1\n",
                           "99999999999999999999999999999999"})
    EXPECT_EQ(parse_integer(text), std::nullopt) << text;
  EXPECT_EQ(parse_integer(std::string_view("1\0", 2)), std::nullopt);
}

TEST(Numbers, Cursors) {
  EXPECT_EQ(parse_cursor(""), 0u);
  EXPECT_EQ(parse_cursor("0"), 0u);
  EXPECT_EQ(parse_cursor("007"), 7u);
  EXPECT_EQ(parse_cursor("+7"), 7u);
  EXPECT_EQ(parse_cursor("-1"), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(parse_cursor("18446744073709551615"), std::numeric_limits<uint64_t>::max());
  for (const char* text : {"-", "+", "+-1", "--1", " 1", "1 ", "x", "1x", "0x1", "18446744073709551616",
                           "-18446744073709551616"})
    EXPECT_EQ(parse_cursor(text), std::nullopt) << text;
}

std::string printed(long double value) {
  char buffer[kMaxPrintedFloatBytes];
  return std::string(buffer, print_float(value, buffer));
}

TEST(Numbers, Floats) {
  EXPECT_EQ(parse_float("3.0e3"), 3000.0L);
  EXPECT_EQ(parse_float("+.5"), 0.5L);
  EXPECT_EQ(parse_float("0x10"), 16.0L);
  EXPECT_EQ(parse_float("-0"), 0.0L);
  EXPECT_EQ(parse_float("1e4932"), 1e4932L);
  EXPECT_EQ(parse_float("inf"), std::numeric_limits<long double>::infinity());
  EXPECT_EQ(parse_float("-Infinity"), -std::numeric_limits<long double>::infinity());
  EXPECT_EQ(parse_float("1" + std::string(kMaxFloatTextBytes - 1, '0')), std::nullopt) << "too large";
  EXPECT_EQ(parse_float("0." + std::string(kMaxFloatTextBytes - 2, '0')), 0.0L);
  EXPECT_EQ(parse_float("0." + std::string(kMaxFloatTextBytes - 1, '0')), std::nullopt) << "too long";
}

TEST(Numbers, WhatIsNoFloat) {
  for (const char* text : {"", " 1", "\t1", "\v1", "1 ", "x", "1x", "1.2.3", "--1", "nan", "NaN", "-nan",
                           "1e5000", "-1e5000", "1e-5000", "e5", ".", "+"})
    EXPECT_EQ(parse_float(text), std::nullopt) << text;
  EXPECT_EQ(parse_float(std::string_view("1\0", 2)), std::nullopt);
}

TEST(Numbers, PrintedFloats) {
  EXPECT_EQ(printed(0), "0");
  EXPECT_EQ(printed(-0.0L), "0");
  EXPECT_EQ(printed(-1e-30L), "0");
  EXPECT_EQ(printed(3000), "3000");
  EXPECT_EQ(printed(10.6L), "10.6");
  EXPECT_EQ(printed(-1.5L), "-1.5");
  EXPECT_EQ(printed(1.0L / 3), "0.33333333333333333");
  EXPECT_EQ(printed(0.00000000000000001L), "0.00000000000000001");
  EXPECT_EQ(printed(100.0L * 100), "10000");
  EXPECT_EQ(printed(-LDBL_MAX).size(), 4934u);
  EXPECT_EQ(parse_float(printed(LDBL_MAX)), LDBL_MAX);
}

TEST(Numbers, WhatIsPrintedIsRead) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 2000; ++round) {
    const int64_t integer = static_cast<int64_t>(random()) >> random() % 64;
    EXPECT_EQ(parse_integer(std::to_string(integer)), integer);
    EXPECT_EQ(parse_cursor(std::to_string(static_cast<uint64_t>(integer))), static_cast<uint64_t>(integer));
    const long double number = static_cast<long double>(integer) / 1024;
    const auto read = parse_float(printed(number));
    ASSERT_TRUE(read.has_value());
    EXPECT_LE(std::fabs(*read - number), 1e-16L + std::fabs(number) * LDBL_EPSILON) << printed(number);
  }
}

TEST(NumbersDeathTest, OnlyFiniteOnesArePrinted) {
  EXPECT_DEATH(printed(std::numeric_limits<long double>::infinity()), "isfinite");
}

}  // namespace
}  // namespace server::resp
