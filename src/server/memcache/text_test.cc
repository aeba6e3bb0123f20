#include "server/memcache/text.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "server/memcache/test_transcript.h"

namespace server::memcache {
namespace {

using Lines = std::vector<std::string>;

Lines transcript(std::string_view stream, uint64_t item_bytes_max = kDefaultMaxItemBytes) {
  auto reader = text_reader(item_bytes_max);
  reader.receive(stream);
  return reader.lines();
}

constexpr uint64_t kSmallItems = 1000;

// All that can be asked for, one after the other, with values that look like commands, and one that is too
// large for kSmallItems.
std::string all_commands() {
  std::string stream;
  for (const char* line : {"get a b",
                           "gets a",
                           "gat 10 a b",
                           "gats -1 a",
                           "set a 1 2 5\r\nget b",
                           "add a 0 0 0 noreply\r\n",
                           "replace a 0 0 2\r\n\r\n",
                           "append a 0 0 1\r\n\n",
                           "prepend a 0 0 3\r\nabc",
                           "cas a 1 2 3 4\r\nxyz",
                           "delete a",
                           "delete a 0 noreply",
                           "incr a 1",
                           "decr a 2 noreply",
                           "touch a 3",
                           "flush_all",
                           "flush_all 10 noreply",
                           "version",
                           "verbosity 1",
                           "stats",
                           "stats items",
                           "lru_crawler metadump all",
                           "slabs automove 1",
                           "cache_memlimit 100",
                           "watch fetchers",
                           "shutdown",
                           "mn",
                           "mg a v k Oabc",
                           "mg YWJj b k",
                           "ms a 4 T10\r\nmg b",
                           "ms a 2 z\r\nqq",
                           "md a q",
                           "ma a N0 J5",
                           "me a",
                           "bogus",
                           "",
                           "get",
                           "set a x 0 0",
                           "set a 0 0 2000",
                           "quit"}) {
    (stream += line) += "\r\n";
    if (std::string_view(line).ends_with("2000")) stream += std::string(2000, 's') + "\r\n";
  }
  return stream;
}

TEST(Text, CommandsFollowEachOther) {
  const Lines lines = transcript(all_commands(), kSmallItems);
  ASSERT_EQ(lines.size(), 40u);
  EXPECT_NE(lines[0].find("keys <a><b>"), std::string::npos);
  EXPECT_NE(lines[4].find("key <a> arguments  flags 1 value 5 exptime 2"), std::string::npos) << lines[4];
  EXPECT_TRUE(lines[30].starts_with("refused <CLIENT_ERROR invalid flag> status 0 swallow 4")) << lines[30];
  EXPECT_TRUE(lines[34].starts_with("refused <ERROR>")) << lines[34];
  EXPECT_NE(lines[38].find("swallow 2002 drops <a>"), std::string::npos) << lines[38];
  EXPECT_NE(lines[39].find("verb " + std::to_string(static_cast<int>(Verb::kQuit))), std::string::npos);
}

TEST(Text, LinesEndWithOrWithoutCarriageReturn) {
  for (const char* end : {"\n", "\r\n"}) {
    TextParser parser(kDefaultMaxItemBytes);
    Command command;
    const std::string stream = std::string("get abc") + end + "rest";
    const Parsed parsed = parser.next(stream, command);
    EXPECT_EQ(parsed.outcome, Outcome::kCommand);
    EXPECT_EQ(parsed.consumed_bytes, stream.size() - 4);
    EXPECT_EQ(all_words(command.keys), "<abc>");
  }
  EXPECT_EQ(transcript("get a\r\r\n")[0].find("<a>"), std::string::npos);  // only one \r is removed
  EXPECT_NE(transcript("get a\rb\n")[0].find("<a\rb>"), std::string::npos);
  for (const char* empty : {"\n", "\r\n", " \n"})
    EXPECT_TRUE(transcript(empty)[0].starts_with("refused <ERROR>"));
}

TEST(Text, ZeroBytesEndWhatALineSays) {
  using namespace std::string_literals;
  EXPECT_EQ(transcript("get a\0b c\r\nget a\r\n"s), transcript("get a\nget a\n"));
  EXPECT_EQ(transcript("\0get a\r\n"s), transcript("\r\n"));
  EXPECT_EQ(transcript("delete a\0 x y z\r\n"s), transcript("delete a\r\n"));
}

TEST(Text, BlanksDoNotCount) {
  EXPECT_EQ(transcript("   set   a  1 2   0  \r\n\r\n"), transcript("set a 1 2 0\r\n\r\n"));
}

TEST(Text, MoreIsNeededUntilTheLineEnds) {
  const std::string line = "set key 1 2 3 noreply\r\n";
  for (size_t bytes = 0; bytes < line.size(); ++bytes) {
    TextParser parser(kDefaultMaxItemBytes);
    Command command;
    Parsed parsed = parser.next(line.substr(0, bytes), command);
    EXPECT_EQ(parsed.outcome, Outcome::kMore);
    EXPECT_EQ(parsed.consumed_bytes, 0u);
    parsed = parser.next(line, command);
    EXPECT_EQ(parsed.outcome, Outcome::kCommand);
    EXPECT_EQ(parsed.consumed_bytes, line.size());
    EXPECT_EQ(command.value_bytes, 3u);
  }
}

TEST(Text, LongestLine) {
  auto line = [](const std::string& begin, size_t bytes) {
    return begin + std::string(bytes - begin.size(), ' ');
  };
  EXPECT_EQ(transcript(line("delete a", 2048) + "\n"), transcript("delete a\n"));
  EXPECT_EQ(transcript(line("delete a", 2047) + "\r\n"), transcript("delete a\n"));
  EXPECT_TRUE(transcript(line("delete a", 2048)).empty());
  const Lines closed = {"refused <CLIENT_ERROR line too long> status 0 swallow 0 closes"};
  for (const char* begin : {"delete a", "gat 1 a", "get", "gets", "Get a", "mg a", "x"}) {
    const std::string full(2049 - std::string_view(begin).size(), 'x');
    EXPECT_EQ(transcript(begin + full), closed) << begin;
    EXPECT_EQ(transcript(begin + full + "\n"), closed) << begin;
  }
  EXPECT_EQ(transcript(std::string(101, ' ') + line("get a", 2000)), closed);
  EXPECT_EQ(transcript(std::string(2049, ' ')), closed);
}

// What the commands of a get in parts ask for together.
struct Asked {
  std::string keys;
  size_t parts = 0;
  bool is_complete = false;
  std::string refusal;
};

Asked ask(std::string_view stream, size_t piece_bytes) {
  TextParser parser(kDefaultMaxItemBytes);
  std::string buffer;
  Asked asked;
  for (size_t at = 0; at < stream.size(); at += piece_bytes) {
    buffer += stream.substr(at, piece_bytes);
    for (;;) {
      Command command;
      const Parsed parsed = parser.next(buffer, command);
      if (parsed.outcome == Outcome::kCommand) {
        EXPECT_FALSE(asked.is_complete);
        EXPECT_EQ(command.verb, Verb::kGet);
        EXPECT_TRUE(command.wants_cas);
        asked.keys += all_words(command.keys);
        asked.is_complete = command.is_last;
        ++asked.parts;
      } else if (parsed.outcome == Outcome::kRefused) {
        asked.refusal += parsed.refusal.text;
      }
      buffer.erase(0, parsed.consumed_bytes);
      if (parsed.outcome == Outcome::kMore && parsed.consumed_bytes == 0) break;
    }
    EXPECT_LE(buffer.size(), kMaxLineBytes);
  }
  EXPECT_TRUE(buffer.empty());
  return asked;
}

TEST(Text, LongGetsComeInParts) {
  std::string line = "gets", keys;
  for (int i = 0; i < 2000; ++i) {
    const std::string key = "key" + std::to_string(i * i) + std::string(i % 7 == 0 ? 240 : 0, 'k');
    line += std::string(i % 5 == 0 ? 3 : 1, ' ') + key;
    keys += '<' + key + '>';
  }
  for (const size_t piece_bytes : {size_t{1}, size_t{100}, size_t{2048}, size_t{2049}, line.size() + 2}) {
    const Asked asked = ask(line + "\r\n", piece_bytes);
    EXPECT_EQ(asked.keys, keys) << piece_bytes;
    EXPECT_TRUE(asked.is_complete);
    EXPECT_EQ(asked.refusal, "");
    EXPECT_GT(asked.parts, line.size() / 2049);
    EXPECT_LT(asked.parts, line.size() / 1700);
  }
}

TEST(Text, PartsEndWithTheLine) {
  // The last part has no key: the line ends where the one before it was cut.
  std::string line = "gets";
  while (line.size() < 2052) line += " k";
  const Asked asked = ask(line + std::string(5000, ' ') + "\n", 1);
  EXPECT_TRUE(asked.is_complete);
  EXPECT_EQ(asked.parts, 2u);
  EXPECT_EQ(ask("gets " + std::string(6000, ' ') + "a\n", 7).keys, "<a>");
  EXPECT_EQ(ask("gets " + std::string(6000, ' ') + "\n", 7).refusal, "ERROR");
  EXPECT_EQ(ask(std::string(100, ' ') + "gets a" + std::string(3000, ' ') + "b\r\n", 7).keys, "<a><b>");
}

TEST(Text, KeysThatAreTooLongEndAGetInParts) {
  const std::string many = [] {
    std::string text;
    while (text.size() < 3000) text += " key";
    return text;
  }();
  const std::string too_long(251, 'k');
  const Lines version = transcript("version\r\n");
  for (const std::string& line : {joined("get", many, " ", too_long, many), joined("get ", too_long, many),
                                  joined("get", many, " ", too_long), joined("get ", std::string(9000, 'k')),
                                  joined("get", many, " ", std::string(9000, 'k'), many)}) {
    const Lines lines = transcript(line + "\r\nversion\r\n");
    ASSERT_GE(lines.size(), 2u);
    EXPECT_EQ(lines.back(), version[0]);
    EXPECT_TRUE(lines[lines.size() - 2].starts_with(
        "refused <CLIENT_ERROR bad command line format> status 0 swallow 0"));
    for (size_t i = 0; i + 2 < lines.size(); ++i) EXPECT_NE(lines[i].find("not last"), std::string::npos);
  }
}

TEST(Text, WhatIsLeftOfALineThatWasTooLongGoesBeforeTheNextOne) {
  const std::string long_line = "get " + std::string(3000, 'k') + " x\r\n", line = "set key 0 0 5\r\n";
  std::string stream = long_line + line;
  TextParser parser(kDefaultMaxItemBytes);
  Command command;
  const Parsed refused = parser.next(stream, command);
  EXPECT_EQ(refused.outcome, Outcome::kRefused);
  stream.erase(0, refused.consumed_bytes);
  EXPECT_FALSE(parser.is_at_line());
  const Parsed rest = parser.next(stream, command);
  EXPECT_EQ(rest.outcome, Outcome::kMore);
  EXPECT_EQ(rest.consumed_bytes, long_line.size() - refused.consumed_bytes);
  stream.erase(0, rest.consumed_bytes);
  EXPECT_TRUE(parser.is_at_line());
  // Repeatedly, as a caller that waits for its value does.
  for (int i = 0; i < 2; ++i) {
    const Parsed set = parser.next(stream, command);
    EXPECT_EQ(set.outcome, Outcome::kCommand);
    EXPECT_EQ(set.consumed_bytes, line.size());
    EXPECT_EQ(command.key, "key");
  }
}

TEST(Text, ZeroBytesEndAGetInParts) {
  std::string line = "gets";
  while (line.size() < 3000) line += " key";
  const Asked whole = ask(line + "\n", 1);
  std::string ended = line + '\0' + line + line + "\n";
  for (const size_t piece_bytes : {size_t{1}, size_t{500}, ended.size()}) {
    const Asked asked = ask(ended, piece_bytes);
    EXPECT_EQ(asked.keys, whole.keys);
    EXPECT_TRUE(asked.is_complete);
    EXPECT_EQ(asked.refusal, "");
  }
  ended = "gets a" + std::string(1, '\0') + std::string(9000, 'x') + "\n";
  EXPECT_EQ(ask(ended, 3).keys, "<a>");
}

TEST(Text, EverySplitMeansTheSame) {
  std::string stream = "get";
  while (stream.size() < 5000) stream += " key";
  stream += "\r\n" + all_commands();
  const Lines whole = transcript(stream, kSmallItems);
  EXPECT_EQ(whole.size(), 43u);  // the long get is three of them
  // The long get, whose keys are all alike, is split only at some places of each key.
  for (size_t split = 0; split <= stream.size(); split += split < 5000 ? 7 : 1) {
    auto reader = text_reader(kSmallItems);
    reader.receive(std::string_view(stream).substr(0, split));
    reader.receive(std::string_view(stream).substr(split));
    ASSERT_EQ(reader.lines(), whole) << split;
    ASSERT_EQ(reader.consumed_bytes(), stream.size()) << split;
  }
  auto reader = text_reader(kSmallItems);
  for (const char c : stream) reader.receive({&c, 1});
  EXPECT_EQ(reader.lines(), whole);
}

// Random bytes that look like commands, in random pieces.
TEST(Text, RandomStreams) {
  constexpr std::string_view kPieces[] = {"get ",
                                          "gets ",
                                          "set ",
                                          "a ",
                                          "0 ",
                                          "1 ",
                                          "-1 ",
                                          "noreply",
                                          "\r\n",
                                          "\n",
                                          " ",
                                          "mg ",
                                          "ms ",
                                          "md ",
                                          "ma ",
                                          "b ",
                                          "v ",
                                          "k ",
                                          "Oabc ",
                                          "T1 ",
                                          "q ",
                                          "MS ",
                                          "Zm9v ",
                                          "delete ",
                                          "incr ",
                                          "cas ",
                                          "\xff",
                                          "\x80",
                                          "xxxxxxxxxxxxxxxxxxxxxxxx",
                                          "\r"};
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    std::string stream;
    const size_t bytes = seed % 10 == 0 ? 8000 : 600;
    while (stream.size() < bytes) {
      if (random() % 50 == 0) stream += '\0';
      if (random() % 400 == 0) stream += std::string(random() % 2200, random() % 2 != 0 ? 'x' : ' ');
      stream += kPieces[random() % std::size(kPieces)];
    }
    auto whole = text_reader();
    whole.receive(stream);
    auto reader = text_reader();
    for (size_t at = 0; at < stream.size();) {
      const size_t piece_bytes = 1 + random() % 40;
      reader.receive(std::string_view(stream).substr(at, piece_bytes));
      at += piece_bytes;
    }
    ASSERT_EQ(reader.lines(), whole.lines()) << "seed " << seed;
    ASSERT_EQ(reader.is_closed(), whole.is_closed()) << "seed " << seed;
  }
}

TEST(Text, EndsOfValues) {
  EXPECT_TRUE(is_block_end("\r\n"));
  for (const char* end : {"\n\r", "\r\r", "\n\n", "xx", "\rx"}) EXPECT_FALSE(is_block_end(end));
}

TEST(Text, TheFirstByteTellsTheProtocol) {
  EXPECT_TRUE(begins_binary('\x80'));
  for (const char c : {'g', '\0', '\x81', '\x7f', '\n', '\xff'}) EXPECT_FALSE(begins_binary(c));
}

}  // namespace
}  // namespace server::memcache
