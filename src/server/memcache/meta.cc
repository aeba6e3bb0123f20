#include "server/memcache/meta.h"

#include "base/check.h"
#include "server/memcache/base64.h"
#include "server/memcache/messages.h"
#include "server/text.h"

namespace server::memcache {
namespace {

constexpr size_t kMaxWords = 17;  // behind the key; with more there are too many flags
constexpr std::string_view kNoMistake;

bool has_more_than(size_t count, Words words) {
  for (size_t i = 0; i <= count; ++i)
    if (words.next().empty()) return false;
  return true;
}

bool decode_key(std::span<char> key_buffer, Command& command) {
  const size_t key_bytes = decode_base64(command.key, key_buffer);
  command.key = {key_buffer.data(), key_bytes};
  return key_bytes > 0;
}

template <class Number>
std::string_view read_number(std::string_view word, Number& to, std::string_view mistake) {
  const auto number = parse_number<Number>(word);
  if (!number) return mistake;
  to = *number;
  return kNoMistake;
}

// Reads one flag. Returns what is wrong with its argument. `mode`: the argument of M.
std::string_view read_flag(char letter, std::string_view argument, std::span<char> key_buffer,
                           Command& command, char& mode) {
  switch (letter) {
    case 'b': return decode_key(key_buffer, command) ? kNoMistake : messages::kBadKey;
    case 'q': command.is_quiet = true; return kNoMistake;
    case 'O': command.meta.opaque = argument; return kNoMistake;
    case 'F': return read_number(argument, command.flags, messages::kBadFormat);
    case 'T':
      command.has_exptime = true;
      command.meta.note_touch();
      return read_number(argument, command.exptime, messages::kBadToken);
    case 'N':
      command.creates = true;
      command.meta.note_making();
      return read_number(argument, command.create_exptime, messages::kBadToken);
    case 'R': return read_number(argument, command.meta.recache_exptime, messages::kBadToken);
    case 'C': command.has_cas = true; return read_number(argument, command.cas, messages::kBadToken);
    case 'E': command.has_own_cas = true; return read_number(argument, command.own_cas, messages::kBadToken);
    case 'D': return read_number(argument, command.number, messages::kBadDeltaFlag);
    case 'J': return read_number(argument, command.initial, messages::kBadInitial);
    case 'M':
      if (argument.size() != 1) return messages::kBadModeLength;
      mode = argument[0];
      return kNoMistake;
    default: return kNoMistake;
  }
}

// Reads all flags, in their order. As in memcached it returns the last mistake, and stops at a word that is no flag.
std::string_view read_flags(Words words, std::span<char> key_buffer, Command& command, char& mode) {
  constexpr std::string_view kLetters = "bqOFTNRCEDJMIxkfhlstcvuLP";
  std::string_view mistake = kNoMistake;
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
    const char letter = word[0];
    if (static_cast<unsigned char>(letter) >= 127) return messages::kDuplicateFlag;  // so memcached calls it
    if (kLetters.find(letter) == std::string_view::npos) return messages::kInvalidFlag;
    if (command.meta.has(letter)) return messages::kDuplicateFlag;
    command.meta.add(letter);
    const std::string_view wrong = read_flag(letter, word.substr(1), key_buffer, command, mode);
    if (mistake.empty() || (!wrong.empty() && letter != 'F'))
      mistake = wrong;  // a bad F hides no other mistake
  }
  return mistake;
}

bool is_opaque_too_long(const Command& command) {
  return command.meta.opaque.size() > MetaFlags::kMaxOpaqueBytes;
}

// The verb of an ms with this mode. False: there is no such mode.
bool set_store_verb(char mode, Command& command) {
  switch (mode) {
    case 'S':
    case 0: command.verb = command.has_cas ? Verb::kCas : Verb::kSet; return true;
    case 'R': command.verb = command.has_cas ? Verb::kCas : Verb::kReplace; return true;
    case 'E': command.verb = Verb::kAdd; return true;
    case 'A': command.verb = Verb::kAppend; return true;
    case 'P': command.verb = Verb::kPrepend; return true;
    default: return false;
  }
}

bool set_change_verb(char mode, Command& command) {
  switch (mode) {
    case 0:
    case 'I':
    case '+': command.verb = Verb::kIncr; return true;
    case 'D':
    case '-': command.verb = Verb::kDecr; return true;
    default: return false;
  }
}

Parsed parse_get(Words words, std::span<char> key_buffer, Command& command) {
  command.verb = Verb::kGet;
  if (has_more_than(kMaxWords, words)) return refuse(messages::kGetFlagsTooLong);
  char mode = 0;  // has no meaning here
  if (const auto mistake = read_flags(words, key_buffer, command, mode); !mistake.empty())
    return refuse(mistake);
  return is_opaque_too_long(command) ? refuse(messages::kOpaqueTooLong) : accept();
}

Parsed parse_store(Words words, uint64_t item_bytes_max, std::span<char> key_buffer, Command& command) {
  command.verb = Verb::kSet;
  const bool has_too_many = has_more_than(kMaxWords, words);
  const std::string_view length = words.next();
  if (length.empty()) return refuse(messages::kBadFormat);
  if (has_too_many) return refuse(messages::kFlagsTooLong);
  const auto value_bytes = parse_number<uint64_t>(length);
  if (!value_bytes || *value_bytes > kMaxValueBytes) return refuse(messages::kBadFormat);
  command.value_bytes = *value_bytes;

  char mode = 0;
  std::string_view mistake = read_flags(words, key_buffer, command, mode);
  if (mistake.empty() && !set_store_verb(mode, command)) mistake = messages::kBadStoreMode;
  if (mistake.empty() && is_opaque_too_long(command)) mistake = messages::kOpaqueTooLong;
  const bool is_too_large =
      mistake.empty() && !item_fits(command.key.size(), command.flags, command.value_bytes, item_bytes_max);
  if (mistake.empty() && !is_too_large) return accept();
  Parsed refused = refuse(is_too_large ? messages::kTooLarge : mistake);
  refused.refusal.swallow_bytes = command.value_bytes + kBlockEndBytes;
  refused.refusal.drops_key = is_too_large;
  return refused;
}

Parsed parse_delete(Words words, std::span<char> key_buffer, Command& command) {
  command.verb = Verb::kDelete;
  if (has_more_than(kMaxWords, words)) return refuse(messages::kFlagsTooLong);
  char mode = 0;  // has no meaning here
  if (!read_flags(words, key_buffer, command, mode).empty()) return refuse(messages::kBadFlags);
  return is_opaque_too_long(command) ? refuse(messages::kOpaqueTooLong) : accept();
}

Parsed parse_change(Words words, std::span<char> key_buffer, Command& command) {
  command.verb = Verb::kIncr;
  command.number = 1;
  if (has_more_than(kMaxWords, words)) return refuse(messages::kFlagsTooLong);
  char mode = 0;
  if (!read_flags(words, key_buffer, command, mode).empty()) return refuse(messages::kBadFlags);
  if (!set_change_verb(mode, command)) return refuse(messages::kBadNumberMode);
  return is_opaque_too_long(command) ? refuse(messages::kOpaqueTooLong) : accept();
}

// Only a first flag that is just "b" says that the key is in base64.
Parsed parse_debug(Words words, std::span<char> key_buffer, Command& command) {
  command.verb = Verb::kMetaDebug;
  if (words.next() != "b") return accept();
  command.meta.add('b');
  return decode_key(key_buffer, command) ? accept() : refuse(messages::kBadFormat);
}

}  // namespace

Parsed parse_meta(std::string_view line, uint64_t item_bytes_max, std::span<char> key_buffer,
                  Command& command) {
  CHECK_GE(key_buffer.size(), kMaxKeyBytes);
  Words words(line);
  const std::string_view verb = words.next();
  CHECK(verb.size() == 2 && verb[0] == 'm');
  const char kind = verb[1];
  command.protocol = Protocol::kMeta;
  if (kind == 'n') {
    command.verb = Verb::kNoop;
    return accept();
  }
  if (std::string_view("gsdae").find(kind) == std::string_view::npos) return refuse(messages::kError);
  command.key = command.meta.key = words.next();
  if (command.key.empty()) return refuse(kind == 'e' ? messages::kBadFormat : messages::kError);
  if (command.key.size() > kMaxKeyBytes) return refuse(messages::kBadFormat);
  switch (kind) {
    case 'g': return parse_get(words, key_buffer, command);
    case 's': return parse_store(words, item_bytes_max, key_buffer, command);
    case 'd': return parse_delete(words, key_buffer, command);
    case 'a': return parse_change(words, key_buffer, command);
    default: return parse_debug(words, key_buffer, command);
  }
}

}  // namespace server::memcache
