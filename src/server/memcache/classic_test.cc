#include "server/memcache/classic.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>

#include "server/memcache/messages.h"
#include "server/memcache/test_transcript.h"

namespace server::memcache {
namespace {

Parsed parse(std::string_view line, Command& command) {
  static std::deque<std::string> lines;  // what commands refer to
  command = {};
  const Parsed parsed = parse_classic(lines.emplace_back(line), kDefaultMaxItemBytes, command);
  EXPECT_EQ(parsed.consumed_bytes, 0u);
  EXPECT_NE(parsed.outcome, Outcome::kMore);
  return parsed;
}

Command accept(std::string_view line) {
  Command command;
  const Parsed parsed = parse(line, command);
  EXPECT_EQ(parsed.outcome, Outcome::kCommand) << line << ": " << parsed.refusal.text;
  EXPECT_EQ(command.protocol, Protocol::kClassic);
  return command;
}

// What is refused without swallowing or closing.
std::string refusal(std::string_view line) {
  Command command;
  const Parsed parsed = parse(line, command);
  EXPECT_EQ(parsed.outcome, Outcome::kRefused) << line;
  EXPECT_EQ(parsed.refusal.swallow_bytes, 0u) << line;
  EXPECT_FALSE(parsed.refusal.closes) << line;
  EXPECT_FALSE(parsed.refusal.drops_key) << line;
  return std::string(parsed.refusal.text);
}

const std::string kLongestKey(250, 'k');
const std::string kTooLongKey(251, 'k');

TEST(Classic, Gets) {
  for (const char* name : {"get", "gets", "bget"}) {
    Command command = accept(std::string(name) + " a  b\tc " + kLongestKey);
    EXPECT_EQ(command.verb, Verb::kGet);
    EXPECT_EQ(command.wants_cas, std::string_view(name) == "gets");
    EXPECT_EQ(all_words(command.keys), "<a><b\tc><" + kLongestKey + ">");
    EXPECT_TRUE(command.is_last);
    EXPECT_FALSE(command.has_exptime);
    EXPECT_EQ(refusal(name), "ERROR");
    EXPECT_EQ(refusal(std::string(name) + "  "), "ERROR");
    EXPECT_EQ(refusal(std::string(name) + " a " + kTooLongKey + " b"),
              "CLIENT_ERROR bad command line format");
  }
  // Words of a get are keys, whatever they say.
  EXPECT_EQ(all_words(accept("get a noreply").keys), "<a><noreply>");
  EXPECT_FALSE(accept("get a noreply").is_quiet);
  std::string many = "get";
  for (int i = 0; i < 500; ++i) many += " k" + std::to_string(i);
  const std::string keys = all_words(accept(many).keys);
  EXPECT_TRUE(keys.starts_with("<k0><k1>") && keys.ends_with("<k498><k499>"));
}

TEST(Classic, GetsThatTouch) {
  for (const char* name : {"gat", "gats"}) {
    Command command = accept(std::string(name) + " -5 a b");
    EXPECT_EQ(command.verb, Verb::kGat);
    EXPECT_EQ(command.wants_cas, std::string_view(name) == "gats");
    EXPECT_TRUE(command.has_exptime);
    EXPECT_EQ(command.exptime, -5);
    EXPECT_EQ(all_words(command.keys), "<a><b>");
    EXPECT_EQ(refusal(name), "ERROR");
    EXPECT_EQ(refusal(std::string(name) + " x a"), "CLIENT_ERROR invalid exptime argument");
    EXPECT_EQ(refusal(std::string(name) + " 1 " + kTooLongKey), "CLIENT_ERROR bad command line format");
    // Without a key the answer is END.
    EXPECT_EQ(all_words(accept(std::string(name) + " 1").keys), "");
  }
}

TEST(Classic, Stores) {
  const std::pair<const char*, Verb> kStores[] = {{"set", Verb::kSet},
                                                  {"add", Verb::kAdd},
                                                  {"replace", Verb::kReplace},
                                                  {"append", Verb::kAppend},
                                                  {"prepend", Verb::kPrepend}};
  for (const auto& [text, verb] : kStores) {
    const std::string name = text;
    Command command = accept(name + " key 4294967295 -12 34");
    EXPECT_EQ(command.verb, verb);
    EXPECT_TRUE(takes_value(command.verb));
    EXPECT_EQ(command.key, "key");
    EXPECT_EQ(command.flags, UINT32_MAX);
    EXPECT_TRUE(command.has_exptime);
    EXPECT_EQ(command.exptime, -12);
    EXPECT_EQ(command.value_bytes, 34u);
    EXPECT_FALSE(command.has_cas);
    EXPECT_FALSE(command.is_quiet);
    EXPECT_TRUE(accept(name + " key 0 0 0 noreply").is_quiet);
    EXPECT_FALSE(accept(name + " key 0 0 0 Noreply").is_quiet);
    EXPECT_EQ(accept(joined(name, " ", kLongestKey, " 0 0 0")).key, kLongestKey);
    for (const char* words : {"", " k", " k 0", " k 0 0", " k 0 0 0 noreply x"})
      EXPECT_EQ(refusal(name + words), "ERROR") << words;
    for (const char* words :
         {" k -1 0 0", " k 4294967296 0 0", " k x 0 0", " k 0 x 0", " k 0 9223372036854775808 0", " k 0 0 -1",
          " k 0 0 x", " k 0 0 2147483646", " k 0 0 4294967300"})
      EXPECT_EQ(refusal(name + words), "CLIENT_ERROR bad command line format") << words;
    EXPECT_EQ(refusal(joined(name, " ", kTooLongKey, " 0 0 0")), "CLIENT_ERROR bad command line format");
    EXPECT_EQ(refusal(name + " k x 0 0 noreply"), "");
    EXPECT_EQ(refusal(name + " k 0 0 noreply"), "");
  }
}

TEST(Classic, Cas) {
  Command command = accept("cas k 1 2 3 18446744073709551615");
  EXPECT_EQ(command.verb, Verb::kCas);
  EXPECT_TRUE(command.has_cas);
  EXPECT_EQ(command.cas, UINT64_MAX);
  EXPECT_EQ(command.value_bytes, 3u);
  EXPECT_TRUE(accept("cas k 1 2 3 0 noreply").is_quiet);
  EXPECT_EQ(refusal("cas k 1 2 3"), "ERROR");
  EXPECT_EQ(refusal("cas k 1 2 3 4 noreply x"), "ERROR");
  for (const char* words :
       {"x 0 0 0", "0 x 0 0", "0 0 x 0", "0 0 0 x", "0 0 0 -1", "0 0 0 18446744073709551616"})
    EXPECT_EQ(refusal(std::string("cas k ") + words), "CLIENT_ERROR bad command line format") << words;
}

TEST(Classic, ValuesThatAreTooLargeAreSwallowed) {
  // 48 + 8 + 1 + 2 bytes beside key and value, and 4 for flags.
  constexpr uint64_t kMax = (1 << 20) - 59 - 1;
  for (const char* name : {"set", "add", "cas"}) {
    for (const bool has_flags : {false, true}) {
      const std::string cas = std::string_view(name) == "cas" ? " 7" : "";
      const uint64_t most = kMax - (has_flags ? 4 : 0);
      auto line = [&](uint64_t bytes) {
        return std::string(name) + (has_flags ? " k 1 0 " : " k 0 0 ") + std::to_string(bytes) + cas;
      };
      EXPECT_EQ(accept(line(most)).value_bytes, most);
      Command command;
      Parsed parsed = parse(line(most + 1), command);
      ASSERT_EQ(parsed.outcome, Outcome::kRefused);
      EXPECT_EQ(parsed.refusal.text, "SERVER_ERROR object too large for cache");
      EXPECT_EQ(parsed.refusal.swallow_bytes, most + 3);
      EXPECT_EQ(parsed.refusal.drops_key, std::string_view(name) == "set");
      EXPECT_EQ(command.key, "k");
      EXPECT_FALSE(parsed.refusal.closes);
      parsed = parse(line(kMaxValueBytes) + " noreply", command);
      EXPECT_EQ(parsed.refusal.text, "");
      EXPECT_EQ(parsed.refusal.swallow_bytes, kMaxValueBytes + 2);
    }
  }
  Command command;
  EXPECT_EQ(parse_classic("set k 0 0 40", 100, command).outcome, Outcome::kCommand);
  EXPECT_EQ(parse_classic("set k 0 0 41", 100, command).outcome, Outcome::kRefused);
}

TEST(Classic, Deletes) {
  EXPECT_EQ(accept("delete k").verb, Verb::kDelete);
  EXPECT_EQ(accept("delete k").key, "k");
  EXPECT_FALSE(accept("delete k 0").is_quiet);
  EXPECT_TRUE(accept("delete k noreply").is_quiet);
  EXPECT_TRUE(accept("delete k 0 noreply").is_quiet);
  EXPECT_EQ(accept("delete noreply").key, "noreply");
  EXPECT_FALSE(accept("delete noreply").is_quiet);
  for (const char* line : {"delete k 1", "delete k 00", "delete k 0 0", "delete k noreply 0"})
    EXPECT_EQ(refusal(line), "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]") << line;
  EXPECT_EQ(refusal("delete k 5 noreply"), "");
  EXPECT_EQ(refusal("delete k noreply noreply"), "");
  EXPECT_EQ(refusal("delete"), "ERROR");
  EXPECT_EQ(refusal("delete k 0 noreply x"), "ERROR");
  EXPECT_EQ(refusal("delete " + kTooLongKey), "CLIENT_ERROR bad command line format");
  EXPECT_EQ(refusal("delete " + kTooLongKey + " noreply"), "");
}

TEST(Classic, NumbersAndTouches) {
  const std::tuple<const char*, Verb, const char*> kChanges[] = {
      {"incr", Verb::kIncr, "CLIENT_ERROR invalid numeric delta argument"},
      {"decr", Verb::kDecr, "CLIENT_ERROR invalid numeric delta argument"},
      {"touch", Verb::kTouch, "CLIENT_ERROR invalid exptime argument"}};
  for (const auto& [text, verb, mistake] : kChanges) {
    const std::string name = text;
    Command command = accept(name + " k 7");
    EXPECT_EQ(command.verb, verb);
    EXPECT_EQ(command.key, "k");
    EXPECT_EQ(verb == Verb::kTouch ? static_cast<uint64_t>(command.exptime) : command.number, 7u);
    EXPECT_EQ(command.has_exptime, verb == Verb::kTouch);
    EXPECT_FALSE(command.creates);
    EXPECT_TRUE(accept(name + " k 7 noreply").is_quiet);
    EXPECT_FALSE(accept(name + " k 7 x").is_quiet);
    EXPECT_EQ(refusal(name + " k"), "ERROR");
    EXPECT_EQ(refusal(name + " k 7 noreply x"), "ERROR");
    EXPECT_EQ(refusal(name + " k x"), mistake);
    EXPECT_EQ(refusal(name + " k 7x"), mistake);
    EXPECT_EQ(refusal(name + " k 18446744073709551616"), mistake);
    EXPECT_EQ(refusal(name + " k noreply"), "");
    EXPECT_EQ(refusal(joined(name, " ", kTooLongKey, " 1")), "CLIENT_ERROR bad command line format");
  }
  EXPECT_EQ(accept("incr k 18446744073709551615").number, UINT64_MAX);
  EXPECT_EQ(refusal("incr k -1"), "CLIENT_ERROR invalid numeric delta argument");
  EXPECT_EQ(accept("touch k -1").exptime, -1);
}

TEST(Classic, Flushes) {
  EXPECT_EQ(accept("flush_all").verb, Verb::kFlushAll);
  EXPECT_FALSE(accept("flush_all").has_exptime);
  EXPECT_TRUE(accept("flush_all noreply").is_quiet);
  EXPECT_FALSE(accept("flush_all noreply").has_exptime);
  EXPECT_EQ(accept("flush_all 10").exptime, 10);
  EXPECT_EQ(accept("flush_all -1").exptime, -1);
  Command command = accept("flush_all 10 noreply");
  EXPECT_TRUE(command.has_exptime && command.is_quiet);
  EXPECT_EQ(command.exptime, 10);
  EXPECT_EQ(refusal("flush_all x"), "CLIENT_ERROR invalid exptime argument");
  EXPECT_EQ(refusal("flush_all x noreply"), "");
  EXPECT_EQ(refusal("flush_all 0 noreply x"), "ERROR");
}

TEST(Classic, Verbosity) {
  EXPECT_EQ(accept("verbosity 2").verb, Verb::kVerbosity);
  EXPECT_EQ(accept("verbosity 2").number, 2u);
  EXPECT_TRUE(accept("verbosity 2 noreply").is_quiet);
  EXPECT_EQ(refusal("verbosity"), "ERROR");
  EXPECT_EQ(refusal("verbosity 1 2 3"), "ERROR");
  EXPECT_EQ(refusal("verbosity invalid"), "CLIENT_ERROR bad command line format");
  EXPECT_EQ(refusal("verbosity -1"), "CLIENT_ERROR bad command line format");
}

TEST(Classic, AdministrativeOnesHaveArguments) {
  const std::pair<const char*, Verb> kOthers[] = {
      {"version", Verb::kVersion},   {"quit", Verb::kQuit},         {"stats", Verb::kStats},
      {"shutdown", Verb::kShutdown}, {"slabs", Verb::kSlabs},       {"lru_crawler", Verb::kLruCrawler},
      {"lru", Verb::kLru},           {"extstore", Verb::kExtstore}, {"cache_memlimit", Verb::kCacheMemlimit},
      {"watch", Verb::kWatch}};
  for (const auto& [text, verb] : kOthers) {
    Command command = accept(std::string(text) + "  one two");
    EXPECT_EQ(command.verb, verb) << text;
    EXPECT_EQ(command.arguments, "  one two");
    EXPECT_FALSE(command.is_quiet);
    EXPECT_FALSE(takes_value(command.verb));
  }
  for (const char* name : {"slabs", "lru", "cache_memlimit", "extstore", "watch"})
    EXPECT_TRUE(accept(std::string(name) + " x noreply").is_quiet) << name;
  for (const char* name : {"version", "quit", "stats", "shutdown", "lru_crawler"})
    EXPECT_FALSE(accept(std::string(name) + " x noreply").is_quiet) << name;
  for (const char* line : {"lru", "extstore", "cache_memlimit", "cache_memlimit 1 noreply x"})
    EXPECT_EQ(refusal(line), "ERROR") << line;
  EXPECT_EQ(accept("stats").arguments, "");
}

TEST(Classic, OthersAreErrors) {
  for (const char* line : {"", " ", "x", "GET a", "Get a", "set2 k 0 0 1", "gett a", "ge a", "VERSION",
                           "flushall", "\r", "get\ta"})
    EXPECT_EQ(refusal(line), "ERROR") << line;
}

TEST(Classic, BrowsersAreHungUpOn) {
  for (const char* line : {"GET / HTTP/1.0", "PUT /asdf/asd/fasdfasdf/sadf HTTP/1.1", "DELETE HTTP/1.1"}) {
    Command command;
    const Parsed parsed = parse(line, command);
    EXPECT_EQ(parsed.outcome, Outcome::kRefused);
    EXPECT_TRUE(parsed.refusal.closes);
    EXPECT_EQ(parsed.refusal.text, "");
  }
  EXPECT_EQ(refusal("GET / HTTP/1.0 x"), "ERROR");
  EXPECT_EQ(refusal("set HTTP/1.0"), "ERROR");
}

}  // namespace
}  // namespace server::memcache
