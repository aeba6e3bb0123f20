#include "server/memcache/text.h"

#include "server/memcache/classic.h"
#include "server/memcache/messages.h"
#include "server/memcache/meta.h"

namespace server::memcache {
namespace {

constexpr size_t kNone = std::string_view::npos;

// The part of a line that counts, without its end.
std::string_view content(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line.substr(0, line.find('\0'));
}

}  // namespace

Parsed TextParser::next(std::string_view input, Command& command) {
  command = {};
  switch (state_) {
    case State::kLine: return next_line(input, command);
    case State::kKeys: return next_keys(input, command);
    case State::kRest: return skip_rest(input);
  }
}

// This is an outcome of its own, so that the line of a command may be parsed again from its beginning.
Parsed TextParser::skip_rest(std::string_view input) {
  const size_t end = input.find('\n');
  if (end == kNone) return Parsed().consuming(input.size());
  state_ = State::kLine;
  return Parsed().consuming(end + 1);
}

Parsed TextParser::next_line(std::string_view input, Command& command) {
  const size_t end = input.substr(0, kMaxLineBytes + 1).find('\n');
  if (end == kNone) return input.size() <= kMaxLineBytes ? Parsed{} : begin_keys(input, command);
  return parse_line(content(input.substr(0, end)), command).consuming(end + 1);
}

Parsed TextParser::parse_line(std::string_view line, Command& command) {
  const std::string_view verb = Words(line).next();
  if (verb.size() == 2 && verb[0] == 'm')
    return parse_meta(line, item_bytes_max_, std::span(key_buffer_), command);
  return parse_classic(line, item_bytes_max_, command);
}

// A line that is longer than those of commands other than get and gets may be.
Parsed TextParser::begin_keys(std::string_view input, Command& command) {
  constexpr size_t kMaxBlanks = 100;
  const size_t blanks = input.find_first_not_of(' ');
  const std::string_view line = blanks <= kMaxBlanks ? input.substr(blanks) : std::string_view();
  wants_cas_ = line.starts_with("gets ");
  if (!wants_cas_ && !line.starts_with("get ")) {
    Parsed refused = refuse(messages::kLineTooLong);
    refused.refusal.closes = true;
    return refused.consuming(input.size());
  }
  state_ = State::kKeys;
  had_keys_ = false;
  const size_t begin = blanks + (wants_cas_ ? 5 : 4);
  return next_keys(input.substr(begin), command).consuming(begin);
}

Parsed TextParser::next_keys(std::string_view input, Command& command) {
  size_t consumed_bytes = 0;
  for (;;) {  // once for each part without a key, which consumes something
    const std::string_view window = input.substr(consumed_bytes, kMaxLineBytes + 1);
    const size_t end = window.find('\n');
    if (end == kNone && window.size() <= kMaxLineBytes) return Parsed().consuming(consumed_bytes);
    // Cut at the line's end, or else at the last blank; without one it is a key that is too long.
    const size_t cut = end != kNone ? end : window.substr(0, kMaxLineBytes).rfind(' ');
    const std::string_view part = cut != kNone ? window.substr(0, cut) : window;
    const std::string_view keys = end != kNone ? content(part) : part.substr(0, part.find('\0'));
    consumed_bytes += cut != kNone ? cut + 1 : window.size();
    const bool is_last = end != kNone || keys.size() < part.size();
    if (is_last) state_ = end != kNone ? State::kLine : State::kRest;

    const bool has_keys = !Words(keys).next().empty();
    if (has_long_key(Words(keys))) {
      if (end == kNone) state_ = State::kRest;
      return refuse(messages::kBadFormat).consuming(consumed_bytes);
    }
    if (!has_keys && !is_last) continue;
    had_keys_ = had_keys_ || has_keys;
    if (!had_keys_) return refuse(messages::kError).consuming(consumed_bytes);
    command.verb = Verb::kGet;
    command.wants_cas = wants_cas_;
    command.keys = Words(keys);
    command.is_last = is_last;
    return accept().consuming(consumed_bytes);
  }
}

}  // namespace server::memcache
