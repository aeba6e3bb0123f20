#include "server/memcache/credentials.h"

#include <gtest/gtest.h>

#include <string>

namespace server::memcache {
namespace {

// What the input's beginning is, in one line.
std::string parse(std::string_view input) {
  Credentials credentials;
  const Parsed parsed = parse_credentials(input, credentials);
  const std::string consumed = std::to_string(parsed.consumed_bytes);
  switch (parsed.outcome) {
    case Outcome::kMore: return "more";
    case Outcome::kRefused:
      if (parsed.refusal.closes) return "closes";
      return std::string(parsed.refusal.text) + ", " + consumed + " and " +
             std::to_string(parsed.refusal.swallow_bytes);
    case Outcome::kCommand: break;
  }
  return std::string(credentials.user) + " with " + std::string(credentials.password) + ", " + consumed;
}

TEST(TextCredentials, ASetOfUserAndPassword) {
  EXPECT_EQ(parse("set foo 0 0 7\r\nfoo bar\r\nget x\r\n"), "foo with bar, 24");
  EXPECT_EQ(parse("set x y z 11\nfoo bar  z \r\n"), "foo with bar  z , 26");
  EXPECT_EQ(parse("set x y z 4\n bar\r\n"), " with bar, 18");
  const std::string whole = "set foo 0 0 7\r\nfoo bar\r\n";
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) EXPECT_EQ(parse(whole.substr(0, bytes)), "more");
}

TEST(TextCredentials, WhatIsNoneIsRefused) {
  EXPECT_EQ(parse("get foo\r\n"), "CLIENT_ERROR unauthenticated, 9 and 0");
  EXPECT_EQ(parse("get foo 0 0 7\r\nfoo bar\r\n"), "CLIENT_ERROR unauthenticated, 15 and 0");
  EXPECT_EQ(parse("\n"), "CLIENT_ERROR unauthenticated, 1 and 0");
  EXPECT_EQ(parse("set foo 0 0\r\n"), "CLIENT_ERROR unauthenticated, 13 and 0");
  EXPECT_EQ(parse("set foo 0 0 -1\r\n"), "CLIENT_ERROR unauthenticated, 16 and 0");
  EXPECT_EQ(parse("set foo 0 0 2\r\nhi\r\n"), "CLIENT_ERROR bad authentication token format, 19 and 0");
  EXPECT_EQ(parse("set foo 0 0 4\r\nfoo \r\n"), "CLIENT_ERROR bad authentication token format, 21 and 0");
  EXPECT_EQ(parse("set foo 0 0 0\r\n\r\n"), "CLIENT_ERROR bad authentication token format, 17 and 0");
  EXPECT_EQ(parse("set foo 0 0 7\r\nfoo bar.."), "CLIENT_ERROR bad command line termination, 24 and 0");
  EXPECT_EQ(parse("set foo 0 0 1025\r\n"), "CLIENT_ERROR bad authentication token format, 18 and 1027");
}

TEST(TextCredentials, ALineWithoutAnEndCloses) {
  EXPECT_EQ(parse(std::string(2048, 'x')), "more");
  EXPECT_EQ(parse(std::string(2049, 'x')), "closes");
  EXPECT_EQ(parse(std::string(2049, 'x') + "\n"), "closes");
}

TEST(Plain, HasUserAndPasswordBehindZeros) {
  using namespace std::literals;
  Credentials credentials;
  ASSERT_TRUE(parse_plain("\0alice\0secret"sv, credentials));
  EXPECT_EQ(credentials.user, "alice");
  EXPECT_EQ(credentials.password, "secret");
  ASSERT_TRUE(parse_plain("other\0alice\0"sv, credentials));
  EXPECT_EQ(credentials.user, "alice");
  EXPECT_EQ(credentials.password, "");
  for (const std::string_view wrong : {""sv, "alice"sv, "\0alice"sv, "\0\0secret"sv})
    EXPECT_FALSE(parse_plain(wrong, credentials));
}

}  // namespace
}  // namespace server::memcache
