// The text protocol: from the bytes that a connection has so far to the next command, or why there is none
// (classic.h and meta.h read whole lines; memcached's doc/protocol.txt).
//
//   [line] ── ends within kLineBytesMax ──────────► command or refusal ──► [line]
//     │ longer: get, gets                             other: refusal, the connection closes
//     ▼
//   [keys] ── a part of the line, cut at a blank ──► command, not the last ──► [keys]
//     │ the line's end ──► last command ──► [line]
//     └ a key that is too long, a zero byte ──► refusal, last command ──► [rest], to the line's end ──► [line]
//
//  1 no more than kLineBytesMax + 1 bytes are needed at once, however long a line is: whoever has so many
//    gets an answer
//  2 where a line is cut depends on its bytes alone: the first kLineBytesMax of what is left of it, to their
//    last blank
//  3 a line ends at "\n"; one "\r" before it, and a zero byte with all behind it, are no part of it
#pragma once
#include <string_view>

#include "server/memcache/command.h"
#include "server/memcache/parsed.h"

namespace server::memcache {

// One connection's. The value that follows a command is not given to it: whoever has the command receives
// value and "\r\n" (is_block_end) before the next call; likewise swallow_bytes of a refusal.
class TextParser {
 public:
  explicit TextParser(uint64_t item_bytes_max) : item_bytes_max_(item_bytes_max) {}

  // The next command of `input`, which is what came and was not consumed. kMore: if nothing was consumed,
  // wait for more; else the next command may be behind that. What is consumed with a command of a whole line
  // is that line. After a refusal that closes it is not called again. Cost: each byte of a line that came
  // whole is looked at three times; kMore looks at all of the input again, kLineBytesMax at most.
  Parsed next(std::string_view input, Command& command);
  // Else what comes next is of a line that is longer than others may be.
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
  bool wants_cas_ = false;  // kKeys: of the get that goes on
  bool had_keys_ = false;   // likewise: an earlier part had some
  char key_buffer_[kKeyBytesMax];
};

}  // namespace server::memcache
