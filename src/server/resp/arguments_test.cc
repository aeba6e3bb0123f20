#include "server/resp/arguments.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace server::resp {
namespace {

constexpr int64_t kNowMs = 1'000'000;
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
const std::string kMaxText = std::to_string(kMax);

using Words = std::vector<std::string_view>;

// A request that find_command has found.
const Command& command_for(const Words& request) {
  const auto command = find_command(request);
  EXPECT_TRUE(command.has_value()) << request[0];
  return **command;
}

SetRequest set(const Words& request) {
  const auto parsed = parse_set(command_for(request), request, kNowMs);
  EXPECT_TRUE(parsed.has_value());
  return parsed.value_or(SetRequest{});
}
Refusal refused_set(const Words& request) {
  const auto parsed = parse_set(command_for(request), request, kNowMs);
  EXPECT_FALSE(parsed.has_value());
  return parsed ? Refusal{Problem::kHttp} : parsed.error();
}

TEST(Arguments, SetWithoutOptions) {
  const SetRequest request = set({"SET", "k", "v"});
  EXPECT_EQ(request.key, "k");
  EXPECT_EQ(request.value, "v");
  EXPECT_EQ(request.expires_ms, 0);
  EXPECT_EQ(request.condition, Condition::kNone);
  EXPECT_FALSE(request.keeps_expiry);
  EXPECT_FALSE(request.returns_old);
}

TEST(Arguments, SetWithAnExpiry) {
  EXPECT_EQ(set({"SET", "k", "v", "EX", "10"}).expires_ms, kNowMs + 10'000);
  EXPECT_EQ(set({"SET", "k", "v", "px", "10"}).expires_ms, kNowMs + 10);
  EXPECT_EQ(set({"SET", "k", "v", "exat", "10"}).expires_ms, 10'000);
  EXPECT_EQ(set({"SET", "k", "v", "PXAT", "10"}).expires_ms, 10);
  EXPECT_EQ(set({"SET", "k", "v", "EX", "x", "EX", "20"}).expires_ms, kNowMs + 20'000) << "the last counts";
  EXPECT_EQ(set({"SET", "k", "v", "pxat", kMaxText}).expires_ms, kMax);
}

TEST(Arguments, SetWithConditions) {
  EXPECT_EQ(set({"SET", "k", "v", "NX"}).condition, Condition::kIfAbsent);
  EXPECT_EQ(set({"SET", "k", "v", "xx", "XX"}).condition, Condition::kIfPresent);
  EXPECT_TRUE(set({"SET", "k", "v", "GET"}).returns_old);
  EXPECT_TRUE(set({"SET", "k", "v", "keepttl"}).keeps_expiry);
  const SetRequest all = set({"SET", "k", "v", "get", "ex", "1", "nx"});
  EXPECT_TRUE(all.returns_old);
  EXPECT_EQ(all.condition, Condition::kIfAbsent);
  EXPECT_EQ(all.expires_ms, kNowMs + 1000);
  EXPECT_TRUE(set({"SET", "k", "v", "xx", "keepttl", "get"}).keeps_expiry);
}

TEST(Arguments, SetOptionsThatContradictEachOther) {
  for (const Words& request :
       {Words{"SET", "k", "v", "NX", "XX"}, Words{"SET", "k", "v", "XX", "NX"}, Words{"SET", "k", "v", "EX"},
        Words{"SET", "k", "v", "EX", "1", "PX", "1"}, Words{"SET", "k", "v", "PXAT", "1", "EXAT", "1"},
        Words{"SET", "k", "v", "EX", "1", "KEEPTTL"}, Words{"SET", "k", "v", "KEEPTTL", "EX", "1"},
        Words{"SET", "k", "v", "PERSIST"}, Words{"SET", "k", "v", ""}, Words{"SET", "k", "v", "10"},
        Words{"SET", "k", "v", "EX", "1", "EX"}, Words{"SET", "k", "v", "EX", "x", "foo"},
        Words{"SET", "k", "v", std::string_view("NX\0", 3)}})
    EXPECT_EQ(refused_set(request), Refusal{Problem::kSyntax}) << request.back();
}

TEST(Arguments, ExpiriesThatAreNone) {
  const Refusal invalid = {Problem::kInvalidExpire, "set"};
  for (const char* option : {"EX", "PX", "EXAT", "PXAT"}) {
    EXPECT_EQ(refused_set({"SET", "k", "v", option, "0"}), invalid);
    EXPECT_EQ(refused_set({"SET", "k", "v", option, "-1"}), invalid);
    EXPECT_EQ(refused_set({"SET", "k", "v", option, "1.5"}), Refusal{Problem::kNotAnInteger});
    EXPECT_EQ(refused_set({"SET", "k", "v", option, ""}), Refusal{Problem::kNotAnInteger});
    EXPECT_EQ(refused_set({"SET", "k", "v", option, "9223372036854775808"}), Refusal{Problem::kNotAnInteger});
  }
  EXPECT_EQ(refused_set({"SET", "k", "v", "EX", kMaxText}), invalid);
  EXPECT_EQ(refused_set({"SET", "k", "v", "EX", "9223372036854776"}), invalid);
  EXPECT_EQ(refused_set({"SET", "k", "v", "EX", "9223372036854775"}), invalid) << "with the clock's time";
  EXPECT_EQ(set({"SET", "k", "v", "EXAT", "9223372036854775"}).expires_ms, 9223372036854775000);
  EXPECT_EQ(refused_set({"SET", "k", "v", "PX", kMaxText}), invalid);
  const std::string just_fits = std::to_string(kMax - kNowMs);
  EXPECT_EQ(set({"SET", "k", "v", "PX", just_fits}).expires_ms, kMax);
}

TEST(Arguments, OtherSets) {
  const SetRequest setnx = set({"SETNX", "k", "v"});
  EXPECT_EQ(setnx.condition, Condition::kIfAbsent);
  EXPECT_EQ(setnx.value, "v");
  const SetRequest getset = set({"GETSET", "k", "v"});
  EXPECT_TRUE(getset.returns_old);
  EXPECT_EQ(getset.value, "v");
  const SetRequest setex = set({"SETEX", "k", "10", "v"});
  EXPECT_EQ(setex.value, "v");
  EXPECT_EQ(setex.expires_ms, kNowMs + 10'000);
  EXPECT_EQ(set({"PSETEX", "k", "10", "v"}).expires_ms, kNowMs + 10);
  EXPECT_EQ(refused_set({"SETEX", "k", "0", "v"}), (Refusal{Problem::kInvalidExpire, "setex"}));
  EXPECT_EQ(refused_set({"PSETEX", "k", "-5", "v"}), (Refusal{Problem::kInvalidExpire, "psetex"}));
  EXPECT_EQ(refused_set({"PSETEX", "k", kMaxText, "v"}), (Refusal{Problem::kInvalidExpire, "psetex"}));
  EXPECT_EQ(refused_set({"SETEX", "k", "v", "10"}), Refusal{Problem::kNotAnInteger});
}

Accepted<GetexRequest> getex(const Words& request) {
  return parse_getex(command_for(request), request, kNowMs);
}

TEST(Arguments, Getex) {
  EXPECT_EQ(getex({"GETEX", "k"})->expires_ms, 0);
  EXPECT_FALSE(getex({"GETEX", "k"})->persists);
  EXPECT_TRUE(getex({"GETEX", "k", "PERSIST"})->persists);
  EXPECT_TRUE(getex({"GETEX", "k", "PERSIST", "persist"})->persists);
  EXPECT_EQ(getex({"GETEX", "k", "EX", "1"})->expires_ms, kNowMs + 1000);
  EXPECT_EQ(getex({"GETEX", "k", "PXAT", "1"})->expires_ms, 1);
  for (const Words& request :
       {Words{"GETEX", "k", "NX"}, Words{"GETEX", "k", "GET"}, Words{"GETEX", "k", "KEEPTTL"},
        Words{"GETEX", "k", "EX"}, Words{"GETEX", "k", "PERSIST", "EX", "1"},
        Words{"GETEX", "k", "EX", "1", "PERSIST"}, Words{"GETEX", "k", "EX", "1", "PX", "1"}})
    EXPECT_EQ(getex(request).error(), Refusal{Problem::kSyntax});
  EXPECT_EQ(getex({"GETEX", "k", "EX", "0"}).error(), (Refusal{Problem::kInvalidExpire, "getex"}));
  EXPECT_EQ(getex({"GETEX", "k", "EX", "x"}).error(), Refusal{Problem::kNotAnInteger});
}

Accepted<ExpireRequest> expire(const Words& request) {
  return parse_expire(command_for(request), request, kNowMs);
}

TEST(Arguments, ExpireTimes) {
  EXPECT_EQ(expire({"EXPIRE", "k", "10"})->expires_ms, kNowMs + 10'000);
  EXPECT_EQ(expire({"PEXPIRE", "k", "10"})->expires_ms, kNowMs + 10);
  EXPECT_EQ(expire({"EXPIREAT", "k", "10"})->expires_ms, 10'000);
  EXPECT_EQ(expire({"PEXPIREAT", "k", "10"})->expires_ms, 10);
  EXPECT_EQ(expire({"EXPIRE", "k", "-10"})->expires_ms, kNowMs - 10'000);
  EXPECT_EQ(expire({"PEXPIREAT", "k", "-9223372036854775808"})->expires_ms,
            std::numeric_limits<int64_t>::min());
  EXPECT_EQ(expire({"EXPIRE", "k", "0"})->expires_ms, kNowMs);
  EXPECT_EQ(expire({"EXPIRE", "k", "x"}).error(), Refusal{Problem::kNotAnInteger});
  EXPECT_EQ(expire({"EXPIRE", "k", kMaxText}).error(), (Refusal{Problem::kInvalidExpire, "expire"}));
  EXPECT_EQ(expire({"EXPIREAT", "k", "-9223372036854776"}).error(),
            (Refusal{Problem::kInvalidExpire, "expireat"}));
  EXPECT_EQ(expire({"EXPIREAT", "k", "-9223372036854775"})->expires_ms, -9223372036854775000);
  EXPECT_EQ(expire({"PEXPIRE", "k", kMaxText}).error(), (Refusal{Problem::kInvalidExpire, "pexpire"}));
  EXPECT_EQ(expire({"PEXPIREAT", "k", kMaxText})->expires_ms, kMax);
}

TEST(Arguments, ExpireConditions) {
  const auto none = expire({"EXPIRE", "k", "1"});
  EXPECT_FALSE(none->if_never || none->if_some || none->if_later || none->if_earlier);
  EXPECT_TRUE(expire({"EXPIRE", "k", "1", "nx"})->if_never);
  EXPECT_TRUE(expire({"EXPIRE", "k", "1", "XX", "GT"})->if_later);
  EXPECT_TRUE(expire({"EXPIRE", "k", "1", "XX", "GT"})->if_some);
  EXPECT_TRUE(expire({"EXPIRE", "k", "1", "lt"})->if_earlier);
  EXPECT_EQ(expire({"EXPIRE", "k", "1", "yx"}).error(), (Refusal{Problem::kUnsupportedOption, "yx"}));
  for (const char* other : {"XX", "GT", "LT"}) {
    EXPECT_EQ(expire({"EXPIRE", "k", "1", "NX", other}).error(), Refusal{Problem::kNxWithOthers});
    EXPECT_EQ(expire({"EXPIRE", "k", "x", other, "nx"}).error(), Refusal{Problem::kNxWithOthers});
  }
  EXPECT_EQ(expire({"EXPIRE", "k", "1", "GT", "LT"}).error(), Refusal{Problem::kGtWithLt});
  EXPECT_EQ(expire({"EXPIRE", "k", "1", "NX", "GT", "LT"}).error(), Refusal{Problem::kNxWithOthers});
}

TEST(Arguments, Pairs) {
  const Words mset = {"MSET", "a", "1", "b", "2"};
  const auto pairs = parse_pairs(command_for(mset), mset);
  ASSERT_TRUE(pairs.has_value());
  ASSERT_EQ(pairs->size(), 4u);
  EXPECT_EQ((*pairs)[0], "a");
  EXPECT_EQ((*pairs)[3], "2");
  const Words msetnx = {"MSETNX", "a", "1", "b"};
  EXPECT_EQ(parse_pairs(command_for(msetnx), msetnx).error(), (Refusal{Problem::kWrongArity, "msetnx"}));
}

Accepted<IncrementRequest> increment(const Words& request) {
  return parse_increment(command_for(request), request);
}

TEST(Arguments, Increments) {
  EXPECT_EQ(increment({"INCR", "k"})->delta, 1);
  EXPECT_EQ(increment({"DECR", "k"})->delta, -1);
  EXPECT_EQ(increment({"INCRBY", "k", "-5"})->delta, -5);
  EXPECT_EQ(increment({"DECRBY", "k", "5"})->delta, -5);
  EXPECT_EQ(increment({"DECRBY", "k", "5"})->key, "k");
  EXPECT_EQ(increment({"INCRBY", "k", "-9223372036854775808"})->delta, std::numeric_limits<int64_t>::min());
  EXPECT_EQ(increment({"DECRBY", "k", "-9223372036854775808"}).error(), Refusal{Problem::kDecrementOverflow});
  EXPECT_EQ(increment({"DECRBY", "k", kMaxText})->delta, -kMax);
  for (const char* text : {"", "x", "1.0", "+1", " 1", "01"}) {
    EXPECT_EQ(increment({"INCRBY", "k", text}).error(), Refusal{Problem::kNotAnInteger}) << text;
    EXPECT_EQ(increment({"DECRBY", "k", text}).error(), Refusal{Problem::kNotAnInteger}) << text;
  }
  EXPECT_EQ(parse_float_argument("1.5"), 1.5L);
  EXPECT_EQ(parse_float_argument("x").error(), Refusal{Problem::kNotAFloat});
}

std::string part(std::string_view value, std::string_view first, std::string_view last) {
  const Words request = {"GETRANGE", "k", first, last};
  const auto parsed = parse_getrange(request);
  if (!parsed) return "refused";
  EXPECT_EQ(parsed->key, "k");
  const ByteRange range = bytes_in_range(*parsed, value.size());
  EXPECT_LE(range.offset, value.size());
  EXPECT_LE(range.bytes, value.size() - range.offset);
  return std::string(value.substr(range.offset, range.bytes));
}

TEST(Arguments, PartsOfValues) {
  EXPECT_EQ(part("hello", "0", "-1"), "hello");
  EXPECT_EQ(part("hello", "1", "3"), "ell");
  EXPECT_EQ(part("hello", "-3", "-2"), "ll");
  EXPECT_EQ(part("hello", "4", "4"), "o");
  EXPECT_EQ(part("hello", "4", "100"), "o");
  EXPECT_EQ(part("hello", "5", "100"), "");
  EXPECT_EQ(part("hello", "3", "1"), "");
  EXPECT_EQ(part("hello", "-1", "-3"), "");
  EXPECT_EQ(part("hello", "-100", "1"), "he");
  EXPECT_EQ(part("hello", "0", "-100"), "h") << "as Redis";
  EXPECT_EQ(part("hello", "-90", "-100"), "");
  EXPECT_EQ(part("hello", "-100", "-90"), "h");
  EXPECT_EQ(part("hello", "-9223372036854775808", kMaxText), "hello");
  EXPECT_EQ(part("hello", kMaxText, "-9223372036854775808"), "");
  EXPECT_EQ(part("", "0", "-1"), "");
  EXPECT_EQ(part("", "0", "0"), "");
  EXPECT_EQ(part("hello", "x", "1"), "refused");
  EXPECT_EQ(part("hello", "1", ""), "refused");
}

TEST(Arguments, Setrange) {
  const Words request = {"SETRANGE", "k", "7", "abc"};
  const auto parsed = parse_setrange(request);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->key, "k");
  EXPECT_EQ(parsed->offset, 7u);
  EXPECT_EQ(parsed->bytes, "abc");
  EXPECT_EQ(parse_setrange(Words{"SETRANGE", "k", "-1", "abc"}).error(), Refusal{Problem::kOffsetOutOfRange});
  EXPECT_EQ(parse_setrange(Words{"SETRANGE", "k", "x", "abc"}).error(), Refusal{Problem::kNotAnInteger});
}

Accepted<ScanRequest> scan(const Words& request) { return parse_scan(request); }

TEST(Arguments, Scan) {
  const auto plain = scan({"SCAN", "0"});
  EXPECT_EQ(plain->cursor, 0u);
  EXPECT_EQ(plain->pattern, "*");
  EXPECT_EQ(plain->count, 10u);
  EXPECT_EQ(plain->type, "");
  const auto all = scan({"SCAN", "18446744073709551615", "MATCH", "a*", "count", "7", "TYPE", "string"});
  EXPECT_EQ(all->cursor, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(all->pattern, "a*");
  EXPECT_EQ(all->count, 7u);
  EXPECT_EQ(all->type, "string");
  EXPECT_EQ(scan({"SCAN", "0", "count", "7", "count", "8"})->count, 8u);
  for (const char* cursor : {"x", " 0", "0x", "18446744073709551616"})
    EXPECT_EQ(scan({"SCAN", cursor, "foo"}).error(), Refusal{Problem::kInvalidCursor}) << cursor;
  for (const Words& request :
       {Words{"SCAN", "0", "MATCH"}, Words{"SCAN", "0", "COUNT"}, Words{"SCAN", "0", "x", "y"},
        Words{"SCAN", "0", "COUNT", "0"}, Words{"SCAN", "0", "COUNT", "-1"}})
    EXPECT_EQ(scan(request).error(), Refusal{Problem::kSyntax}) << request.back();
  EXPECT_EQ(scan({"SCAN", "0", "COUNT", "x"}).error(), Refusal{Problem::kNotAnInteger});
  const std::string longest(kMaxPatternBytes, 'a'), longer = longest + 'a';
  EXPECT_EQ(scan({"SCAN", "0", "MATCH", longest})->pattern, longest);
  EXPECT_EQ(scan({"SCAN", "0", "MATCH", longer}).error(), Refusal{Problem::kPatternTooLong});
}

TEST(ArgumentsDeathTest, OfAnotherCommand) {
  const Words request = {"GET", "k", "v"};
  EXPECT_DEATH((void)parse_set(command_of(CommandId::kGet), request, kNowMs), "kSet");
  EXPECT_DEATH((void)parse_expire(command_of(CommandId::kTtl), Words{"TTL", "k", "1"}, kNowMs), "kPexpireat");
}

}  // namespace
}  // namespace server::resp
