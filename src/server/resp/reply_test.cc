#include "server/resp/reply.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>

namespace server::resp {
namespace {

// What the call writes in both protocols.
template <class Call>
void expect_written(std::string_view resp2, std::string_view resp3, Call call) {
  for (const Protocol protocol : {Protocol::kResp2, Protocol::kResp3}) {
    const std::string_view expected = protocol == Protocol::kResp2 ? resp2 : resp3;
    std::array<char, 256> buffer;
    ReplyWriter reply(buffer, protocol);
    call(reply);
    EXPECT_EQ(reply.view(), expected);
    EXPECT_FALSE(reply.is_full());
    // It writes all or nothing, however little room there is.
    for (size_t room = 0; room <= expected.size(); ++room) {
      std::string small(room, '!');
      ReplyWriter bounded(small, protocol);
      call(bounded);
      EXPECT_EQ(bounded.view(), room < expected.size() ? "" : expected);
      EXPECT_EQ(bounded.is_full(), room < expected.size());
    }
  }
}
template <class Call>
void expect_written(std::string_view both, Call call) {
  expect_written(both, both, call);
}

TEST(Reply, Lines) {
  expect_written("+OK\r\n", [](ReplyWriter& reply) { reply.simple("OK"); });
  expect_written("+\r\n", [](ReplyWriter& reply) { reply.simple(""); });
  expect_written("-ERR syntax error\r\n", [](ReplyWriter& reply) { reply.error("ERR syntax error"); });
  expect_written("-ERR a  b c\r\n", [](ReplyWriter& reply) { reply.error("ERR a\r\nb\nc"); });
  expect_written("", [](ReplyWriter& reply) { reply.error(""); });
}

TEST(Reply, Integers) {
  expect_written(":0\r\n", [](ReplyWriter& reply) { reply.integer(0); });
  expect_written(":-9223372036854775808\r\n",
                 [](ReplyWriter& reply) { reply.integer(std::numeric_limits<int64_t>::min()); });
}

TEST(Reply, BulkStrings) {
  expect_written("$5\r\nhello\r\n", [](ReplyWriter& reply) { reply.bulk("hello"); });
  expect_written("$0\r\n\r\n", [](ReplyWriter& reply) { reply.bulk(""); });
  expect_written(std::string_view("$3\r\n\r\0\n\r\n", 9),
                 [](ReplyWriter& reply) { reply.bulk(std::string_view("\r\0\n", 3)); });
  expect_written("$4294967296\r\n", [](ReplyWriter& reply) { reply.bulk_header(uint64_t{1} << 32); });
}

TEST(Reply, NothingThere) {
  expect_written("$-1\r\n", "_\r\n", [](ReplyWriter& reply) { reply.null(); });
  expect_written("*-1\r\n", "_\r\n", [](ReplyWriter& reply) { reply.null_array(); });
}

TEST(Reply, Aggregates) {
  expect_written("*0\r\n", [](ReplyWriter& reply) { reply.array(0); });
  expect_written("*1048576\r\n", [](ReplyWriter& reply) { reply.array(1048576); });
  expect_written("*6\r\n", "%3\r\n", [](ReplyWriter& reply) { reply.map(3); });
  expect_written("*3\r\n", "~3\r\n", [](ReplyWriter& reply) { reply.set(3); });
}

TEST(Reply, NothingFollowsWhatDidNotFit) {
  std::array<char, 12> buffer;
  ReplyWriter reply(buffer, Protocol::kResp2);
  reply.array(2);
  const size_t mark = reply.size();
  reply.bulk("too long for it");
  EXPECT_TRUE(reply.is_full());
  reply.integer(1);
  EXPECT_EQ(reply.view(), "*2\r\n");
  reply.rewind(mark);
  EXPECT_FALSE(reply.is_full());
  reply.integer(1);
  EXPECT_EQ(reply.view(), "*2\r\n:1\r\n");
  reply.rewind(0);
  EXPECT_EQ(reply.view(), "");
}

TEST(ReplyDeathTest, WrongUse) {
  std::array<char, 64> buffer;
  ReplyWriter reply(buffer, Protocol::kResp3);
  EXPECT_DEATH(reply.rewind(1), "size <= size_");
}

}  // namespace
}  // namespace server::resp
