// Requests: from the bytes that a connection has so far to one request, an array of bulk strings or an inline
// command.
//
//   *3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nhello\r\n          an array
//   SET k "he\x6clo"\r\n                                   inline (inline.h); may also end with \n alone
//
//   kBegin ──the count is read──► kArray ──all arguments are there──► kBegin    inline: stays in kBegin
//                                  │  ▲
//               a large one begins ▼  │ take()
//                                 kLarge             each but kLarge ──what came is no request──► kFailed
//
// A large argument, most often SET's value, does not pass through the input. When its length is known parse()
// says kLarge, wherever in the array it stands. The connection moves what the input has of it to memory of
// its own, cuts the input off there, receives the rest of it and the two bytes behind it into that memory,
// and says by take() where it is. What stands behind it (SET k v EX 10) comes into the input as if it had
// never been there:
//
//   input        *5\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000000\r\nxxxxxxx    kLarge; bytes() is where the x begin
//   after take   *5\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000000\r\n           then comes $2\r\nEX\r\n$2\r\n10\r\n
//
// Invariants
//  1 the result of parsing a stream of bytes does not depend on the pieces that it arrives in
//  2 until a request is complete, its input is kept from its beginning on, and not changed except by taking large
//    arguments out; it may move between two calls
//  3 arguments are views into the input, the memory of large ones, or the parser's own memory for inline commands
//  4 what is kept grows with what has been received, not with what was announced
//
// As Redis: the two bytes behind a bulk string are passed over, whatever they are; so is what follows a \r in
// the line of a number.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "server/resp/short_list.h"

namespace server::resp {

enum class Parsed : uint8_t {
  kMore,     // the request ends behind the input: parse() again when more has come
  kRequest,  // there is one; the next parse() begins behind it
  kNothing,  // the same, but an empty line or array, which is answered with nothing
  kLarge,    // a large argument begins: take() it, and parse() again
  kError,    // no request: the connection is closed
};

struct RequestLimits {
  size_t argument_count_max = 1 << 20;
  uint64_t bulk_bytes_max = 512 << 20;  // of one argument
  uint64_t large_bytes = UINT64_MAX;    // arguments of at least so many are large
  // Of one request without its large arguments: the connection has room for so many. More than 0.
  size_t input_bytes_max = 1 << 30;
  // False: requests have to be as small as Redis wants them before authentication.
  bool is_authenticated = true;
};

// The longest header line of an array, and the longest inline command.
inline constexpr size_t kMaxLineBytes = 64 << 10;

// The parser of one connection. Thread contract: of its caller alone. No call blocks. Cost of a request: its bytes
// without those of bulk strings, which are not looked at; no allocation up to 16 arguments.
class RequestParser {
 public:
  RequestParser() = default;
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  // `input` is all that has come since the last request's end. The limits may change between requests.
  // REQUIRES: no kError before.
  Parsed parse(std::string_view input, const RequestLimits& limits);

  // After kRequest: its arguments, at least one, until the next parse() and as long as what they point into.
  std::span<const std::string_view> arguments() const { return arguments_.view(); }
  // After kRequest and kNothing: how much of the input that was, to be removed from its front. After kLarge:
  // where in it the large argument begins.
  size_t bytes() const { return at_; }

  // After kMore: at least so many bytes are missing.
  uint64_t missing_bytes() const { return missing_bytes_; }

  // After kLarge: how long the argument is, and how many there are before it. Which these are tells what it
  // is for: the command's name, the key.
  uint64_t large_bytes() const { return bulk_bytes_; }
  size_t argument_count() const { return places_.size(); }
  // REQUIRES: i < argument_count(), the input of the last parse() still there.
  std::string_view argument(size_t i) const;
  // The large argument and the two bytes behind it are no longer in the input, and will not come there. `value` is
  // where it lies now, or less: a connection that will refuse the request need not keep it. Then parse() goes on.
  // REQUIRES: the last was kLarge.
  void take(std::string_view value);

  // How much of the heap it has. After a large request the next parse() gives nearly all of it back, also one without
  // input.
  size_t memory_bytes() const {
    return places_.memory_bytes() + arguments_.memory_bytes() + words_.capacity();
  }

  // After kError: the text of the reply, "ERR Protocol error: ..."; the connection is closed behind it.
  std::string_view error() const { return {error_.data(), error_bytes_}; }

 private:
  // Where an argument is: in the input, at `offset`, or at `elsewhere`.
  struct Place {
    const char* elsewhere = nullptr;
    size_t offset = 0;
    size_t bytes = 0;
  };
  enum class State : uint8_t { kBegin, kArray, kLarge, kFailed };

  void begin();
  Parsed more(uint64_t missing_bytes);
  Parsed fail(std::string_view text, std::string_view what = {});
  Parsed finish();

  std::optional<Parsed> parse_count(const RequestLimits& limits);
  std::optional<Parsed> parse_argument(const RequestLimits& limits);
  std::optional<Parsed> find_line(const RequestLimits& limits, std::string_view too_big,
                                  std::string_view& line);
  std::optional<Parsed> parse_length(const RequestLimits& limits);

  Parsed parse_inline(const RequestLimits& limits);
  bool split(std::string_view line);

  std::string_view input_;  // of the last parse()
  size_t at_ = 0;           // what is before it has been parsed
  State state_ = State::kBegin;
  bool knows_length_ = false;  // of the argument at at_
  size_t left_count_ = 0;      // arguments to come
  uint64_t bulk_bytes_ = 0;    // of the argument at at_
  uint64_t missing_bytes_ = 0;
  ShortList<Place> places_;
  ShortList<std::string_view> arguments_;
  std::string words_;  // of an inline command, without quotes and blanks
  std::array<char, 64> error_ = {};
  size_t error_bytes_ = 0;
};

}  // namespace server::resp
