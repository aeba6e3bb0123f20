#include "server/memcache/classic.h"

#include <algorithm>

#include "server/memcache/messages.h"
#include "server/text.h"

namespace server::memcache {
namespace {

// The words of a line, as many as memcached looks at. Only commands of many keys have more.
struct Line {
  static constexpr size_t kMaxWords = 23;
  std::string_view words[kMaxWords] = {};  // the verb first
  size_t count = 0;
  std::string_view arguments;  // all behind the verb
  uint64_t item_bytes_max = 0;

  Line(std::string_view text, uint64_t bytes_max) : item_bytes_max(bytes_max) {
    Words rest(text);
    words[0] = rest.next();
    count = words[0].empty() ? 0 : 1;
    arguments = rest.rest();
    while (count > 0 && count < kMaxWords) {
      words[count] = rest.next();
      if (words[count].empty()) break;
      ++count;
    }
  }
  std::string_view last() const { return words[count - 1]; }
};

// Refuses a command that may have noreply.
Parsed refuse_unless_quiet(const Command& command, std::string_view text) {
  return refuse(command.is_quiet ? std::string_view() : text);
}

template <class Number>
bool read_number(std::string_view word, Number& to) {
  const auto number = parse_number<Number>(word);
  if (number) to = *number;
  return number.has_value();
}

// The key, words[1]. False: too long.
bool read_key(const Line& line, Command& command) {
  command.key = line.words[1];
  return command.key.size() <= kMaxKeyBytes;
}

// get KEY..., gets KEY...
Parsed parse_get(const Line& line, Command& command) {
  command.wants_cas = line.words[0] == "gets";
  command.keys = Words(line.arguments);
  return has_long_key(command.keys) ? refuse(messages::kBadFormat) : accept();
}

// gat EXPTIME KEY..., gats EXPTIME KEY...
Parsed parse_gat(const Line& line, Command& command) {
  command.wants_cas = line.words[0] == "gats";
  command.keys = Words(line.arguments);
  command.has_exptime = true;
  if (!read_number(command.keys.next(), command.exptime)) return refuse(messages::kBadExptime);
  return has_long_key(command.keys) ? refuse(messages::kBadFormat) : accept();
}

// set KEY FLAGS EXPTIME BYTES [noreply], cas KEY FLAGS EXPTIME BYTES CAS [noreply]
Parsed parse_store(const Line& line, Command& command) {
  command.has_exptime = true;
  command.has_cas = command.verb == Verb::kCas;
  const bool is_good =
      read_key(line, command) && read_number(line.words[2], command.flags) &&
      read_number(line.words[3], command.exptime) && read_number(line.words[4], command.value_bytes) &&
      command.value_bytes <= kMaxValueBytes && (!command.has_cas || read_number(line.words[5], command.cas));
  if (!is_good) return refuse_unless_quiet(command, messages::kBadFormat);
  if (item_fits(command.key.size(), command.flags, command.value_bytes, line.item_bytes_max)) return accept();
  Parsed refused = refuse_unless_quiet(command, messages::kTooLarge);
  refused.refusal.swallow_bytes = command.value_bytes + kBlockEndBytes;
  refused.refusal.drops_key = command.verb == Verb::kSet;
  return refused;
}

// delete KEY [0] [noreply]: the 0 was once a time that the key would stay locked for.
Parsed parse_delete(const Line& line, Command& command) {
  if (line.count == 2) command.is_quiet = false;  // the word is the key
  const bool has_zero = line.count > 2 && line.words[2] == "0";
  if (line.count != size_t{2} + has_zero + command.is_quiet)
    return refuse_unless_quiet(command, messages::kDeleteUsage);
  return read_key(line, command) ? accept() : refuse_unless_quiet(command, messages::kBadFormat);
}

// incr KEY DELTA [noreply], decr KEY DELTA [noreply]
Parsed parse_change(const Line& line, Command& command) {
  if (!read_key(line, command)) return refuse_unless_quiet(command, messages::kBadFormat);
  return read_number(line.words[2], command.number) ? accept()
                                                    : refuse_unless_quiet(command, messages::kBadDelta);
}

// touch KEY EXPTIME [noreply]
Parsed parse_touch(const Line& line, Command& command) {
  if (!read_key(line, command)) return refuse_unless_quiet(command, messages::kBadFormat);
  command.has_exptime = true;
  return read_number(line.words[2], command.exptime) ? accept()
                                                     : refuse_unless_quiet(command, messages::kBadExptime);
}

// flush_all [DELAY] [noreply]
Parsed parse_flush(const Line& line, Command& command) {
  if (line.count == size_t{1} + command.is_quiet) return accept();
  command.has_exptime = true;
  return read_number(line.words[1], command.exptime) ? accept()
                                                     : refuse_unless_quiet(command, messages::kBadExptime);
}

// verbosity LEVEL [noreply]
Parsed parse_verbosity(const Line& line, Command& command) {
  return read_number(line.words[1], command.number) ? accept()
                                                    : refuse_unless_quiet(command, messages::kBadFormat);
}

Parsed parse_others(const Line& line, Command& command) {
  command.arguments = line.arguments;
  return accept();
}

struct Known {
  std::string_view name;
  Verb verb;
  uint8_t words_min, words_max;  // with the verb and noreply
  bool takes_noreply;            // as the last word
  Parsed (*parse)(const Line&, Command&);
};

constexpr uint8_t kAny = Line::kMaxWords;
// The most frequent ones come first.
constexpr Known kKnown[] = {
    {"get", Verb::kGet, 2, kAny, false, parse_get},
    {"set", Verb::kSet, 5, 6, true, parse_store},
    {"gets", Verb::kGet, 2, kAny, false, parse_get},
    {"cas", Verb::kCas, 6, 7, true, parse_store},
    {"delete", Verb::kDelete, 2, 4, true, parse_delete},
    {"incr", Verb::kIncr, 3, 4, true, parse_change},
    {"add", Verb::kAdd, 5, 6, true, parse_store},
    {"replace", Verb::kReplace, 5, 6, true, parse_store},
    {"append", Verb::kAppend, 5, 6, true, parse_store},
    {"prepend", Verb::kPrepend, 5, 6, true, parse_store},
    {"decr", Verb::kDecr, 3, 4, true, parse_change},
    {"touch", Verb::kTouch, 3, 4, true, parse_touch},
    {"gat", Verb::kGat, 2, kAny, false, parse_gat},
    {"gats", Verb::kGat, 2, kAny, false, parse_gat},
    {"bget", Verb::kGet, 2, kAny, false, parse_get},  // an old name of get
    {"flush_all", Verb::kFlushAll, 1, 3, true, parse_flush},
    {"version", Verb::kVersion, 1, kAny, false, parse_others},
    {"verbosity", Verb::kVerbosity, 2, 3, true, parse_verbosity},
    {"quit", Verb::kQuit, 1, kAny, false, parse_others},
    {"stats", Verb::kStats, 1, kAny, false, parse_others},
    {"shutdown", Verb::kShutdown, 1, kAny, false, parse_others},
    {"slabs", Verb::kSlabs, 1, kAny, true, parse_others},
    {"lru_crawler", Verb::kLruCrawler, 1, kAny, false, parse_others},
    {"lru", Verb::kLru, 2, kAny, true, parse_others},
    {"cache_memlimit", Verb::kCacheMemlimit, 2, 3, true, parse_others},
    {"extstore", Verb::kExtstore, 2, kAny, true, parse_others},
    {"watch", Verb::kWatch, 1, kAny, true, parse_others},
    {"debugtime", Verb::kDebugTime, 2, 2, false, parse_others},
};

}  // namespace

bool has_long_key(Words keys) {
  for (std::string_view key = keys.next(); !key.empty(); key = keys.next())
    if (key.size() > kMaxKeyBytes) return true;
  return false;
}

Parsed parse_classic(std::string_view text, uint64_t item_bytes_max, Command& command) {
  const Line line(text, item_bytes_max);
  if (line.count == 0) return refuse(messages::kError);
  const auto known = std::ranges::find(kKnown, line.words[0], &Known::name);
  if (known == std::end(kKnown)) {
    if (!line.last().starts_with("HTTP/")) return refuse(messages::kError);
    Parsed refused = refuse(std::string_view());
    refused.refusal.closes = true;
    return refused;
  }
  if (line.count < known->words_min || line.count > known->words_max) return refuse(messages::kError);
  command.protocol = Protocol::kClassic;
  command.verb = known->verb;
  command.is_quiet = known->takes_noreply && line.last() == "noreply";
  return known->parse(line, command);
}

}  // namespace server::memcache
