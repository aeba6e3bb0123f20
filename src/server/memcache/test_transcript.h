// For tests and fuzzers: what a parser makes of a stream of bytes that comes in pieces, as text. Each line
// says all of a command or refusal, so two streams that mean the same have the same transcript.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "server/memcache/binary.h"
#include "server/memcache/command.h"
#include "server/memcache/parsed.h"
#include "server/memcache/text.h"

namespace server::memcache {

template <class... Parts>
std::string joined(const Parts&... parts) {
  std::string text;
  (text.append(parts), ...);
  return text;
}

inline std::string all_words(Words words) {
  std::string text;
  for (std::string_view word = words.next(); !word.empty(); word = words.next())
    (text += '<').append(word) += '>';
  return text;
}

inline std::string describe(const Command& command) {
  std::string text = "protocol " + std::to_string(static_cast<int>(command.protocol));
  text += " verb " + std::to_string(static_cast<int>(command.verb));
  (text += " key <").append(command.key) += ">";
  if (!all_words(command.keys).empty()) text += " keys " + all_words(command.keys);
  if (!command.is_last) text += " not last";
  (text += " arguments ") += all_words(Words(command.arguments));
  text += " flags " + std::to_string(command.flags) + " value " + std::to_string(command.value_bytes);
  if (command.has_exptime) text += " exptime " + std::to_string(command.exptime);
  if (command.creates) text += " creates " + std::to_string(command.create_exptime);
  if (command.has_cas) text += " cas " + std::to_string(command.cas);
  if (command.has_own_cas) text += " own cas " + std::to_string(command.own_cas);
  text += " number " + std::to_string(command.number) + " initial " + std::to_string(command.initial);
  for (const auto& [is_set, what] :
       {std::pair{command.is_quiet, " quiet"}, std::pair{command.wants_key, " wants key"},
        std::pair{command.wants_cas, " wants cas"}})
    if (is_set) text += what;
  text += " opcode " + std::to_string(command.opcode) + " opaque " + std::to_string(command.opaque);
  text += " meta ";
  for (char letter = 'A'; letter <= 'z'; ++letter)
    if (command.meta.has(letter)) text += letter;
  (text += " replied ").append(command.meta.replied());
  ((text += " key <").append(command.meta.key) += "> opaque <").append(command.meta.opaque) += ">";
  return text + " recache " + std::to_string(command.meta.recache_exptime);
}

inline std::string describe(const Parsed& parsed, const Command& command) {
  if (parsed.outcome == Outcome::kCommand) return describe(command);
  const Refusal& refusal = parsed.refusal;
  std::string text = "refused <" + std::string(refusal.text) + ">";
  text += " status " + std::to_string(static_cast<int>(refusal.status));
  text += " swallow " + std::to_string(refusal.swallow_bytes);
  if (refusal.drops_key) (text += " drops <").append(command.key) += '>';
  if (refusal.closes) text += " closes";
  return text;
}

// What a connection does with what it receives, but for executing it. `Next` is a parser:
// Parsed(std::string_view, Command&).
template <class Next>
class Reader {
 public:
  explicit Reader(Next next) : next_(std::move(next)) {}

  void receive(std::string_view piece) {
    buffer_ += piece;
    while (!is_closed_) {
      if (!skip_values()) return;
      Command command;
      const Parsed parsed = next_(std::string_view(buffer_), command);
      CHECK_LE(parsed.consumed_bytes, buffer_.size());
      if (parsed.outcome != Outcome::kMore) lines_.push_back(describe(parsed, command));
      const bool text_ends = command.protocol != Protocol::kBinary;
      buffer_.erase(0, parsed.consumed_bytes);
      consumed_bytes_ += parsed.consumed_bytes;
      if (parsed.outcome == Outcome::kMore && parsed.consumed_bytes == 0) return;
      is_closed_ = parsed.refusal.closes;
      skip_bytes_ = parsed.refusal.swallow_bytes;
      if (parsed.outcome == Outcome::kCommand && takes_value(command.verb))
        skip_bytes_ = command.value_bytes + (text_ends ? kBlockEndBytes : 0);
    }
  }

  const std::vector<std::string>& lines() const { return lines_; }
  bool is_closed() const { return is_closed_; }
  size_t consumed_bytes() const { return consumed_bytes_; }  // values included
  size_t waiting_bytes() const { return buffer_.size(); }    // of a request that is not whole

 private:
  // False: more of it is to come.
  bool skip_values() {
    const size_t skipped = static_cast<size_t>(std::min<uint64_t>(skip_bytes_, buffer_.size()));
    buffer_.erase(0, skipped);
    consumed_bytes_ += skipped;
    skip_bytes_ -= skipped;
    return skip_bytes_ == 0;
  }

  Next next_;
  std::string buffer_;
  std::vector<std::string> lines_;
  uint64_t skip_bytes_ = 0;
  size_t consumed_bytes_ = 0;
  bool is_closed_ = false;
};

inline auto text_reader(uint64_t item_bytes_max = kDefaultMaxItemBytes) {
  return Reader([parser = TextParser(item_bytes_max)](std::string_view input, Command& command) mutable {
    return parser.next(input, command);
  });
}

inline auto binary_reader(uint64_t item_bytes_max = kDefaultMaxItemBytes) {
  return Reader([item_bytes_max](std::string_view input, Command& command) {
    return parse_binary(input, item_bytes_max, command);
  });
}

// Checks that the stream means the same in two pieces, and byte by byte, as it did as a whole. `fresh` has
// read nothing.
template <class Next>
void check_pieces(const auto& whole, const Reader<Next>& fresh, std::string_view stream, size_t split) {
  Reader<Next> halves = fresh, bytes = fresh;
  halves.receive(stream.substr(0, split));
  halves.receive(stream.substr(split));
  for (const char& c : stream) bytes.receive({&c, 1});
  for (const Reader<Next>* pieces : {&halves, &bytes}) {
    CHECK(pieces->lines() == whole.lines());
    CHECK_EQ(pieces->is_closed(), whole.is_closed());
  }
}

}  // namespace server::memcache
