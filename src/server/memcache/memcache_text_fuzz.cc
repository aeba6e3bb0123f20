// Fuzzes TextParser. The first byte of an input chooses where the rest, a stream, is split, and the largest
// item: the stream means the same in pieces; at most one line of it waits for more; and a command written as a line again
// parses to the same command. Where clients authenticate first, what is decided from a piece of it holds for all of it.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "server/memcache/classic.h"
#include "server/memcache/credentials.h"
#include "server/memcache/meta.h"
#include "server/memcache/test_transcript.h"

namespace {

using namespace server::memcache;

constexpr const char* kNames[] = {
    "get",       "gat",      "touch",  "set",         "add",  "replace",        "append",
    "prepend",   "cas",      "delete", "incr",        "decr", "flush_all",      "version",
    "verbosity", "",         "quit",   "stats",       "",     "shutdown",       "",
    "",          "",         "slabs",  "lru_crawler", "lru",  "cache_memlimit", "extstore",
    "watch",     "debugtime"};
static_assert(std::size(kNames) == static_cast<size_t>(Verb::kDebugTime) + 1);

std::string words_of(Words words) {
  std::string text;
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) (text += ' ').append(word);
  return text;
}

std::string classic_line(const Command& command) {
  std::string line = kNames[static_cast<size_t>(command.verb)];
  const std::string exptime = ' ' + std::to_string(command.exptime);
  const std::string key = ' ' + std::string(command.key);
  if (command.wants_cas) line += 's';
  if (command.verb == Verb::kGet) return line + words_of(command.keys);
  if (command.verb == Verb::kGat) return line + exptime + words_of(command.keys);
  if (command.verb > Verb::kVerbosity || command.verb == Verb::kVersion)
    return line + std::string(command.arguments);
  if (takes_value(command.verb)) {
    line += key + ' ' + std::to_string(command.flags) + exptime + ' ' + std::to_string(command.value_bytes);
    if (command.has_cas) line += ' ' + std::to_string(command.cas);
  } else {
    if (command.verb == Verb::kDelete) line += key;
    if (command.verb == Verb::kTouch) line += key + exptime;
    if (command.verb == Verb::kIncr || command.verb == Verb::kDecr)
      line += key + ' ' + std::to_string(command.number);
    if (command.verb == Verb::kVerbosity) line += ' ' + std::to_string(command.number);
    if (command.verb == Verb::kFlushAll && command.has_exptime) line += exptime;
  }
  return command.is_quiet ? line + " noreply" : line;
}

char mode_of(Verb verb) {
  switch (verb) {
    case Verb::kAdd: return 'E';
    case Verb::kReplace: return 'R';
    case Verb::kAppend: return 'A';
    case Verb::kPrepend: return 'P';
    case Verb::kIncr: return 'I';
    case Verb::kDecr: return 'D';
    default: return 'S';
  }
}

std::string flag_of(char letter, const Command& command) {
  switch (letter) {
    case 'O': return "O" + std::string(command.meta.opaque);
    case 'F': return "F" + std::to_string(command.flags);
    case 'T': return "T" + std::to_string(command.exptime);
    case 'N': return "N" + std::to_string(command.create_exptime);
    case 'R': return "R" + std::to_string(command.meta.recache_exptime);
    case 'C': return "C" + std::to_string(command.cas);
    case 'E': return "E" + std::to_string(command.own_cas);
    case 'D': return "D" + std::to_string(command.number);
    case 'J': return "J" + std::to_string(command.initial);
    case 'M': return std::string("M") + mode_of(command.verb);
    default: return {letter};
  }
}

std::string meta_line(const Command& command) {
  std::string line = "mg";
  if (takes_value(command.verb)) line = "ms";
  if (command.verb == Verb::kDelete) line = "md";
  if (command.verb == Verb::kIncr || command.verb == Verb::kDecr) line = "ma";
  if (command.verb == Verb::kMetaDebug) line = "me";
  if (command.verb == Verb::kNoop) return "mn";
  (line += ' ').append(command.meta.key);
  if (takes_value(command.verb)) line += ' ' + std::to_string(command.value_bytes);
  for (const char letter : command.meta.replied()) line += ' ' + flag_of(letter, command);
  for (char letter = 'A'; letter <= 'z'; ++letter)
    if (command.meta.has(letter) && MetaFlags::kReplied.find(letter) == std::string_view::npos)
      line += ' ' + flag_of(letter, command);
  return line;
}

// `command` is one that was parsed; of a get in parts it may have no key.
void check_command(const Command& command, uint64_t item_bytes_max) {
  CHECK_LE(command.key.size(), kMaxKeyBytes);
  CHECK(!has_long_key(command.keys));
  if (takes_value(command.verb)) {
    CHECK(!command.key.empty());
    CHECK(item_fits(command.key.size(), command.flags, command.value_bytes, item_bytes_max));
  }
  if (!command.is_last || (command.verb == Verb::kGet && command.protocol == Protocol::kClassic &&
                           words_of(command.keys).empty()))
    return;
  Command again;
  char key_buffer[kMaxKeyBytes];
  const bool is_meta = command.protocol == Protocol::kMeta;
  const std::string line = is_meta ? meta_line(command) : classic_line(command);
  const Parsed parsed = is_meta ? parse_meta(line, item_bytes_max, std::span(key_buffer), again)
                                : parse_classic(line, item_bytes_max, again);
  CHECK(parsed.outcome == Outcome::kCommand);
  CHECK(describe(again) == describe(command));
}

void check_credentials(std::string_view stream, size_t split) {
  Credentials first, all;
  const Parsed of_piece = parse_credentials(stream.substr(0, split), first);
  const Parsed of_all = parse_credentials(stream, all);
  CHECK_LE(of_all.consumed_bytes, kMaxLineBytes + 1 + kMaxCredentialsBytes + kBlockEndBytes);
  if (of_piece.outcome == Outcome::kMore) return;
  CHECK(of_piece.outcome == of_all.outcome);
  CHECK_EQ(of_piece.consumed_bytes, of_all.consumed_bytes);
  CHECK(of_piece.refusal.text == of_all.refusal.text);
  CHECK(first.user == all.user && first.password == all.password);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const uint64_t item_bytes_max = (data[0] & 1) != 0 ? kDefaultMaxItemBytes : 100;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 1, size - 1);
  Reader whole([&, parser = TextParser(item_bytes_max)](std::string_view input, Command& command) mutable {
    const Parsed parsed = parser.next(input, command);
    if (parsed.outcome == Outcome::kCommand) check_command(command, item_bytes_max);
    return parsed;
  });
  whole.receive(stream);
  CHECK_LE(whole.is_closed() ? 0 : whole.waiting_bytes(), kMaxLineBytes);

  const size_t split = stream.size() * data[0] / 256;
  check_pieces(whole, text_reader(item_bytes_max), stream, split);
  check_credentials(stream, split);
  return 0;
}
