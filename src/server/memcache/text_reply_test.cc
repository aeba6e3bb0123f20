#include "server/memcache/text_reply.h"

#include <gtest/gtest.h>

#include <string>

#include "server/memcache/messages.h"
#include "server/memcache/test_reply.h"

namespace server::memcache {
namespace {

std::string line(Verb verb, Result result) { return std::string(line_of({.verb = verb}, result)); }

TEST(TextReply, LinesOfResults) {
  for (const Verb verb :
       {Verb::kSet, Verb::kAdd, Verb::kReplace, Verb::kAppend, Verb::kPrepend, Verb::kCas}) {
    EXPECT_EQ(line(verb, Result::kDone), "STORED");
    EXPECT_EQ(line(verb, Result::kNotStored), "NOT_STORED");
    EXPECT_EQ(line(verb, Result::kBadData), "CLIENT_ERROR bad data chunk");
    EXPECT_EQ(line(verb, Result::kTooLarge), "SERVER_ERROR object too large for cache");
    EXPECT_EQ(line(verb, Result::kNoMemory), "SERVER_ERROR out of memory storing object");
  }
  EXPECT_EQ(line(Verb::kIncr, Result::kNoMemory), "SERVER_ERROR out of memory");
  EXPECT_EQ(line(Verb::kCas, Result::kExists), "EXISTS");
  EXPECT_EQ(line(Verb::kCas, Result::kNotFound), "NOT_FOUND");
  EXPECT_EQ(line(Verb::kDelete, Result::kDone), "DELETED");
  EXPECT_EQ(line(Verb::kDelete, Result::kNotFound), "NOT_FOUND");
  EXPECT_EQ(line(Verb::kTouch, Result::kDone), "TOUCHED");
  EXPECT_EQ(line(Verb::kFlushAll, Result::kDone), "OK");
  EXPECT_EQ(line(Verb::kVerbosity, Result::kDone), "OK");
  EXPECT_EQ(line(Verb::kIncr, Result::kNotNumber),
            "CLIENT_ERROR cannot increment or decrement non-numeric value");
  EXPECT_EQ(line_of({.protocol = Protocol::kMeta, .verb = Verb::kSet}, Result::kBadData),
            "CLIENT_ERROR bad data chunk");
}

TEST(TextReply, Values) {
  auto value = [](std::string_view key, uint32_t flags, uint64_t bytes, std::optional<uint64_t> cas) {
    return written([&](ReplyBuffer& reply) { write_value_line(reply, key, flags, bytes, cas); });
  };
  EXPECT_EQ(value("key", 0, 0, std::nullopt), "VALUE key 0 0\r\n");
  EXPECT_EQ(value("key", 7, 1048576, 0), "VALUE key 7 1048576 0\r\n");
  const std::string key(250, 'k');
  EXPECT_EQ(value(key, UINT32_MAX, UINT32_MAX, UINT64_MAX),
            "VALUE " + key + " 4294967295 4294967295 18446744073709551615\r\n");
}

TEST(TextReply, Others) {
  EXPECT_EQ(written([](ReplyBuffer& reply) { write_line(reply, messages::kEnd); }), "END\r\n");
  EXPECT_EQ(written([](ReplyBuffer& reply) { write_line(reply, messages::kDeleteUsage); }),
            "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n");
  EXPECT_EQ(written([](ReplyBuffer& reply) { write_number(reply, UINT64_MAX); }), "18446744073709551615\r\n");
  EXPECT_EQ(written([](ReplyBuffer& reply) { write_version(reply, "1.6.18"); }), "VERSION 1.6.18\r\n");
  EXPECT_EQ(written([](ReplyBuffer& reply) { write_stat(reply, "pid", "12"); }), "STAT pid 12\r\n");
  EXPECT_EQ(written([](ReplyBuffer& reply) { write_stat(reply, "end", ""); }), "STAT end\r\n");
}

TEST(TextReply, StatsNeedNoMoreRoomThanTheySay) {
  char memory[kStatBytes + 4];
  ReplyBuffer reply{std::span(memory)};
  write_stat(reply, "ab", "cd");
  EXPECT_EQ(reply.room_bytes(), 0u);
}

}  // namespace
}  // namespace server::memcache
