#include "server/memcache/binary.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include "server/memcache/test_transcript.h"

namespace server::memcache {
namespace {

std::string big_endian(uint64_t number, size_t bytes) {
  std::string text;
  for (size_t i = bytes; i > 0; --i) text += static_cast<char>(number >> (8 * (i - 1)));
  return text;
}

struct Request {
  uint8_t opcode = 0;
  std::string extras = {}, key = {}, value = {};
  uint64_t cas = 0;
  uint32_t opaque = 0xdeadbeef;

  std::string bytes() const {
    return "\x80" + big_endian(opcode, 1) + big_endian(key.size(), 2) + big_endian(extras.size(), 1) +
           big_endian(0, 3) + big_endian(extras.size() + key.size() + value.size(), 4) +
           big_endian(opaque, 4) + big_endian(cas, 8) + extras + key + value;
  }
};

Parsed parse(const Request& request, Command& command) {
  return parse_binary(request.bytes(), kDefaultMaxItemBytes, command);
}

Command accept(const Request& request) {
  static std::string bytes;  // what the command refers to
  bytes = request.bytes();
  Command command;
  const Parsed parsed = parse_binary(bytes, kDefaultMaxItemBytes, command);
  EXPECT_EQ(parsed.outcome, Outcome::kCommand) << int{request.opcode};
  EXPECT_EQ(parsed.consumed_bytes, bytes.size() - request.value.size());
  EXPECT_EQ(command.protocol, Protocol::kBinary);
  EXPECT_EQ(command.opcode, request.opcode);
  EXPECT_EQ(command.opaque, request.opaque);
  EXPECT_EQ(command.key, request.key);
  EXPECT_EQ(command.value_bytes, request.value.size());
  EXPECT_EQ(command.has_cas, request.cas != 0);
  EXPECT_EQ(command.cas, request.cas);
  return command;
}

void expect_closed(const Request& request, Status status) {
  Command command;
  const Parsed parsed = parse(request, command);
  EXPECT_EQ(parsed.outcome, Outcome::kRefused) << int{request.opcode};
  EXPECT_EQ(parsed.refusal.status, status) << int{request.opcode};
  EXPECT_TRUE(parsed.refusal.closes) << int{request.opcode};
  EXPECT_EQ(command.opcode, request.opcode);
  EXPECT_EQ(command.opaque, request.opaque);
}

const std::string kSetExtras = big_endian(0x01020304, 4) + big_endian(0xfffffffe, 4);
const std::string kChangeExtras = big_endian(5, 8) + big_endian(1000, 8) + big_endian(60, 4);
const std::string kExptime = big_endian(0xfffffffe, 4);

TEST(Binary, Stores) {
  const std::tuple<uint8_t, Verb, bool> kStores[] = {
      {0x01, Verb::kSet, false}, {0x02, Verb::kAdd, false}, {0x03, Verb::kReplace, false},
      {0x11, Verb::kSet, true},  {0x12, Verb::kAdd, true},  {0x13, Verb::kReplace, true}};
  for (const auto& [opcode, verb, is_quiet] : kStores) {
    Command command = accept({.opcode = opcode, .extras = kSetExtras, .key = "key", .value = "hello"});
    EXPECT_EQ(command.verb, verb);
    EXPECT_EQ(command.is_quiet, is_quiet);
    EXPECT_EQ(command.flags, 0x01020304u);
    EXPECT_TRUE(command.has_exptime);
    EXPECT_EQ(command.exptime, 0xfffffffe);  // no negative ones here
    EXPECT_EQ(accept({.opcode = opcode, .extras = kSetExtras, .key = "key", .cas = 7}).verb, Verb::kCas);
    expect_closed({.opcode = opcode, .extras = kSetExtras, .value = "x"}, Status::kInvalid);
    expect_closed({.opcode = opcode, .extras = "1234567", .key = "key"}, Status::kInvalid);
    expect_closed({.opcode = opcode, .key = "key", .value = "12345678"}, Status::kInvalid);
  }
}

TEST(Binary, Extends) {
  const std::tuple<uint8_t, Verb, bool> kExtends[] = {{0x0e, Verb::kAppend, false},
                                                      {0x0f, Verb::kPrepend, false},
                                                      {0x19, Verb::kAppend, true},
                                                      {0x1a, Verb::kPrepend, true}};
  for (const auto& [opcode, verb, is_quiet] : kExtends) {
    Command command = accept({.opcode = opcode, .key = "key", .value = "hello", .cas = 9});
    EXPECT_EQ(command.verb, verb);
    EXPECT_EQ(command.is_quiet, is_quiet);
    EXPECT_FALSE(command.has_exptime);
    expect_closed({.opcode = opcode, .value = "hello"}, Status::kInvalid);
    expect_closed({.opcode = opcode, .extras = kSetExtras, .key = "key"}, Status::kInvalid);
  }
}

TEST(Binary, Gets) {
  const std::tuple<uint8_t, bool, bool> kGets[] = {
      {0x00, false, false}, {0x09, true, false}, {0x0c, false, true}, {0x0d, true, true}};
  for (const auto& [opcode, is_quiet, wants_key] : kGets) {
    Command command = accept({.opcode = opcode, .key = std::string(250, 'k')});
    EXPECT_EQ(command.verb, Verb::kGet);
    EXPECT_EQ(command.is_quiet, is_quiet);
    EXPECT_EQ(command.wants_key, wants_key);
    expect_closed({.opcode = opcode}, Status::kInvalid);
    expect_closed({.opcode = opcode, .extras = "1234", .key = "k"}, Status::kInvalid);
    expect_closed({.opcode = opcode, .key = "k", .value = "x"}, Status::kInvalid);
    expect_closed({.opcode = opcode, .key = std::string(251, 'k')}, Status::kInvalid);
  }
}

TEST(Binary, Touches) {
  const std::tuple<uint8_t, Verb, bool, bool> kTouches[] = {{0x1c, Verb::kTouch, false, false},
                                                            {0x1d, Verb::kGat, false, false},
                                                            {0x1e, Verb::kGat, true, false},
                                                            {0x23, Verb::kGat, false, true},
                                                            {0x24, Verb::kGat, true, true}};
  for (const auto& [opcode, verb, is_quiet, wants_key] : kTouches) {
    Command command = accept({.opcode = opcode, .extras = kExptime, .key = "key"});
    EXPECT_EQ(command.verb, verb);
    EXPECT_EQ(command.is_quiet, is_quiet);
    EXPECT_EQ(command.wants_key, wants_key);
    EXPECT_TRUE(command.has_exptime);
    EXPECT_EQ(command.exptime, 0xfffffffe);
    expect_closed({.opcode = opcode, .key = "key"}, Status::kInvalid);
    expect_closed({.opcode = opcode, .extras = kExptime}, Status::kInvalid);
    expect_closed({.opcode = opcode, .extras = kExptime, .key = "key", .value = "x"}, Status::kInvalid);
  }
}

TEST(Binary, DeletesAndNumbers) {
  for (const uint8_t opcode : std::to_array<uint8_t>({0x04, 0x14})) {
    Command command = accept({.opcode = opcode, .key = "key", .cas = 5});
    EXPECT_EQ(command.verb, Verb::kDelete);
    EXPECT_EQ(command.is_quiet, opcode == 0x14);
    expect_closed({.opcode = opcode}, Status::kInvalid);
    expect_closed({.opcode = opcode, .extras = "1234", .key = "k"}, Status::kInvalid);
  }
  for (const uint8_t opcode : std::to_array<uint8_t>({0x05, 0x06, 0x15, 0x16})) {
    Command command = accept({.opcode = opcode, .extras = kChangeExtras, .key = "key"});
    EXPECT_EQ(command.verb, (opcode & 0xf) == 5 ? Verb::kIncr : Verb::kDecr);
    EXPECT_EQ(command.is_quiet, opcode > 0x10);
    EXPECT_EQ(command.number, 5u);
    EXPECT_EQ(command.initial, 1000u);
    EXPECT_TRUE(command.creates);
    EXPECT_EQ(command.create_exptime, 60);
    EXPECT_FALSE(command.has_exptime);
    command = accept({.opcode = opcode, .extras = std::string(16, '\0') + "\xff\xff\xff\xff", .key = "key"});
    EXPECT_FALSE(command.creates);
    expect_closed({.opcode = opcode, .extras = kChangeExtras}, Status::kInvalid);
    expect_closed({.opcode = opcode, .extras = kExptime, .key = "key"}, Status::kInvalid);
    expect_closed({.opcode = opcode, .extras = kChangeExtras, .key = "key", .value = "x"}, Status::kInvalid);
  }
}

TEST(Binary, Others) {
  const std::tuple<uint8_t, Verb, bool> kOthers[] = {
      {0x07, Verb::kQuit, false},    {0x17, Verb::kQuit, true},      {0x0a, Verb::kNoop, false},
      {0x0b, Verb::kVersion, false}, {0x08, Verb::kFlushAll, false}, {0x18, Verb::kFlushAll, true},
      {0x10, Verb::kStats, false}};
  for (const auto& [opcode, verb, is_quiet] : kOthers) {
    Command command = accept({.opcode = opcode});
    EXPECT_EQ(command.verb, verb);
    EXPECT_EQ(command.is_quiet, is_quiet);
    EXPECT_FALSE(command.has_exptime);
    if (verb != Verb::kStats) expect_closed({.opcode = opcode, .key = "key"}, Status::kInvalid);
    expect_closed({.opcode = opcode, .value = "x"}, Status::kInvalid);
    expect_closed({.opcode = opcode, .extras = "12345"}, Status::kInvalid);
  }
  EXPECT_EQ(accept({.opcode = 0x08, .extras = kExptime}).exptime, 0xfffffffe);
  EXPECT_TRUE(accept({.opcode = 0x18, .extras = kExptime}).has_exptime);
  EXPECT_EQ(accept({.opcode = 0x10, .key = "items"}).arguments, "items");
}

TEST(Binary, UnknownOpcodesAreSwallowed) {
  for (const unsigned opcode : {0x1bu, 0x1fu, 0x25u, 0x30u, 0x80u, 0xffu}) {
    const Request request = {
        .opcode = static_cast<uint8_t>(opcode), .extras = "1234", .key = "key", .value = "value"};
    Command command;
    const Parsed parsed = parse(request, command);
    EXPECT_EQ(parsed.outcome, Outcome::kRefused);
    EXPECT_EQ(parsed.refusal.status, Status::kUnknownCommand);
    EXPECT_EQ(parsed.consumed_bytes, kHeaderBytes);
    EXPECT_EQ(parsed.refusal.swallow_bytes, 12u);
    EXPECT_FALSE(parsed.refusal.closes);
    EXPECT_EQ(command.opcode, opcode);
    EXPECT_EQ(command.opaque, 0xdeadbeefu);
  }
}

TEST(Binary, WhatSaslSaysIsPartOfTheCommand) {
  EXPECT_EQ(accept({.opcode = 0x20}).verb, Verb::kSaslMechanisms);
  const std::string bytes = Request{.opcode = 0x21, .key = "PLAIN", .value = "some text"}.bytes();
  for (size_t size = 0; size < bytes.size(); ++size) {
    Command command;
    EXPECT_EQ(parse_binary(bytes.substr(0, size), kDefaultMaxItemBytes, command).outcome, Outcome::kMore);
  }
  const std::string input = bytes + "more";
  Command command;
  const Parsed parsed = parse_binary(input, kDefaultMaxItemBytes, command);
  EXPECT_EQ(parsed.outcome, Outcome::kCommand);
  EXPECT_EQ(parsed.consumed_bytes, bytes.size());
  EXPECT_EQ(command.verb, Verb::kSaslAuth);
  EXPECT_EQ(command.key, "PLAIN");
  EXPECT_EQ(command.arguments, "some text");
  EXPECT_EQ(command.value_bytes, 0u);
  EXPECT_EQ(accept({.opcode = 0x22, .key = "PLAIN"}).verb, Verb::kSaslStep);

  const Request longer = {.opcode = 0x21, .key = "PLAIN", .value = std::string(1025, 'x')};
  const Parsed refused = parse(longer, command);
  EXPECT_EQ(refused.refusal.status, Status::kTooLarge);
  EXPECT_TRUE(refused.refusal.closes);
}

TEST(Binary, LengthsThatContradictEachOther) {
  std::string bytes = Request{.key = "key"}.bytes();
  bytes[11] = 2;  // the body is shorter than the key
  Command command;
  Parsed parsed = parse_binary(bytes, kDefaultMaxItemBytes, command);
  EXPECT_EQ(parsed.refusal.status, Status::kUnknownCommand);
  EXPECT_TRUE(parsed.refusal.closes);
  // A body that is not allowed is not waited for.
  bytes = Request{.key = std::string(60000, 'k')}.bytes().substr(0, kHeaderBytes);
  parsed = parse_binary(bytes, kDefaultMaxItemBytes, command);
  EXPECT_EQ(parsed.outcome, Outcome::kRefused);
  EXPECT_EQ(parsed.refusal.status, Status::kInvalid);
  EXPECT_TRUE(parsed.refusal.closes);
}

TEST(Binary, ValuesThatAreTooLarge) {
  auto header = [](uint8_t opcode, const std::string& extras, uint64_t value_bytes) {
    std::string bytes = Request{.opcode = opcode, .extras = extras, .key = "k"}.bytes();
    return bytes.replace(8, 4, big_endian(extras.size() + 1 + value_bytes, 4));
  };
  const std::string no_flags(8, '\0');
  constexpr uint64_t kMax = (1 << 20) - 59 - 1;
  Command command;
  EXPECT_EQ(parse_binary(header(0x01, no_flags, kMax), kDefaultMaxItemBytes, command).outcome,
            Outcome::kCommand);
  EXPECT_EQ(command.value_bytes, kMax);
  EXPECT_EQ(parse_binary(header(0x0e, "", kMax), kDefaultMaxItemBytes, command).outcome, Outcome::kCommand);
  const uint8_t kOpcodes[] = {0x01, 0x02, 0x0e, 0x11};
  for (const uint8_t opcode : kOpcodes) {
    for (const uint64_t value_bytes : {kMax + 1, uint64_t{UINT32_MAX} - 9}) {
      const std::string bytes = header(opcode, opcode == 0x0e ? "" : no_flags, value_bytes);
      const Parsed parsed = parse_binary(bytes, kDefaultMaxItemBytes, command);
      EXPECT_EQ(parsed.outcome, Outcome::kRefused);
      EXPECT_EQ(parsed.refusal.status, Status::kTooLarge);
      EXPECT_EQ(parsed.consumed_bytes, bytes.size());
      EXPECT_EQ(parsed.refusal.swallow_bytes, value_bytes);
      EXPECT_EQ(parsed.refusal.drops_key, (opcode & 0xf) == 1);
      EXPECT_FALSE(parsed.refusal.closes);
      EXPECT_EQ(command.key, "k");
    }
  }
}

TEST(Binary, OtherFirstBytesClose) {
  for (const char* first : {"g", "\x81", "\x7f"}) {
    Command command;
    const Parsed parsed = parse_binary(first + std::string(23, '\0'), kDefaultMaxItemBytes, command);
    EXPECT_EQ(parsed.outcome, Outcome::kRefused);
    EXPECT_EQ(parsed.refusal.status, Status::kSuccess);  // nothing is sent
    EXPECT_TRUE(parsed.refusal.closes);
  }
}

std::string all_requests() {
  std::string stream;
  for (unsigned opcode = 0; opcode < 0x30; ++opcode) {
    Request request = {.opcode = static_cast<uint8_t>(opcode), .opaque = opcode * 0x01010101};
    const unsigned kind = opcode >= 0x11 && opcode <= 0x13 ? opcode - 0x10 : opcode;
    if (kind >= 0x01 && kind <= 0x03) request.extras = kSetExtras, request.value = "\x80value";
    if (opcode == 0x05 || opcode == 0x06 || opcode == 0x15 || opcode == 0x16) request.extras = kChangeExtras;
    if (opcode == 0x1c || opcode == 0x1d || opcode == 0x1e || opcode == 0x23 || opcode == 0x24)
      request.extras = kExptime;
    if (opcode == 0x0e || opcode == 0x0f || opcode == 0x19 || opcode == 0x1a)
      request.value = std::string(300, '\x80');
    const bool has_no_key = opcode == 0x07 || opcode == 0x08 || opcode == 0x0a || opcode == 0x0b ||
                            opcode == 0x17 || opcode == 0x18 || opcode == 0x20;
    if (!has_no_key) request.key = "key" + std::to_string(opcode);
    stream += request.bytes();
  }
  return stream;
}

TEST(Binary, EverySplitMeansTheSame) {
  const std::string stream = all_requests();
  auto whole = binary_reader(kDefaultMaxItemBytes);
  whole.receive(stream);
  ASSERT_EQ(whole.lines().size(), 0x30u);
  EXPECT_FALSE(whole.is_closed());
  EXPECT_EQ(whole.consumed_bytes(), stream.size());
  for (size_t split = 0; split <= stream.size(); ++split) {
    auto reader = binary_reader();
    reader.receive(std::string_view(stream).substr(0, split));
    EXPECT_LE(reader.waiting_bytes(), kHeaderBytes + 20 + kMaxKeyBytes);
    reader.receive(std::string_view(stream).substr(split));
    ASSERT_EQ(reader.lines(), whole.lines()) << split;
  }
  auto reader = binary_reader();
  for (const char c : stream) reader.receive({&c, 1});
  EXPECT_EQ(reader.lines(), whole.lines());
}

TEST(Binary, RandomStreams) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    std::string stream = all_requests();
    for (int i = 0; i < 8; ++i)
      stream[random() % stream.size()] = static_cast<char>(random() % 4 == 0 ? random() : random() % 3);
    auto whole = binary_reader(2000);
    whole.receive(stream);
    auto reader = binary_reader(2000);
    for (size_t at = 0; at < stream.size();) {
      const size_t piece_bytes = 1 + random() % 60;
      reader.receive(std::string_view(stream).substr(at, piece_bytes));
      at += piece_bytes;
    }
    ASSERT_EQ(reader.lines(), whole.lines()) << "seed " << seed;
    ASSERT_EQ(reader.is_closed(), whole.is_closed()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace server::memcache
