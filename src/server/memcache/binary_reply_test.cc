#include "server/memcache/binary_reply.h"

#include <gtest/gtest.h>

#include <string>

#include "server/memcache/test_reply.h"

namespace server::memcache {
namespace {

using namespace std::string_literals;

Command command_of(uint8_t opcode, Verb verb) {
  return {.protocol = Protocol::kBinary, .verb = verb, .opcode = opcode, .opaque = 0x01020304, .key = "key"};
}

TEST(BinaryReply, Success) {
  const Command command = command_of(0x01, Verb::kSet);
  EXPECT_EQ(written([&](ReplyBuffer& reply) {
              write_status(reply, command, Status::kSuccess, 0x1122334455667788);
            }),
            "\x81\x01\0\0\0\0\0\0\0\0\0\0\x01\x02\x03\x04\x11\x22\x33\x44\x55\x66\x77\x88"s);
}

TEST(BinaryReply, Errors) {
  const std::pair<Status, std::string> kErrors[] = {
      {Status::kNotFound, "Not found"},
      {Status::kExists, "Data exists for key."},
      {Status::kTooLarge, "Too large."},
      {Status::kInvalid, "Invalid arguments"},
      {Status::kNotStored, "Not stored."},
      {Status::kNotNumber, "Non-numeric server-side value for incr or decr"},
      {Status::kAuthError, "Auth failure."},
      {Status::kUnknownCommand, "Unknown command"},
      {Status::kNoMemory, "Out of memory"}};
  for (const auto& [status, message] : kErrors) {
    const std::string reply =
        written([&](ReplyBuffer& to) { write_status(to, command_of(0x42, Verb::kNoop), status); });
    const std::string expected = "\x81\x42\0\0\0\0\0"s + static_cast<char>(status) + "\0\0\0"s +
                                 static_cast<char>(message.size()) + "\x01\x02\x03\x04\0\0\0\0\0\0\0\0"s +
                                 message;
    EXPECT_EQ(reply, expected) << message;
  }
  EXPECT_EQ(message_of(Status::kSuccess), "");
}

TEST(BinaryReply, Found) {
  Command command = command_of(0x00, Verb::kGet);
  EXPECT_EQ(written([&](ReplyBuffer& reply) { write_found(reply, command, 0xdeadbeef, 5, 1); }),
            "\x81\0\0\0\x04\0\0\0\0\0\0\x09\x01\x02\x03\x04\0\0\0\0\0\0\0\x01\xde\xad\xbe\xef"s);
  command.opcode = 0x0c;
  command.wants_key = true;
  EXPECT_EQ(written([&](ReplyBuffer& reply) { write_found(reply, command, 0xdeadbeef, 0x10000, 1); }),
            "\x81\x0c\0\x03\x04\0\0\0\0\x01\0\x07\x01\x02\x03\x04\0\0\0\0\0\0\0\x01\xde\xad\xbe\xefkey"s);
}

TEST(BinaryReply, NotFound) {
  Command command = command_of(0x0c, Verb::kGet);
  command.wants_key = true;
  EXPECT_EQ(written([&](ReplyBuffer& reply) { write_status(reply, command, Status::kNotFound); }),
            "\x81\x0c\0\x03\0\0\0\x01\0\0\0\x03\x01\x02\x03\x04\0\0\0\0\0\0\0\0key"s);
  EXPECT_TRUE(written([&](ReplyBuffer& reply) {
                write_status(reply, command, Status::kNoMemory);
              }).ends_with("Out of memory"));
}

TEST(BinaryReply, NumbersVersionAndStats) {
  EXPECT_EQ(written([&](ReplyBuffer& reply) {
              write_binary_number(reply, command_of(0x05, Verb::kIncr), 0x0a0b, 2);
            }),
            "\x81\x05\0\0\0\0\0\0\0\0\0\x08\x01\x02\x03\x04\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\x0a\x0b"s);
  EXPECT_EQ(
      written([&](ReplyBuffer& reply) { write_binary_text(reply, command_of(0x0b, Verb::kVersion), "1.6"); }),
      "\x81\x0b\0\0\0\0\0\0\0\0\0\x03\x01\x02\x03\x04\0\0\0\0\0\0\0\0"
      "1.6"s);
  const Command stats = command_of(0x10, Verb::kStats);
  EXPECT_EQ(written([&](ReplyBuffer& reply) { write_binary_stat(reply, stats, "pid", "42"); }),
            "\x81\x10\0\x03\0\0\0\0\0\0\0\x05\x01\x02\x03\x04\0\0\0\0\0\0\0\0pid42"s);
  EXPECT_EQ(written([&](ReplyBuffer& reply) { write_binary_stat(reply, stats, "", ""); }),
            "\x81\x10\0\0\0\0\0\0\0\0\0\0\x01\x02\x03\x04\0\0\0\0\0\0\0\0"s);
  EXPECT_EQ(written([&](ReplyBuffer& reply) { write_binary_stat(reply, stats, "", ""); }).size(),
            kBinaryStatBytes);
}

TEST(BinaryReply, StatusOfResults) {
  const std::tuple<Verb, Result, Status> kStatuses[] = {
      {Verb::kSet, Result::kDone, Status::kSuccess},
      {Verb::kIncr, Result::kCreated, Status::kSuccess},
      {Verb::kAdd, Result::kNotStored, Status::kExists},
      {Verb::kReplace, Result::kNotStored, Status::kNotFound},
      {Verb::kAppend, Result::kNotStored, Status::kNotStored},
      {Verb::kPrepend, Result::kNotStored, Status::kNotStored},
      {Verb::kIncr, Result::kNotStored, Status::kNotStored},
      {Verb::kCas, Result::kExists, Status::kExists},
      {Verb::kCas, Result::kNotFound, Status::kNotFound},
      {Verb::kGet, Result::kNotFound, Status::kNotFound},
      {Verb::kIncr, Result::kNotNumber, Status::kNotNumber},
      {Verb::kAppend, Result::kTooLarge, Status::kTooLarge},
      {Verb::kSet, Result::kNoMemory, Status::kNoMemory}};
  for (const auto& [verb, result, status] : kStatuses)
    EXPECT_EQ(status_of(command_of(0, verb), result), status);
}

}  // namespace
}  // namespace server::memcache
