// What parsers of requests return: a command, why there is none, or that more bytes are needed. Parsers are
// pure functions of the bytes: the same ones give the same commands and refusals, whichever pieces they
// arrive in.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace server::memcache {

// Of binary replies.
enum class Status : uint16_t {
  kSuccess = 0x00,
  kNotFound = 0x01,
  kExists = 0x02,
  kTooLarge = 0x03,
  kInvalid = 0x04,
  kNotStored = 0x05,
  kNotNumber = 0x06,
  kAuthError = 0x20,
  kUnknownCommand = 0x81,
  kNoMemory = 0x82,
};

// Of a request that is no command.
struct Refusal {
  std::string_view text = {};        // of text protocols: the line to be sent, without its end. Empty: none
  Status status = Status::kSuccess;  // of the binary one: to be sent, by write_status(). kSuccess: none
  uint64_t swallow_bytes = 0;        // so many follow what was consumed, and are to be thrown away
  bool closes = false;               // the connection, once the reply is sent
  bool drops_key = false;  // the item of the command's key is to go: its new value was too large to be stored
};

enum class Outcome : uint8_t {
  kMore,  // what was not consumed is the beginning of a request, or, if some was, to be looked at again
  kCommand,
  kRefused,
};

struct Parsed {
  Outcome outcome = Outcome::kMore;
  size_t consumed_bytes = 0;  // of the input, whatever the outcome: they are not to be given again
  Refusal refusal = {};       // kRefused

  // The same, with so many bytes more consumed before it.
  constexpr Parsed consuming(size_t bytes) const {
    Parsed parsed = *this;
    parsed.consumed_bytes += bytes;
    return parsed;
  }
};

constexpr Parsed accept() { return {.outcome = Outcome::kCommand}; }
// With a line of a text protocol.
constexpr Parsed refuse(std::string_view text) {
  return {.outcome = Outcome::kRefused, .refusal = {.text = text}};
}
constexpr Parsed refuse(Status status) {
  return {.outcome = Outcome::kRefused, .refusal = {.status = status}};
}

}  // namespace server::memcache
