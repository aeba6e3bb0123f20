#include "server/memcache/reply_buffer.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace server::memcache {
namespace {

TEST(ReplyBuffer, WritesOneAfterTheOther) {
  char memory[100];
  ReplyBuffer reply{std::span(memory)};
  EXPECT_EQ(reply.room_bytes(), 100u);
  reply << "a" << 'b' << 0 << ' ' << UINT64_MAX << ' ' << INT64_MIN << std::string_view();
  EXPECT_EQ(reply.written(), "ab0 18446744073709551615 -9223372036854775808");
  EXPECT_EQ(reply.written().data(), memory);
  EXPECT_EQ(reply.room_bytes(), 100 - reply.written().size());
  reply.clear();
  EXPECT_EQ(reply.written(), "");
  EXPECT_EQ(reply.room_bytes(), 100u);
}

TEST(ReplyBuffer, BigEndian) {
  char memory[32];
  ReplyBuffer reply{std::span(memory)};
  reply.put_big_endian(uint8_t{0x81})
      .put_big_endian(uint16_t{0x1234})
      .put_big_endian(uint32_t{0xfedcba98})
      .put_big_endian(uint64_t{0x0102030405060708});
  EXPECT_EQ(reply.written(),
            std::string_view("\x81\x12\x34\xfe\xdc\xba\x98\x01\x02\x03\x04\x05\x06\x07\x08"));
}

TEST(ReplyBufferDeathTest, WhatDoesNotFitIsAMistake) {
  char memory[4];
  ReplyBuffer reply{std::span(memory)};
  reply << "abcd";
  EXPECT_EQ(reply.room_bytes(), 0u);
  EXPECT_EXIT(reply << 'e', testing::KilledBySignal(SIGABRT), "room_bytes");
}

}  // namespace
}  // namespace server::memcache
