#include "server/resp/request.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "server/resp/test_stream.h"

namespace server::resp {
namespace {

using Words = std::vector<std::string>;

std::string array_of(const Words& words) {
  std::string text = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) text += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  return text;
}

Event request(const Words& words) { return {.outcome = Parsed::kRequest, .arguments = words}; }
Event nothing() { return {.outcome = Parsed::kNothing}; }
Event error(const std::string& text) {
  return {.outcome = Parsed::kError, .error = "ERR Protocol error: " + text};
}

// The result of parsing the stream, however it is split: at once, in two pieces at every place (of long ones
// at some), byte for byte.
std::vector<Event> parse(const std::string& stream, const RequestLimits& limits = {}) {
  TestStream whole(limits);
  whole.receive(stream);
  const size_t step = stream.size() < 2000 ? 1 : stream.size() / 100;
  for (size_t at = 0; at <= stream.size(); at += step) {
    TestStream halves(limits);
    halves.receive(std::string_view(stream).substr(0, at));
    halves.receive(std::string_view(stream).substr(at));
    EXPECT_EQ(halves.events(), whole.events()) << stream.substr(0, 200) << " split at " << at;
  }
  if (stream.size() < 2000) {
    TestStream bytes(limits);
    for (const char& c : stream) bytes.receive({&c, 1});
    EXPECT_EQ(bytes.events(), whole.events()) << stream;
  }
  return whole.events();
}

using Events = std::vector<Event>;

TEST(Request, Arrays) {
  EXPECT_EQ(parse("*1\r\n$4\r\nPING\r\n"), Events{request({"PING"})});
  EXPECT_EQ(parse("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n"), Events{request({"SET", "k", ""})});
  const std::string binary("\r\n\0$1*\xff", 7);
  EXPECT_EQ(parse(array_of({"SET", binary, "v"})), Events{request({"SET", binary, "v"})});
}

TEST(Request, ManyAfterEachOther) {
  const std::string set = array_of({"SET", "a", "1"}), get = array_of({"GET", "a"});
  EXPECT_EQ(parse(set + get + "\r\nPING\r\n*0\r\n" + get),
            (Events{request({"SET", "a", "1"}), request({"GET", "a"}), nothing(), request({"PING"}),
                    nothing(), request({"GET", "a"})}));
}

TEST(Request, WhatIsAnsweredWithNothing) {
  for (const char* text : {"\r\n", "\n", "   \r\n", "\t\n", "*0\r\n", "*-1\r\n", "*-9223372036854775808\r\n"})
    EXPECT_EQ(parse(text), Events{nothing()}) << text;
}

TEST(Request, InlineCommands) {
  EXPECT_EQ(parse("PING\r\n"), Events{request({"PING"})});
  EXPECT_EQ(parse("get k\n"), Events{request({"get", "k"})});
  EXPECT_EQ(parse("  SET  k\t\"a b\\x41\\n\"  \r\n"), Events{request({"SET", "k", "a bA\n"})});
  const std::string longer = "a value that is longer than a short one";
  EXPECT_EQ(parse("SET k \"" + longer + "\" '" + longer + "'\r\n"),
            Events{request({"SET", "k", longer, longer})});
  EXPECT_EQ(parse("SET k ''\r\n"), Events{request({"SET", "k", ""})});
  EXPECT_EQ(parse("$3\r\nGET\r\n"), (Events{request({"$3"}), request({"GET"})}));
  EXPECT_EQ(parse("a\rb\r\n"), Events{request({"a", "b"})});
}

TEST(Request, UnbalancedQuotesEndTheConnection) {
  for (const char* text :
       {"GET \"a\r\n", "GET 'a\r\nPING\r\n", "GET \"a\"b\r\n", "GET 'a'b\n", "GET \"a\\\r\n"})
    EXPECT_EQ(parse(text), Events{error("unbalanced quotes in request")}) << text;
}

TEST(Request, CountsOfArguments) {
  for (const char* text : {"*\r\n", "*x\r\n", "*+1\r\n", "*01\r\n", "* 1\r\n", "*1 \r\n", "*-0\r\n",
                           "*--1\r\n", "*9223372036854775808\r\n", "*1048577\r\n", "*1x\r\n", "**1\r\n"})
    EXPECT_EQ(parse(text), Events{error("invalid multibulk length")}) << text;
  EXPECT_EQ(parse("*1048576\r\n"), Events{});
  EXPECT_EQ(parse("*2\r\n$1\r\na\r\n$1\r\nb\r\n", {.argument_count_max = 1}),
            Events{error("invalid multibulk length")});
}

TEST(Request, LengthsOfArguments) {
  for (const char* text :
       {"$\r\n", "$x\r\n", "$-1\r\n", "$+1\r\n", "$01\r\n", "$ 1\r\n", "$536870913\r\n",
        "$9223372036854775807\r\n", "$9223372036854775808\r\n", "$99999999999999999999999999\r\n"})
    EXPECT_EQ(parse("*1\r\n" + std::string(text)), Events{error("invalid bulk length")}) << text;
  EXPECT_EQ(parse("*1\r\n$536870912\r\n"), Events{});
  EXPECT_EQ(parse(array_of({"abc"}), {.bulk_bytes_max = 3}), Events{request({"abc"})});
  EXPECT_EQ(parse(array_of({"abcd"}), {.bulk_bytes_max = 3}), Events{error("invalid bulk length")});
}

TEST(Request, OnlyBulkStringsInArrays) {
  EXPECT_EQ(parse("*1\r\n*1\r\n$4\r\nPING\r\n"), Events{error("expected '$', got '*'")});
  EXPECT_EQ(parse("*1\r\n:1\r\n"), Events{error("expected '$', got ':'")});
  EXPECT_EQ(parse("*2\r\n$3\r\nGET\r\nk\r\n"), Events{error("expected '$', got 'k'")});
  EXPECT_EQ(parse("*1\r\n\r\n"), Events{error("expected '$', got ' '")});
  EXPECT_EQ(parse("*1\r\n\n\r\n"), Events{error("expected '$', got ' '")});
  EXPECT_EQ(parse("*1\r\n\xff\r\n"), Events{error("expected '$', got '\xff'")});
}

TEST(Request, WhatFollowsALengthOrAStringIsPassedOver) {
  EXPECT_EQ(parse("*1\rx$4\ryPINGxy"), Events{request({"PING"})});
}

TEST(Request, LinesAreBounded) {
  const std::string most(kMaxLineBytes, '1');
  EXPECT_EQ(parse("*" + most), Events{error("too big mbulk count string")});
  EXPECT_EQ(parse("*" + most + "\r\n"), Events{error("too big mbulk count string")});
  EXPECT_EQ(parse("*" + most.substr(1)), Events{});
  EXPECT_EQ(parse("*1\r\n$" + most), Events{error("too big bulk count string")});
  EXPECT_EQ(parse("*1\r\n$" + most.substr(1)), Events{});
  EXPECT_EQ(parse("*1\r\n" + most.substr(1) + "\r\n"), Events{error("expected '$', got '1'")});
  EXPECT_EQ(parse("1" + most + "\r\n"), Events{error("too big inline request")});
  EXPECT_EQ(parse(most + "\n"), Events{request({most})});
  EXPECT_EQ(parse(most), Events{});
}

TEST(Request, WhoHasGivenNoPasswordSaysLittle) {
  const RequestLimits stranger = {.is_authenticated = false};
  EXPECT_EQ(parse("*11\r\n", stranger), Events{error("unauthenticated multibulk length")});
  EXPECT_EQ(parse("*1\r\n$16385\r\n", stranger), Events{error("unauthenticated bulk length")});
  const Words ten(10, "a");
  EXPECT_EQ(parse(array_of(ten), stranger), Events{request(ten)});
  EXPECT_EQ(parse(array_of({std::string(16384, 'a')}), stranger), Events{request({std::string(16384, 'a')})});
  EXPECT_EQ(parse("*1048577\r\n", stranger), Events{error("invalid multibulk length")});
}

TEST(Request, TheInputOfARequestIsBounded) {
  const std::string text = array_of({"SET", "k", "value"});
  EXPECT_EQ(parse(text, {.input_bytes_max = text.size()}), Events{request({"SET", "k", "value"})});
  for (size_t bytes = 1; bytes < text.size(); ++bytes)
    EXPECT_EQ(parse(text, {.input_bytes_max = bytes}), Events{error("too big request")}) << bytes;
  EXPECT_EQ(parse("PING\r\n", {.input_bytes_max = 6}), Events{request({"PING"})});
  EXPECT_EQ(parse("PING\r\n", {.input_bytes_max = 5}), Events{error("too big inline request")});
  EXPECT_EQ(parse("a b c\r\n", {.argument_count_max = 2}), Events{error("too big inline request")});
}

TEST(Request, MoreArgumentsThanHaveAPlaceWithoutAllocation) {
  for (size_t count : {15u, 16u, 17u, 33u, 3000u}) {
    Words words;
    for (size_t i = 0; i < count; ++i) words.push_back("argument" + std::to_string(i));
    const std::string text = array_of(words);
    EXPECT_EQ(parse(text + text + array_of({"GET", "k"})),
              (Events{request(words), request(words), request({"GET", "k"})}))
        << count;
  }
}

TEST(Request, LargeArgumentsStandAnywhere) {
  const std::string large(20, 'x');
  const RequestLimits limits = {.large_bytes = 20};
  for (const Words& words : {Words{"SET", "k", large}, Words{"SET", "k", large, "EX", "10"},
                             Words{"MSET", "a", large, "b", large + "y", "c", "z"}, Words{large},
                             Words{"GET", large}, Words{large, large, large}}) {
    const std::string text = array_of(words);
    EXPECT_EQ(parse(text, limits), Events{request(words)});
    EXPECT_EQ(parse(text + "PING\r\n" + text, limits),
              (Events{request(words), request({"PING"}), request(words)}));
  }
  const Words many(40, large);
  EXPECT_EQ(parse(array_of(many), limits), Events{request(many)});
  EXPECT_EQ(parse(array_of({"SET", "k", large}) + "*1\r\nx\r\n", limits),
            (Events{request({"SET", "k", large}), error("expected '$', got 'x'")}));
  EXPECT_EQ(parse("*2\r\n$20\r\n" + large + "\r\n$y\r\n", limits), Events{error("invalid bulk length")});
}

TEST(Request, OnlyLargeArgumentsAreTaken) {
  for (const size_t bytes : {19u, 20u, 21u}) {
    TestStream stream({.large_bytes = 20});
    stream.receive(array_of({"SET", "k", std::string(bytes, 'x')}));
    EXPECT_EQ(stream.events().size(), 1u);
    EXPECT_EQ(stream.large_count(), bytes >= 20 ? 1u : 0u) << bytes;
    EXPECT_TRUE(stream.is_between_requests());
  }
}

TEST(Request, LargeArgumentsTakeNoInput) {
  const std::string large(1000, 'x');
  const Words words = {"SET", "k", large, "EX", "10"};
  const size_t input_bytes = array_of(words).size() - large.size() - 2;
  EXPECT_EQ(parse(array_of(words), {.large_bytes = 1000, .input_bytes_max = input_bytes}),
            Events{request(words)});
  EXPECT_EQ(parse(array_of(words), {.large_bytes = 1000, .input_bytes_max = input_bytes - 1}),
            Events{error("too big request")});
}

TEST(Request, WhatAConnectionKnowsOfALargeArgument) {
  RequestParser parser;
  const RequestLimits limits = {.large_bytes = 1000};
  std::string input = "*5\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000\r\nxxx";
  ASSERT_EQ(parser.parse(input, limits), Parsed::kLarge);
  EXPECT_EQ(parser.large_bytes(), 1000u);
  EXPECT_EQ(parser.bytes(), input.size() - 3);
  ASSERT_EQ(parser.argument_count(), 2u);
  EXPECT_EQ(parser.argument(0), "SET");
  EXPECT_EQ(parser.argument(1), "k");

  const std::string value(1000, 'x');
  input.resize(parser.bytes());
  parser.take(value);
  ASSERT_EQ(parser.parse(input, limits), Parsed::kMore);
  input += "$2\r\nEX\r\n$2\r\n10\r\nPING";
  ASSERT_EQ(parser.parse(input, limits), Parsed::kRequest);
  ASSERT_EQ(parser.arguments().size(), 5u);
  EXPECT_EQ(parser.arguments()[2].data(), value.data());
  EXPECT_EQ(parser.arguments()[4], "10");
  EXPECT_EQ(parser.bytes(), input.size() - 4);
}

TEST(Request, WhatIsRefusedNeedNotBeKept) {
  RequestParser parser;
  const std::string input = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000\r\n";
  ASSERT_EQ(parser.parse(input, {.large_bytes = 1000}), Parsed::kLarge);
  parser.take({});
  ASSERT_EQ(parser.parse(input, {.large_bytes = 1000}), Parsed::kRequest);
  ASSERT_EQ(parser.arguments().size(), 3u);
  EXPECT_EQ(parser.arguments()[2], "");
}

TEST(Request, ArgumentsAreNotCopied) {
  RequestParser parser;
  const std::string input = array_of({"SET", "k", "value"});
  ASSERT_EQ(parser.parse(input, {}), Parsed::kRequest);
  for (const std::string_view argument : parser.arguments()) {
    EXPECT_GE(argument.data(), input.data());
    EXPECT_LE(argument.data() + argument.size(), input.data() + input.size());
  }
}

TEST(Request, MemoryOfManyArgumentsIsGivenBack) {
  RequestParser parser;
  const std::string few = array_of({"GET", "k"}), many = array_of(Words(100000, "a"));
  const std::string line = std::string(50000, 'a') + "\n";
  ASSERT_EQ(parser.parse(few, {}), Parsed::kRequest);
  EXPECT_LT(parser.memory_bytes(), 100u);
  for (const std::string& request : {many, line}) {
    ASSERT_EQ(parser.parse(request, {}), Parsed::kRequest);
    EXPECT_GE(parser.memory_bytes(), 50000u);
    ASSERT_EQ(parser.parse("", {}), Parsed::kMore);
    EXPECT_LT(parser.memory_bytes(), 100u);
  }
  // What was only announced takes no memory.
  ASSERT_EQ(parser.parse("*1000000\r\n$3\r\nGET\r\n$100000\r\n", {}), Parsed::kMore);
  EXPECT_LT(parser.memory_bytes(), 100u);
}

TEST(Request, SaysHowMuchIsMissing) {
  RequestParser parser;
  EXPECT_EQ(parser.parse("", {}), Parsed::kMore);
  EXPECT_EQ(parser.missing_bytes(), 1u);
  EXPECT_EQ(parser.parse("*2", {}), Parsed::kMore);
  EXPECT_EQ(parser.missing_bytes(), 2u);
  EXPECT_EQ(parser.parse("*2\r", {}), Parsed::kMore);
  EXPECT_EQ(parser.missing_bytes(), 1u);
  EXPECT_EQ(parser.parse("*2\r\n$3\r\n", {}), Parsed::kMore);
  EXPECT_EQ(parser.missing_bytes(), 5u);
  EXPECT_EQ(parser.parse("*2\r\n$3\r\nGET\r\n$100000\r\nabc", {}), Parsed::kMore);
  EXPECT_EQ(parser.missing_bytes(), 100000u - 3 + 2);
}

TEST(RequestDeathTest, CallsOutOfOrder) {
  RequestParser parser;
  EXPECT_DEATH(parser.take("x"), "state_ == State::kLarge");
  ASSERT_EQ(parser.parse("*1\r\n$5\r\n", {.large_bytes = 5}), Parsed::kLarge);
  EXPECT_DEATH(parser.parse("*1\r\n$5\r\n", {}), "state_ != State::kLarge");
  EXPECT_DEATH(parser.take("123456"), "value.size");
  RequestParser failed;
  ASSERT_EQ(failed.parse("*x\r\n", {}), Parsed::kError);
  EXPECT_DEATH(failed.parse("PING\r\n", {}), "State::kFailed");
}

// Bytes that often look like a request: the result does not depend on how they are split.
TEST(Request, RandomBytes) {
  const Words kPieces = {"*",  "$",  "\r\n", "1", "2",  "3", "0",     "-1",
                         "\r", "\n", "PING", " ", "\"", "'", "\\x41", "abc"};
  std::mt19937_64 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string text = round % 2 == 0 ? "" : "*2\r\n$3\r\n";
    for (size_t count = random() % 20; count > 0; --count)
      text += random() % 8 == 0 ? std::string(1, static_cast<char>(random()))
                                : kPieces[random() % kPieces.size()];
    parse(text, {.argument_count_max = 100,
                 .bulk_bytes_max = 100,
                 .large_bytes = random() % 4 + 1,
                 .input_bytes_max = 30 + random() % 30});
  }
}

}  // namespace
}  // namespace server::resp
