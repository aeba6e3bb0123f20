#include "server/memcache/meta.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>

namespace server::memcache {
namespace {

class Meta : public testing::Test {
 protected:
  Parsed parse(std::string_view line) {
    command_ = {};
    const Parsed parsed =
        parse_meta(lines_.emplace_back(line), kDefaultMaxItemBytes, std::span(key_buffer_), command_);
    EXPECT_EQ(parsed.consumed_bytes, 0u);
    EXPECT_NE(parsed.outcome, Outcome::kMore);
    return parsed;
  }
  Command accept(std::string_view line) {
    const Parsed parsed = parse(line);
    EXPECT_EQ(parsed.outcome, Outcome::kCommand) << line << ": " << parsed.refusal.text;
    EXPECT_EQ(command_.protocol, Protocol::kMeta);
    return command_;
  }
  std::string refusal(std::string_view line, uint64_t swallow_bytes = 0) {
    const Parsed parsed = parse(line);
    EXPECT_EQ(parsed.outcome, Outcome::kRefused) << line;
    EXPECT_EQ(parsed.refusal.swallow_bytes, swallow_bytes) << line;
    EXPECT_FALSE(parsed.refusal.closes) << line;
    EXPECT_FALSE(parsed.refusal.drops_key) << line;
    return std::string(parsed.refusal.text);
  }

