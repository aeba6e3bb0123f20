// What parsers of requests return: a command, why there is none, or that more bytes are needed. Parsers are pure
// functions of the bytes: the same bytes give the same commands and refusals, in whichever pieces they arrive.
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

// What to do with a request that is no command.
struct Refusal {
  std::string_view text = {};        // in text protocols the line to be sent, without its end. Empty: none
  Status status = Status::kSuccess;  // in the binary one to be sent by write_status(). kSuccess: none
  uint64_t swallow_bytes = 0;        // this many bytes behind what was consumed are to be thrown away
  bool closes = false;               // the connection is to be closed when the reply has been sent
  bool drops_key = false;  // the item with the command's key is to go, since its new value is too large
};

enum class Outcome : uint8_t {
  kMore,  // more bytes are needed; or, if some were consumed, the rest is to be parsed again
  kCommand,
  kRefused,
};

struct Parsed {
  Outcome outcome = Outcome::kMore;
  size_t consumed_bytes = 0;  // of the input, whatever the outcome: the next call gets what is behind them
  Refusal refusal = {};       // kRefused

  // The same, with more bytes consumed before it.
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
