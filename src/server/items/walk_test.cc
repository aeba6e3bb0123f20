#include "server/items/walk.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "server/items/test_items.h"

namespace server {
namespace {

class WalkTest : public ItemsTest {
 protected:
  // The lengths of all values, by key; each is found once.
  std::map<std::string, uint64_t> all() {
    std::map<std::string, uint64_t> found;
    Walk walk;
    EXPECT_TRUE(walk.open(items));
    for (Walk::Entry entry; of(walk.next(entry));)
      EXPECT_TRUE(found.emplace(entry.key, entry.value_bytes).second) << entry.key;
    walk.close();
    return found;
  }
};

TEST_F(WalkTest, ComesToEachItemOnceAndToNothingElse) {
  EXPECT_TRUE(all().empty());
  options.value_bytes_max = 4 << 20;
  reopen();
  set("flushed", "1");
  ASSERT_TRUE(items.flush());
  const std::string zero(1, '\0');
  std::map<std::string, uint64_t> expected = {{"", 3}, {zero, 3}, {zero + "\1flush", 3}, {"large", 3 << 20}};
  for (int i = 0; i < 200; ++i) expected["key" + std::to_string(i)] = static_cast<uint64_t>(i);
  for (const auto& [key, bytes] : expected) set(key, std::string(bytes, 'v'));
  set("past", "1", {.expires_ms = kEnded});
  of(items.remove("key7"));
  expected.erase("key7");
  EXPECT_EQ(all(), expected);
}

TEST_F(WalkTest, TellsWhatAnItemHas) {
  of(items.set("key", bytes_of("value"), {.flags = 8, .expires_ms = now_ms() + 9, .own_cas = 77}));
  of(items.fetch("key", {.claims_before_ms = now_ms() + 1000}));
  Walk walk;
  ASSERT_TRUE(walk.open(items));
  set("key", "after");
  Walk::Entry entry;
  ASSERT_TRUE(of(walk.next(entry)));
  EXPECT_EQ(entry.key, "key");
  EXPECT_EQ(entry.value_bytes, 5u);
  EXPECT_EQ(entry.cas, 77u);
  EXPECT_EQ(entry.flags, 8u);
  EXPECT_EQ(entry.expires_ms, now_ms() + 9);
  EXPECT_EQ(entry.marks, (Marks{.is_claimed = true}));
  EXPECT_FALSE(of(walk.next(entry)));
}

TEST_F(WalkTest, MakesAFlushThatIsDue) {
  set("key", "value");
  ASSERT_TRUE(items.flush_at(now_ms() + 1));
  EXPECT_EQ(all().size(), 1u);
  clock.move(1);
  EXPECT_TRUE(all().empty());
  EXPECT_EQ(shared.flush_at_ms(), 0u);
}

TEST_F(WalkTest, GoesOnBehindWhatIsNoItem) {
  kv::Session session;
  ASSERT_TRUE(session.open(*store));
  for (const char* key : {"a", "b", "c"}) ASSERT_TRUE(session.put(key, bytes_of("\x7f")));
  session.close();
  set("key", "value");
  Walk walk;
  ASSERT_TRUE(walk.open(items));
  int errors = 0, count = 0;
  for (Walk::Entry entry;;) {
    auto more = walk.next(entry);
    if (more && !*more) break;
    if (!more) EXPECT_EQ(more.error().number, EBADMSG);
    if (more) EXPECT_EQ(entry.key, "key");
    ++(more ? count : errors);
    ASSERT_LT(errors, 10);
  }
  EXPECT_EQ(errors, 3);
  EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace server