  std::deque<std::string> lines_;  // what commands refer to
  char key_buffer_[kMaxKeyBytes];
  Command command_;
};

const std::string kLongestKey(250, 'k');
const std::string kTooLongKey(251, 'k');
constexpr const char* kBadFormat = "CLIENT_ERROR bad command line format";
constexpr const char* kBadToken = "CLIENT_ERROR bad token in command line format";

TEST_F(Meta, GetAsksForFlags) {
  Command command = accept("mg key s v t O1-a k f c l h");
  EXPECT_EQ(command.verb, Verb::kGet);
  EXPECT_EQ(command.key, "key");
  EXPECT_EQ(command.meta.key, "key");
  EXPECT_EQ(command.meta.replied(), "stOkfclh");
  EXPECT_EQ(command.meta.opaque, "1-a");
  EXPECT_TRUE(command.meta.has('v'));
  EXPECT_FALSE(command.meta.has('u'));
  EXPECT_FALSE(command.is_quiet || command.creates || command.has_exptime || command.has_cas);
  command = accept("mg key");
  EXPECT_EQ(command.meta.replied(), "");
  EXPECT_FALSE(command.meta.has('v'));
  EXPECT_EQ(accept("mg " + kLongestKey + " v").key, kLongestKey);
}

TEST_F(Meta, GetsThatChangeTheItem) {
  Command command = accept("mg key T30 N60 R-5 q u I");
  EXPECT_TRUE(command.has_exptime && command.creates && command.is_quiet);
  EXPECT_EQ(command.exptime, 30);
  EXPECT_EQ(command.create_exptime, 60);
  EXPECT_TRUE(command.meta.has('R') && command.meta.has('u') && command.meta.has('I'));
  EXPECT_EQ(command.meta.recache_exptime, -5);
  EXPECT_EQ(command.meta.replied(), "");
}

TEST_F(Meta, WhatStandsBeforeAnExpiryIsKnown) {
  MetaFlags flags = accept("mg key t R1 N2 T3").meta;
  EXPECT_TRUE(flags.tells_before_touch() && flags.tells_before_making());
  EXPECT_TRUE(flags.claims_before_touch() && flags.makes_before_touch());
  flags = accept("mg key T3 N2 R1 t").meta;
  EXPECT_FALSE(flags.tells_before_touch() || flags.tells_before_making());
  EXPECT_FALSE(flags.claims_before_touch() || flags.makes_before_touch());
  flags = accept("ma key N2 t T3").meta;
  EXPECT_TRUE(flags.tells_before_touch() && !flags.tells_before_making() && flags.makes_before_touch());
}

// Letters that only other commands know, and those for proxies, mean nothing; their arguments have to be
// right nevertheless.
TEST_F(Meta, LettersOfOtherCommandsAreAllowed) {
  EXPECT_EQ(accept("mg key L Pxyz MX J5 D5 C5 F5").verb, Verb::kGet);
  EXPECT_EQ(refusal("mg key D"), "CLIENT_ERROR invalid numeric delta value");
  EXPECT_EQ(refusal("mg key Jx"), "CLIENT_ERROR invalid numeric initial value");
  EXPECT_EQ(refusal("mg key M"), "CLIENT_ERROR incorrect length for M token");
  EXPECT_EQ(refusal("mg key Mxy"), "CLIENT_ERROR incorrect length for M token");
  EXPECT_EQ(refusal("mg key F4294967296"), kBadFormat);
  // What stands behind a letter that takes nothing is ignored.
  EXPECT_EQ(accept("mg key vvv sx q1").meta.replied(), "s");
}

TEST_F(Meta, MistakesInFlags) {
  for (const char* flags : {"T", "Tx", "N", "N1x", "R", "R9223372036854775808", "C-1", "Ex"})
    EXPECT_EQ(refusal(std::string("mg key ") + flags), kBadToken) << flags;
  for (const char* flags : {"v v", "k q k", "b b", "O1 O2", "v \xff", "\x7f"})
    EXPECT_EQ(refusal(std::string("mg Zm9v ") + flags), "CLIENT_ERROR duplicate flag") << flags;
  for (const char* flags : {"z", "1", "S100", "v !", "\x01", "~"})
    EXPECT_EQ(refusal(std::string("mg key ") + flags), "CLIENT_ERROR invalid flag") << flags;
  // The last mistake is reported; a word that is no flag ends the search; a bad F hides no other mistake.
  EXPECT_EQ(refusal("mg key Tx Dx"), "CLIENT_ERROR invalid numeric delta value");
  EXPECT_EQ(refusal("mg key Dx Tx"), kBadToken);
  EXPECT_EQ(refusal("mg key Tx v v Dx"), "CLIENT_ERROR duplicate flag");
  EXPECT_EQ(refusal("mg key Tx z"), "CLIENT_ERROR invalid flag");
  EXPECT_EQ(refusal("mg key Tx Fx"), kBadToken);
  EXPECT_EQ(refusal("mg key Fx Tx"), kBadToken);
  EXPECT_EQ(refusal("mg key Fx"), kBadFormat);
  EXPECT_EQ(refusal("mg key Tx q"), kBadToken);  // even a quiet command gets the error
}

TEST_F(Meta, Opaques) {
  const std::string longest(31, 'o');
  EXPECT_EQ(accept("mg key O" + longest).meta.opaque, longest);
  EXPECT_EQ(accept("mg key O").meta.opaque, "");
  EXPECT_EQ(accept("mg key O").meta.replied(), "O");
  for (const char* begin : {"mg key", "md key", "ma key"})
    EXPECT_EQ(refusal(begin + (" O" + longest) + "o"), "CLIENT_ERROR opaque token too long") << begin;
  EXPECT_EQ(refusal("ms key 3 O" + longest + "o", 5), "CLIENT_ERROR opaque token too long");
}

TEST_F(Meta, KeysInBase64) {
  for (const char* begin : {"mg ", "md ", "ma ", "me "}) {
    Command command = accept(begin + std::string("Zm9vAGJhcg== b"));
    EXPECT_EQ(command.key, std::string_view("foo\0bar", 7)) << begin;
    EXPECT_EQ(command.key.data(), key_buffer_);
    EXPECT_EQ(command.meta.key, "Zm9vAGJhcg==");
    EXPECT_TRUE(command.meta.has('b'));
  }
  EXPECT_EQ(accept("ms Zm9v 2 k b").key, "foo");
  EXPECT_EQ(accept("mg Zm9v").key, "Zm9v");
  for (const char* key : {"Zm9", "Zm9v!", "====", "Zh=="})
    EXPECT_EQ(refusal(std::string("mg ") + key + " b"), "CLIENT_ERROR error decoding key") << key;
  EXPECT_EQ(refusal("ms Zm9 2 b", 4), "CLIENT_ERROR error decoding key");
  EXPECT_EQ(accept("mg " + std::string(248, 'A') + " b").key, std::string(186, '\0'));
  EXPECT_EQ(refusal("mg " + std::string(252, 'A') + " b"), kBadFormat);
}

TEST_F(Meta, Sets) {
  Command command = accept("ms key 10 T30 F7 c q I O5 k");
  EXPECT_EQ(command.verb, Verb::kSet);
  EXPECT_EQ(command.value_bytes, 10u);
  EXPECT_EQ(command.flags, 7u);
  EXPECT_EQ(command.exptime, 30);
  EXPECT_TRUE(command.has_exptime && command.is_quiet && command.meta.has('I'));
  EXPECT_FALSE(command.has_cas);
  EXPECT_EQ(command.meta.replied(), "cOk");
  EXPECT_FALSE(command.has_own_cas);
  command = accept("ms key 0 E77 N5 MA");
  EXPECT_TRUE(command.has_own_cas && command.creates);
  EXPECT_EQ(command.own_cas, 77u);
  EXPECT_EQ(command.create_exptime, 5);
  EXPECT_EQ(accept("ms key 0").value_bytes, 0u);
  EXPECT_EQ(accept("ms key 0").flags, 0u);
}

TEST_F(Meta, ModesOfSets) {
  const std::tuple<const char*, Verb, Verb> kModes[] = {
      {"", Verb::kSet, Verb::kCas},          {" MS", Verb::kSet, Verb::kCas},
      {" MR", Verb::kReplace, Verb::kCas},   {" ME", Verb::kAdd, Verb::kAdd},
      {" MA", Verb::kAppend, Verb::kAppend}, {" MP", Verb::kPrepend, Verb::kPrepend}};
  for (const auto& [mode, verb, verb_with_cas] : kModes) {
    EXPECT_EQ(accept(std::string("ms key 1") + mode).verb, verb) << mode;
    Command command = accept(std::string("ms key 1 C12") + mode);
    EXPECT_EQ(command.verb, verb_with_cas) << mode;
    EXPECT_TRUE(command.has_cas);
    EXPECT_EQ(command.cas, 12u);
  }
  for (const char* mode : {"MZ", "Ms", "Me", "MI", "M+"})
    EXPECT_EQ(refusal(std::string("ms key 1 ") + mode, 3), "CLIENT_ERROR invalid mode for ms M token")
        << mode;
  EXPECT_EQ(refusal("ms key 1 MZ O" + std::string(32, 'o'), 3), "CLIENT_ERROR invalid mode for ms M token");
}

TEST_F(Meta, SetsThatAreRefused) {
  EXPECT_EQ(refusal("ms"), "ERROR");
  EXPECT_EQ(refusal("ms key"), kBadFormat);
  for (const char* bytes : {"x", "-1", "2147483646", "S10", "4294967300", "1x"})
    EXPECT_EQ(refusal(std::string("ms key ") + bytes + " T1"), kBadFormat) << bytes;
  EXPECT_EQ(refusal("ms " + kTooLongKey + " 1"), kBadFormat);
  EXPECT_EQ(refusal("ms key 5 Tx", 7), kBadToken);
  EXPECT_EQ(refusal("ms key 5 v v", 7), "CLIENT_ERROR duplicate flag");
  EXPECT_EQ(refusal("ms key 5 z", 7), "CLIENT_ERROR invalid flag");
  EXPECT_EQ(refusal("ms key 5 Fx", 7), kBadFormat);
}

TEST_F(Meta, ValuesThatAreTooLargeAreSwallowed) {
  EXPECT_EQ(accept("ms key 1048514").verb, Verb::kSet);
  for (const char* line :
       {"ms key 1048515", "ms key 1048511 F1", "ms key 1048515 ME q", "ms a2V5 1048515 b"}) {
    const Parsed parsed = parse(line);
    EXPECT_EQ(parsed.outcome, Outcome::kRefused) << line;
    EXPECT_EQ(parsed.refusal.text, "SERVER_ERROR object too large for cache");
    EXPECT_EQ(parsed.refusal.swallow_bytes, command_.value_bytes + 2);
    EXPECT_GE(command_.value_bytes, 1048511u);
    EXPECT_TRUE(parsed.refusal.drops_key);
    EXPECT_EQ(command_.key, "key");
  }
  EXPECT_EQ(refusal("ms key 1048515 z", 1048517), "CLIENT_ERROR invalid flag");
}

TEST_F(Meta, Deletes) {
  Command command = accept("md key q I T30 C5 O1 k");
  EXPECT_EQ(command.verb, Verb::kDelete);
  EXPECT_TRUE(command.is_quiet && command.meta.has('I') && command.has_exptime && command.has_cas);
  EXPECT_FALSE(command.meta.has('x'));
  EXPECT_TRUE(accept("md key x").meta.has('x'));
  command = accept("md key q I T30 C5 O1 k");
  EXPECT_EQ(command.exptime, 30);
  EXPECT_EQ(command.cas, 5u);
  EXPECT_EQ(command.meta.replied(), "Ok");
  EXPECT_EQ(refusal("md"), "ERROR");
  EXPECT_EQ(refusal("md " + kTooLongKey), kBadFormat);
  for (const char* flags : {"q q", "z", "Tx", "Cx", "b"})
    EXPECT_EQ(refusal(std::string("md key ") + flags), "CLIENT_ERROR invalid or duplicate flag") << flags;
}

TEST_F(Meta, Arithmetic) {
  Command command = accept("ma key");
  EXPECT_EQ(command.verb, Verb::kIncr);
  EXPECT_EQ(command.number, 1u);
  EXPECT_EQ(command.initial, 0u);
  EXPECT_FALSE(command.creates);
  command = accept("ma key N90 J13 D5 T30 C6 v t c q");
  EXPECT_EQ(command.number, 5u);
  EXPECT_EQ(command.initial, 13u);
  EXPECT_TRUE(command.creates && command.has_exptime && command.has_cas && command.is_quiet);
  EXPECT_EQ(command.create_exptime, 90);
  EXPECT_EQ(command.exptime, 30);
  EXPECT_EQ(command.cas, 6u);
  EXPECT_EQ(command.meta.replied(), "tc");
  for (const char* mode : {"MI", "M+"}) EXPECT_EQ(accept(std::string("ma key ") + mode).verb, Verb::kIncr);
  for (const char* mode : {"MD", "M-"}) EXPECT_EQ(accept(std::string("ma key ") + mode).verb, Verb::kDecr);
  for (const char* mode : {"MS", "Mi"})
    EXPECT_EQ(refusal(std::string("ma key ") + mode), "CLIENT_ERROR invalid mode for ma M token");
  for (const char* flags : {"Dx", "D-1", "Jx", "M", "v v", "z"})
    EXPECT_EQ(refusal(std::string("ma key ") + flags), "CLIENT_ERROR invalid or duplicate flag") << flags;
  EXPECT_EQ(refusal("ma"), "ERROR");
}

TEST_F(Meta, FlagsAreCounted) {
  const std::string most = " b c f h k l O q s t u v N1 R1 T1 C1 I";  // 17
  EXPECT_EQ(accept("mg Zm9v" + most).meta.replied(), "cfhklOst");
  EXPECT_EQ(refusal("mg Zm9v" + most + " F1"), "CLIENT_ERROR options flags are too long");
  EXPECT_EQ(accept("md Zm9v" + most).meta.replied(), "cfhklOst");
  for (const char* begin : {"md Zm9v", "ma Zm9v"})
    EXPECT_EQ(refusal(begin + most + " F1"), "CLIENT_ERROR options flags too long");
  EXPECT_EQ(refusal("ms Zm9v 1" + most), "CLIENT_ERROR options flags too long");
  EXPECT_EQ(accept("ms Zm9v 1" + most.substr(0, most.size() - 2)).meta.replied(), "cfhklOst");
}

TEST_F(Meta, NoopAndDebug) {
  EXPECT_EQ(accept("mn").verb, Verb::kNoop);
  EXPECT_EQ(accept("mn whatever").verb, Verb::kNoop);
  Command command = accept("me key");
  EXPECT_EQ(command.verb, Verb::kMetaDebug);
  EXPECT_EQ(command.key, "key");
  EXPECT_EQ(accept("me Zm9v v b").key, "Zm9v");  // b counts only as the first flag
  EXPECT_EQ(accept("me Zm9v bb").key, "Zm9v");
  EXPECT_EQ(refusal("me"), kBadFormat);
  EXPECT_EQ(refusal("me " + kTooLongKey), kBadFormat);
  EXPECT_EQ(refusal("me key b"), kBadFormat);
}

TEST_F(Meta, OtherLettersAreErrors) {
  for (const char* line : {"mx key", "m! key", "mG key", "mm"}) EXPECT_EQ(refusal(line), "ERROR") << line;
  EXPECT_EQ(refusal("mg"), "ERROR");
  EXPECT_EQ(refusal("mg  "), "ERROR");
  EXPECT_EQ(refusal("mg " + kTooLongKey + " v"), kBadFormat);
}

}  // namespace
}  // namespace server::memcache
