// The text protocol: from the bytes that a connection has so far to the next command, or why there is none
// (classic.h and meta.h read whole lines; memcached's doc/protocol.txt).
//
//   [line] ── ends within kMaxLineBytes ──────────► command or refusal ──► [line]
//     │ longer: get, gets                             other: refusal, the connection closes
//     ▼
//   [keys] ── a part of the line, cut at a blank ──► command, not the last ──► [keys]
//     │ the line's end ──► last command ──► [line]
//     └ a key that is too long, a zero byte ──► refusal, last command ──► [rest], to the line's end ──► [line]
//
//  1 however long a line is, kMaxLineBytes + 1 bytes of input are enough for an outcome other than kMore
//  2 where a long line is cut depends on its bytes alone: at the last blank among the first kMaxLineBytes bytes of
//    what is left of it
//  3 a line ends at "\n"; one "\r" before that, and a zero byte with all that follows it, are no part of the line
#pragma once
#include <string_view>

#include "server/memcache/command.h"
#include "server/memcache/parsed.h"

namespace server::memcache {

// The parser of one connection. It does not see the values that follow commands: the caller takes the value and its
// "\r\n" (is_block_end) from the stream before the next call, and likewise swallow_bytes of a refusal.
class TextParser {
 public:
  explicit TextParser(uint64_t item_bytes_max) : item_bytes_max_(item_bytes_max) {}

  // Parses the next command of `input`, which is all that has come and was not consumed. A command that is a whole
  // line consumes that line. kMore: wait for more input if nothing was consumed, else call it again. It is not
  // called after a refusal that closes. Cost: each byte of a whole line is looked at three times; after kMore all of
  // the input, kMaxLineBytes at most, is looked at again.
  Parsed next(std::string_view input, Command& command);
  // False: the input goes on in the middle of a long line.
  bool is_at_line() const { return state_ == State::kLine; }

 private:
  enum class State : uint8_t { kLine, kKeys, kRest };

  Parsed next_line(std::string_view input, Command& command);
  Parsed parse_line(std::string_view line, Command& command);
  Parsed begin_keys(std::string_view input, Command& command);
  Parsed next_keys(std::string_view input, Command& command);
  Parsed skip_rest(std::string_view input);

  const uint64_t item_bytes_max_;
  State state_ = State::kLine;
  bool wants_cas_ = false;  // kKeys: of the get that is being parsed in parts
  bool had_keys_ = false;   // likewise: an earlier part had some
  char key_buffer_[kMaxKeyBytes];
};

}  // namespace server::memcache
