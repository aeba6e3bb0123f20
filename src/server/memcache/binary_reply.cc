#include "server/memcache/binary_reply.h"

namespace server::memcache {
namespace {

struct Header {
  Status status = Status::kSuccess;
  uint8_t extras_bytes = 0;
  size_t key_bytes = 0;
  uint64_t value_bytes = 0;
  uint64_t cas = 0;
};

void write_header(ReplyBuffer& reply, const Command& command, const Header& header) {
  CHECK(command.protocol == Protocol::kBinary);
  CHECK_LE(header.key_bytes, size_t{UINT16_MAX});
  const uint64_t body_bytes = header.extras_bytes + header.key_bytes + header.value_bytes;
  CHECK_LE(body_bytes, UINT32_MAX);
  reply.put_big_endian(uint8_t{0x81})
      .put_big_endian(command.opcode)
      .put_big_endian(static_cast<uint16_t>(header.key_bytes))
      .put_big_endian(header.extras_bytes)
      .put_big_endian(uint8_t{0})
      .put_big_endian(static_cast<uint16_t>(header.status))
      .put_big_endian(static_cast<uint32_t>(body_bytes))
      .put_big_endian(command.opaque)
      .put_big_endian(header.cas);
}

}  // namespace

Status status_of(const Command& command, Result result) {
  switch (result) {
    case Result::kDone:
    case Result::kCreated: return Status::kSuccess;
    case Result::kNotStored:
      if (command.verb == Verb::kAdd) return Status::kExists;
      return command.verb == Verb::kReplace ? Status::kNotFound : Status::kNotStored;
    case Result::kExists: return Status::kExists;
    case Result::kNotFound: return Status::kNotFound;
    case Result::kNotNumber: return Status::kNotNumber;
    case Result::kTooLarge: return Status::kTooLarge;
    case Result::kNoMemory: return Status::kNoMemory;
    case Result::kBadData: break;  // here values have no line end that could be wrong
  }
  CHECK(false);
  return Status::kInvalid;
}

std::string_view message_of(Status status) {
  switch (status) {
    case Status::kSuccess: return {};
    case Status::kNotFound: return "Not found";
    case Status::kExists: return "Data exists for key.";
    case Status::kTooLarge: return "Too large.";
    case Status::kInvalid: return "Invalid arguments";
    case Status::kNotStored: return "Not stored.";
    case Status::kNotNumber: return "Non-numeric server-side value for incr or decr";
    case Status::kAuthError: return "Auth failure.";
    case Status::kUnknownCommand: return "Unknown command";
    case Status::kNoMemory: return "Out of memory";
  }
  CHECK(false);
  return {};
}

void write_status(ReplyBuffer& reply, const Command& command, Status status, uint64_t cas) {
  if (status == Status::kNotFound && command.wants_key) {
    write_header(reply, command, {.status = status, .key_bytes = command.key.size(), .cas = cas});
    reply << command.key;
    return;
  }
  const std::string_view message = message_of(status);
  write_header(reply, command, {.status = status, .value_bytes = message.size(), .cas = cas});
  reply << message;
}

void write_found(ReplyBuffer& reply, const Command& command, uint32_t flags, uint64_t value_bytes,
                 uint64_t cas) {
  const std::string_view key = command.wants_key ? command.key : std::string_view();
  write_header(
      reply, command,
      {.extras_bytes = sizeof flags, .key_bytes = key.size(), .value_bytes = value_bytes, .cas = cas});
  reply.put_big_endian(flags) << key;
}

void write_binary_number(ReplyBuffer& reply, const Command& command, uint64_t number, uint64_t cas) {
  write_header(reply, command, {.value_bytes = sizeof number, .cas = cas});
  reply.put_big_endian(number);
}

void write_binary_text(ReplyBuffer& reply, const Command& command, std::string_view text) {
  write_header(reply, command, {.value_bytes = text.size()});
  reply << text;
}

void write_binary_stat(ReplyBuffer& reply, const Command& command, std::string_view name,
                       std::string_view value) {
  write_header(reply, command, {.key_bytes = name.size(), .value_bytes = value.size()});
  reply << name << value;
}

}  // namespace server::memcache
