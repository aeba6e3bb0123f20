#include "server/memcache/binary.h"

#include <algorithm>

#include "server/memcache/credentials.h"

namespace server::memcache {
namespace {

// What the body of a request contains.
enum class Shape : uint8_t {
  kNothing,
  kKey,
  kMaybeKey,
  kKeyAndExptime,
  kMaybeDelay,
  kChange,   // extras and key
  kStore,    // extras, key, value
  kExtend,   // key, value
  kSasl,     // key, value, which is short and part of the command
  kUnknown,  // whatever it is
};

struct Opcode {
  Verb verb = Verb::kNoop;
  Shape shape = Shape::kUnknown;
  bool is_quiet = false;
  bool wants_key = false;
};

constexpr Opcode kOpcodes[] = {
    {Verb::kGet, Shape::kKey},                         // 0x00
    {Verb::kSet, Shape::kStore},                       // 0x01
    {Verb::kAdd, Shape::kStore},                       // 0x02
    {Verb::kReplace, Shape::kStore},                   // 0x03
    {Verb::kDelete, Shape::kKey},                      // 0x04
    {Verb::kIncr, Shape::kChange},                     // 0x05
    {Verb::kDecr, Shape::kChange},                     // 0x06
    {Verb::kQuit, Shape::kNothing},                    // 0x07
    {Verb::kFlushAll, Shape::kMaybeDelay},             // 0x08
    {Verb::kGet, Shape::kKey, true},                   // 0x09 getq
    {Verb::kNoop, Shape::kNothing},                    // 0x0a
    {Verb::kVersion, Shape::kNothing},                 // 0x0b
    {Verb::kGet, Shape::kKey, false, true},            // 0x0c getk
    {Verb::kGet, Shape::kKey, true, true},             // 0x0d getkq
    {Verb::kAppend, Shape::kExtend},                   // 0x0e
    {Verb::kPrepend, Shape::kExtend},                  // 0x0f
    {Verb::kStats, Shape::kMaybeKey},                  // 0x10
    {Verb::kSet, Shape::kStore, true},                 // 0x11 setq
    {Verb::kAdd, Shape::kStore, true},                 // 0x12 addq
    {Verb::kReplace, Shape::kStore, true},             // 0x13 replaceq
    {Verb::kDelete, Shape::kKey, true},                // 0x14 deleteq
    {Verb::kIncr, Shape::kChange, true},               // 0x15 incrementq
    {Verb::kDecr, Shape::kChange, true},               // 0x16 decrementq
    {Verb::kQuit, Shape::kNothing, true},              // 0x17 quitq
    {Verb::kFlushAll, Shape::kMaybeDelay, true},       // 0x18 flushq
    {Verb::kAppend, Shape::kExtend, true},             // 0x19 appendq
    {Verb::kPrepend, Shape::kExtend, true},            // 0x1a prependq
    {},                                                // 0x1b verbosity, which memcached does not know
    {Verb::kTouch, Shape::kKeyAndExptime},             // 0x1c
    {Verb::kGat, Shape::kKeyAndExptime},               // 0x1d
    {Verb::kGat, Shape::kKeyAndExptime, true},         // 0x1e gatq
    {},                                                // 0x1f
    {Verb::kSaslMechanisms, Shape::kNothing},          // 0x20
    {Verb::kSaslAuth, Shape::kSasl},                   // 0x21
    {Verb::kSaslStep, Shape::kSasl},                   // 0x22
    {Verb::kGat, Shape::kKeyAndExptime, false, true},  // 0x23 gatk
    {Verb::kGat, Shape::kKeyAndExptime, true, true},   // 0x24 gatkq
};

template <class Number>
Number big_endian(std::string_view bytes, size_t offset) {
  Number number = 0;
  for (const char c : bytes.substr(offset, sizeof number))
    number = static_cast<Number>(uint64_t{number} << 8 | static_cast<unsigned char>(c));
  return number;
}

struct Lengths {
  size_t extras_bytes, key_bytes, body_bytes;
  size_t value_bytes() const { return body_bytes - key_bytes - extras_bytes; }
};

bool fits(Shape shape, const Lengths& lengths) {
  const bool has_key = lengths.key_bytes > 0, has_value = lengths.value_bytes() > 0;
  const size_t extras_bytes = lengths.extras_bytes;
  switch (shape) {
    case Shape::kNothing: return extras_bytes == 0 && !has_key && !has_value;
    case Shape::kKey: return extras_bytes == 0 && has_key && !has_value;
    case Shape::kMaybeKey: return extras_bytes == 0 && !has_value;
    case Shape::kKeyAndExptime: return extras_bytes == 4 && has_key && !has_value;
    case Shape::kMaybeDelay: return (extras_bytes == 0 || extras_bytes == 4) && !has_key && !has_value;
    case Shape::kChange: return extras_bytes == 20 && has_key && !has_value;
    case Shape::kStore: return extras_bytes == 8 && has_key;
    case Shape::kExtend:
    case Shape::kSasl: return extras_bytes == 0 && has_key;
    case Shape::kUnknown: return true;
  }
  return false;
}

// For a request after which it is unknown where the next one begins.
Parsed refuse_and_close(Status status) {
  Parsed refused = refuse(status);
  refused.refusal.closes = true;
  return refused.consuming(kHeaderBytes);
}

void read_extras(std::string_view extras, Shape shape, Command& command) {
  if (shape == Shape::kStore) {
    command.flags = big_endian<uint32_t>(extras, 0);
    command.has_exptime = true;
    command.exptime = big_endian<uint32_t>(extras, 4);
  } else if (shape == Shape::kChange) {
    command.number = big_endian<uint64_t>(extras, 0);
    command.initial = big_endian<uint64_t>(extras, 8);
    command.create_exptime = big_endian<uint32_t>(extras, 16);
    command.creates = command.create_exptime != UINT32_MAX;
  } else if (extras.size() == 4) {
    command.has_exptime = true;
    command.exptime = big_endian<uint32_t>(extras, 0);
  }
}

}  // namespace

Parsed parse_binary(std::string_view input, uint64_t item_bytes_max, Command& command) {
  command = {};
  command.protocol = Protocol::kBinary;
  if (input.size() < kHeaderBytes) return {};
  if (!begins_binary(input[0])) return refuse_and_close(Status::kSuccess);
  command.opcode = static_cast<uint8_t>(input[1]);
  command.opaque = big_endian<uint32_t>(input, 12);
  const Lengths lengths = {.extras_bytes = static_cast<uint8_t>(input[4]),
                           .key_bytes = big_endian<uint16_t>(input, 2),
                           .body_bytes = big_endian<uint32_t>(input, 8)};
  size_t head_bytes = kHeaderBytes + lengths.extras_bytes + lengths.key_bytes;
  if (lengths.extras_bytes + lengths.key_bytes > lengths.body_bytes)
    return refuse_and_close(Status::kUnknownCommand);
  if (lengths.key_bytes > kMaxKeyBytes) return refuse_and_close(Status::kInvalid);
  const Opcode opcode = command.opcode < std::size(kOpcodes) ? kOpcodes[command.opcode] : Opcode();
  if (!fits(opcode.shape, lengths)) return refuse_and_close(Status::kInvalid);
  if (opcode.shape == Shape::kUnknown) {
    Parsed refused = refuse(Status::kUnknownCommand);
    refused.refusal.swallow_bytes = lengths.body_bytes;
    return refused.consuming(kHeaderBytes);
  }
  if (opcode.shape == Shape::kSasl) {
    if (lengths.value_bytes() > kMaxCredentialsBytes) return refuse_and_close(Status::kTooLarge);
    head_bytes += lengths.value_bytes();
  }
  if (input.size() < head_bytes) return {};

  command.verb = opcode.verb;
  command.is_quiet = opcode.is_quiet;
  command.wants_key = opcode.wants_key;
  command.key = input.substr(kHeaderBytes + lengths.extras_bytes, lengths.key_bytes);
  if (opcode.verb == Verb::kStats) command.arguments = command.key;
  command.cas = big_endian<uint64_t>(input, 16);
  command.has_cas = command.cas != 0;
  if (opcode.shape == Shape::kSasl) {
    command.arguments = input.substr(head_bytes - lengths.value_bytes(), lengths.value_bytes());
    return accept().consuming(head_bytes);
  }
  if (opcode.shape == Shape::kStore && command.has_cas) command.verb = Verb::kCas;
  read_extras(input.substr(kHeaderBytes, lengths.extras_bytes), opcode.shape, command);
  command.value_bytes = lengths.value_bytes();
  if (takes_value(opcode.verb) &&
      !item_fits(lengths.key_bytes, command.flags, command.value_bytes, item_bytes_max)) {
    Parsed refused = refuse(Status::kTooLarge);
    refused.refusal.swallow_bytes = command.value_bytes;
    refused.refusal.drops_key = opcode.verb == Verb::kSet;
    return refused.consuming(head_bytes);
  }
  return accept().consuming(head_bytes);
}

}  // namespace server::memcache
