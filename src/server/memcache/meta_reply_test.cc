#include "server/memcache/meta_reply.h"

#include <gtest/gtest.h>

#include <string>

#include "server/memcache/meta.h"
#include "server/memcache/test_reply.h"

namespace server::memcache {
namespace {

class MetaReply : public testing::Test {
 protected:
  const Command& parse(std::string_view line) {
    command_ = {};
    EXPECT_EQ(parse_meta(line, kDefaultMaxItemBytes, std::span(key_buffer_), command_).outcome,
              Outcome::kCommand)
        << line;
    return command_;
  }
  std::string reply(std::string_view line, Result result, const MetaItem& item = {}) {
    return written([&](ReplyBuffer& to) { write_meta(to, parse(line), result, item); });
  }

  char key_buffer_[kMaxKeyBytes];
  Command command_;
};

const MetaItem kItem = {
    .value_bytes = 5, .flags = 30, .cas = 99, .seconds_left = 120, .idle_seconds = 7, .was_used = true};

TEST_F(MetaReply, Gets) {
  EXPECT_EQ(reply("mg key", Result::kDone, kItem), "HD\r\n");
  EXPECT_EQ(reply("mg key v", Result::kDone, kItem), "VA 5\r\n");
  EXPECT_EQ(reply("mg key s v t O1 k f c l h", Result::kDone, kItem),
            "VA 5 s5 t120 O1 kkey f30 c99 l7 h1\r\n");
  EXPECT_EQ(reply("mg key h l c f k t s q u Oabc", Result::kDone, kItem),
            "HD h1 l7 c99 f30 kkey t120 s5 Oabc\r\n");
  EXPECT_EQ(reply("mg key t h", Result::kDone), "HD t-1 h0\r\n");
  EXPECT_EQ(reply("mg Zm9v k b O2", Result::kDone, kItem), "HD kZm9v b O2\r\n");
  EXPECT_EQ(reply("mg key O", Result::kDone, kItem), "HD O\r\n");
  EXPECT_EQ(reply("mg key s v N30", Result::kCreated, {.is_won = true}), "VA 0 s0 W\r\n");
}

TEST_F(MetaReply, GetsOfStaleItems) {
  MetaItem item = kItem;
  item.is_stale = item.is_won = true;
  EXPECT_EQ(reply("mg key s", Result::kDone, item), "HD s5 X W\r\n");
  item.is_won = false;
  item.was_won = true;
  EXPECT_EQ(reply("mg key s", Result::kDone, item), "HD s5 Z X\r\n");
  EXPECT_EQ(reply("md key I", Result::kDone, item), "HD\r\n");
}

TEST_F(MetaReply, GetsThatFindNothing) {
  EXPECT_EQ(reply("mg key s v t", Result::kNotFound), "EN\r\n");
  EXPECT_EQ(reply("mg key c O1 k v f", Result::kNotFound), "EN O1 kkey\r\n");
  EXPECT_EQ(reply("mg Zm9v k b O1", Result::kNotFound), "EN kZm9v b O1\r\n");
}

TEST_F(MetaReply, Stores) {
  EXPECT_EQ(reply("ms key 2", Result::kDone, kItem), "HD\r\n");
  EXPECT_EQ(reply("ms key 2 c k O1 T5 F1 t f s", Result::kDone, kItem), "HD c99 kkey O1 s5\r\n");
  EXPECT_EQ(reply("ms key 2 s k MA", Result::kNotStored, kItem), "NS kkey\r\n");
  EXPECT_EQ(reply("ms key 2 C5 c", Result::kExists, kItem), "EX c0\r\n");
  EXPECT_EQ(reply("ms key 2 C5 O1", Result::kNotFound), "NF O1\r\n");
  EXPECT_EQ(reply("ms key 2 ME k", Result::kNotStored), "NS kkey\r\n");
  EXPECT_EQ(reply("ms Zm9v 2 b k c", Result::kDone, kItem), "HD kZm9v b c99\r\n");
}

TEST_F(MetaReply, Deletes) {
  EXPECT_EQ(reply("md key q", Result::kDone), "HD\r\n");
  EXPECT_EQ(reply("md key c t k O1", Result::kDone, kItem), "HD kkey O1\r\n");
  EXPECT_EQ(reply("md key O1", Result::kNotFound), "NF O1\r\n");
  EXPECT_EQ(reply("md key C1 k", Result::kExists), "EX kkey\r\n");
}

TEST_F(MetaReply, Arithmetic) {
  EXPECT_EQ(reply("ma key", Result::kDone, kItem), "HD\r\n");
  EXPECT_EQ(reply("ma key v t c O1 k s f", Result::kDone, {.value_bytes = 2, .cas = 9}),
            "VA 2 t-1 c9 O1 kkey\r\n");
  EXPECT_EQ(reply("ma key N0 v", Result::kCreated, {.value_bytes = 1}), "VA 1\r\n");
  EXPECT_EQ(reply("ma key v t c O1 k", Result::kNotFound), "NF O1 kkey\r\n");
  EXPECT_EQ(reply("ma key C1 c O1", Result::kExists), "EX O1\r\n");
  EXPECT_EQ(reply("ma key N1 k", Result::kNotStored), "NS kkey\r\n");
}

TEST_F(MetaReply, WhenAValueFollows) {
  for (const char* line : {"mg key v", "ma key v", "ma key v MD"}) {
    EXPECT_TRUE(answers_with_value(parse(line), Result::kDone)) << line;
    EXPECT_TRUE(answers_with_value(parse(line), Result::kCreated)) << line;
    EXPECT_FALSE(answers_with_value(parse(line), Result::kNotFound)) << line;
  }
  for (const char* line : {"mg key", "ma key", "ms key 1 v", "md key v"})
    EXPECT_FALSE(answers_with_value(parse(line), Result::kDone)) << line;
}

TEST_F(MetaReply, NoopAndDebug) {
  EXPECT_EQ(reply("mn", Result::kDone), "MN\r\n");
  EXPECT_EQ(written([&](ReplyBuffer& to) { write_meta_debug(to, parse("me key"), kItem); }),
            "ME key exp=120 la=7 cas=99 fetch=yes cls=1 size=5\r\n");
  EXPECT_EQ(written([&](ReplyBuffer& to) { write_meta_debug(to, parse("me Zm9v b"), {}); }),
            "ME Zm9v exp=-1 la=0 cas=0 fetch=no cls=1 size=0\r\n");
  EXPECT_EQ(written(write_meta_debug_miss), "EN\r\n");
}

TEST_F(MetaReply, TheLongestFits) {
  const std::string key(248, 'A'), opaque(31, 'o');
  const MetaItem most = {.value_bytes = UINT64_MAX,
                         .flags = UINT32_MAX,
                         .cas = UINT64_MAX,
                         .seconds_left = INT64_MIN,
                         .idle_seconds = UINT64_MAX,
                         .was_used = true,
                         .is_stale = true,
                         .is_won = true,
                         .was_won = true};
  const std::string longest = reply("mg " + key + " b k v s t c f l h O" + opaque, Result::kDone, most);
  EXPECT_EQ(longest, "VA 18446744073709551615 k" + key +
                         " b s18446744073709551615 t-9223372036854775808 c18446744073709551615 f4294967295 "
                         "l18446744073709551615 h1 O" +
                         opaque + " Z X W\r\n");
  EXPECT_LE(longest.size(), kMaxReplyBytes);
}

}  // namespace
}  // namespace server::memcache
