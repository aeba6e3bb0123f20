// Transcripts of the commands about keys.
#include <chrono>
#include <optional>
#include <set>
#include <utility>

#include "server/clients/test_resp_client.h"
#include "server/text.h"
#include "storage/decorators/latency.h"

namespace server {
namespace {

class RespKeysTest : public RespClientTest {
 protected:
  // The words in an answer of bulk strings.
  static std::set<std::string> words_of(std::string_view text) {
    std::set<std::string> words;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find("\r\n", at), text.size());
      const std::string_view line = text.substr(at, end - at);
      if (!line.starts_with('$') && !line.starts_with('*')) words.emplace(line);
      at = end + 2;
    }
    return words;
  }
};

TEST_F(RespKeysTest, RemoveAndCount) {
  set("a", "1");
  set("b", "2");
  EXPECT_EQ(ask("EXISTS a a none\r\nTOUCH a b none\r\nDEL a none\r\nUNLINK a b\r\nEXISTS a b"),
            ":2\r\n:2\r\n:1\r\n:1\r\n:0\r\n");
}

// The pattern takes a while to compare with a long key.
TEST_F(RespKeysTest, OthersAreAnsweredWhilePatternsAreCompared) {
  for (int i = 0; i < 4; ++i) set(std::string(60'000, 'z') + std::to_string(i), "v");
  const std::string pattern = "*[" + std::string(1000, 'a') + "]";
  const std::pair<std::string, std::string> talks[] = {
      {request({"KEYS", pattern}), "*0\r\n"},
      {request({"SCAN", "0", "MATCH", pattern}), "*2\r\n$1\r\n0\r\n*0\r\n"}};
  for (const auto& [asked, answered] : talks)
    EXPECT_TRUE(answers_others_meanwhile(asked, std::chrono::milliseconds(20), answered))
        << asked.substr(0, 20);
}

TEST_F(RespKeysTest, LongPatternsAreRefused) {
  EXPECT_EQ(answer({"KEYS", std::string(1024, '*')}), "*0\r\n");
  const std::string refused = "-ERR patterns have at most 1024 bytes\r\n", longer(1025, '*');
  EXPECT_EQ(answer({"KEYS", longer}) + answer({"SCAN", "0", "MATCH", longer}), refused + refused);
}

TEST_F(RespKeysTest, Expiry) {
  set("k", "v");
  EXPECT_EQ(ask("TTL none\r\nPTTL k\r\nEXPIRE k 100\r\nTTL k\r\nPEXPIRE k 1499\r\nTTL k\r\nPTTL k\r\nEXPIRE "
                "none 1"),
            ":-2\r\n:-1\r\n:1\r\n:100\r\n:1\r\n:1\r\n:1499\r\n:0\r\n");
  EXPECT_EQ(ask("EXPIREAT k 33177117420\r\nEXPIRETIME k\r\nPEXPIRETIME k\r\nPEXPIREAT k 33177117420123\r\n"
                "PEXPIRETIME k\r\nEXPIRETIME none"),
            ":1\r\n:33177117420\r\n:33177117420000\r\n:1\r\n:33177117420123\r\n:-2\r\n");
  EXPECT_EQ(ask("PERSIST k\r\nPERSIST k\r\nPERSIST none\r\nTTL k\r\nEXPIRE k -1\r\nGET k\r\nEXPIRE k a"),
            ":1\r\n:0\r\n:0\r\n:-1\r\n:1\r\n$-1\r\n-ERR value is not an integer or out of range\r\n");
}

TEST_F(RespKeysTest, ExpiryOnlyIf) {
  set("k", "v");
  EXPECT_EQ(
      ask("EXPIRE k 10 XX\r\nEXPIRE k 10 GT\r\nEXPIRE k 10 NX\r\nEXPIRE k 20 NX\r\nEXPIRE k 5 GT\r\n"
          "EXPIRE k 20 GT\r\nEXPIRE k 30 LT\r\nEXPIRE k 5 LT\r\nTTL k\r\nEXPIRE k 1 NX GT\r\nEXPIRE k 1 FOO"),
      ":0\r\n:0\r\n:1\r\n:0\r\n:0\r\n:1\r\n:0\r\n:1\r\n:5\r\n"
      "-ERR NX and XX, GT or LT options at the same time are not compatible\r\n"
      "-ERR Unsupported option FOO\r\n");
}

TEST_F(RespKeysTest, WhatEndsIsGone) {
  EXPECT_EQ(ask("SET k v PX 100"), "+OK\r\n");
  clock.move(100);
  EXPECT_EQ(ask("GET k\r\nTTL k\r\nEXISTS k\r\nDBSIZE\r\nKEYS *"), "$-1\r\n:-2\r\n:0\r\n:0\r\n*0\r\n");
}

TEST_F(RespKeysTest, TypesAndObjects) {
  set("int", "123");
  set("short", "abc");
  set("long", std::string(45, 'x'));
  EXPECT_EQ(ask("TYPE int\r\nTYPE none"), "+string\r\n+none\r\n");
  EXPECT_EQ(ask("SETRANGE large 900000 x\r\nOBJECT ENCODING large\r\nINCRBYFLOAT large 1\r\nINCR large"),
            ":900001\r\n$3\r\nraw\r\n-ERR value is not a valid float\r\n-ERR value is not an integer or out "
            "of range\r\n");
  EXPECT_EQ(
      ask("OBJECT ENCODING int\r\nOBJECT ENCODING short\r\nOBJECT ENCODING long\r\nOBJECT ENCODING none"),
      "$3\r\nint\r\n$6\r\nembstr\r\n$3\r\nraw\r\n$-1\r\n");
  EXPECT_EQ(ask("OBJECT REFCOUNT int\r\nOBJECT FREQ none"), ":1\r\n$-1\r\n");
  EXPECT_TRUE(ask("OBJECT FREQ int").starts_with("-ERR An LFU maxmemory policy is not selected"));
  EXPECT_TRUE(ask("OBJECT HELP").starts_with("*11\r\n+OBJECT <subcommand>"));
}

TEST_F(RespKeysTest, IdleTimesAreTold) {
  set("k", "v");
  clock.move(5000);
  EXPECT_EQ(ask("OBJECT IDLETIME k\r\nCLIENT NO-TOUCH ON\r\nGET k\r\nMGET k\r\nOBJECT IDLETIME k\r\n"
                "CLIENT NO-TOUCH OFF\r\nGET k\r\nOBJECT IDLETIME k"),
            ":5\r\n+OK\r\n$1\r\nv\r\n*1\r\n$1\r\nv\r\n:5\r\n+OK\r\n$1\r\nv\r\n:0\r\n");
  clock.move(5000);
  EXPECT_EQ(ask("CLIENT NO-TOUCH ON\r\nEXISTS k\r\nOBJECT IDLETIME k\r\nTOUCH k\r\nOBJECT IDLETIME k"),
            "+OK\r\n:1\r\n:5\r\n:1\r\n:0\r\n");
  clock.move(5000);
  EXPECT_EQ(ask("CLIENT NO-TOUCH ON\r\nEXPIRE k 100\r\nPERSIST k\r\nOBJECT IDLETIME k\r\n"
                "CLIENT NO-TOUCH OFF\r\nEXPIRE k 100\r\nOBJECT IDLETIME k"),
            "+OK\r\n:1\r\n:1\r\n:5\r\n+OK\r\n:1\r\n:0\r\n");
}

TEST_F(RespKeysTest, KeysAndSizes) {
  EXPECT_EQ(ask("DBSIZE\r\nRANDOMKEY\r\nKEYS *"), ":0\r\n$-1\r\n*0\r\n");
  for (const char* key : {"one", "two", "three"}) set(key, "v");
  set("large", std::string(300'000, 'x'));
  EXPECT_EQ(ask("DBSIZE"), ":4\r\n");
  EXPECT_EQ(words_of(ask("KEYS t*")), (std::set<std::string>{"two", "three"}));
  EXPECT_TRUE(ask("KEYS t*").starts_with("*2\r\n"));
  EXPECT_EQ(words_of(ask("KEYS *")).size(), 4u);
  EXPECT_EQ(words_of(ask("RANDOMKEY")).size(), 1u);
}

TEST_F(RespKeysTest, WhatIsNoItemHidesNoOthers) {
  kv::Session session;
  ASSERT_TRUE(session.open(*store));
  for (const char* key : {"a", "b", "z"}) ASSERT_TRUE(session.put(key, bytes_of("\x7f")));
  session.close();
  set("k", "v");
  EXPECT_EQ(ask("KEYS *\r\nDBSIZE\r\nRANDOMKEY\r\nSCAN 0"),
            "*1\r\n$1\r\nk\r\n:1\r\n$1\r\nk\r\n*2\r\n$1\r\n0\r\n*1\r\n$1\r\nk\r\n");
  EXPECT_TRUE(ask("GET a").starts_with("-ERR what the key has is not an item of a server"));
}

TEST_F(RespKeysTest, ScansTellEachKeyOnce) {
  std::set<std::string> keys;
  for (int i = 0; i < 500; ++i) {
    keys.insert("key" + std::to_string(i));
    set("key" + std::to_string(i), "v");
  }
  talk([&](int other) {
    std::multiset<std::string> found;
    std::string cursor = "0";
    int steps = 0;
    do {
      say(other, "SCAN " + cursor + " COUNT 100\r\nPING\r\n");
      std::string text;
      while (!text.ends_with("+PONG\r\n")) text += hear(other, 1);
      const size_t begin = text.find("\r\n", 5) + 2, end = text.find("\r\n", begin);
      EXPECT_TRUE(text.starts_with("*2\r\n$"));
      cursor =
          text.substr(text.find('\n', 4) + 1, text.find("\r\n", text.find('\n', 4)) - text.find('\n', 4) - 1);
      EXPECT_LE(begin, end);
      for (const std::string& word : words_of(text.substr(text.find('*', 4))))
        if (word.starts_with("key")) found.insert(word);
      // Changes made meanwhile do not make it miss a key.
      exchange(other, "SET new" + std::to_string(steps) + " v\r\n", "+OK\r\n");
    } while (cursor != "0" && ++steps < 20);
    EXPECT_EQ(found.size(), 500u);
    EXPECT_EQ(std::set<std::string>(found.begin(), found.end()), keys);
    EXPECT_EQ(steps, 4);
  });
}

TEST_F(RespKeysTest, ScansOfManyKeysAreAsAtTheirBeginning) {
  constexpr int kCount = 2000;
  for (int i = 0; i < kCount; ++i) set("key" + std::to_string(i), "v");
  task::Scheduler& tasks = scheduler;
  auto scan = [&] {
    RespScans scans;
    scans.begin(0, items);
    std::optional<RespScans::Caller> caller(std::in_place, scans, 0u, items);
    std::multiset<std::string> found;
    uint64_t cursor = 0;
    do {
      auto step = caller->step({.cursor = cursor, .count = 300, .type = ""});
      ASSERT_TRUE(step) << step.error().message;
      found.insert(step->keys.begin(), step->keys.end());
      cursor = step->cursor;
      EXPECT_EQ(items.remove("key7")->outcome == Outcome::kDone, found.size() == 300);
      set("new" + std::to_string(cursor), "v");
    } while (cursor != 0);
    EXPECT_EQ(found.size(), size_t{kCount});
    for (int i = 0; i < kCount; ++i) EXPECT_EQ(found.count("key" + std::to_string(i)), 1u) << i;
    caller.reset();
    scans.end(0);
  };
  ASSERT_TRUE(tasks.run(task::calls("scan", scan)));
}

TEST_F(RespKeysTest, FewKeysTakeNoneOfTheStoresSnapshots) {
  for (int i = 0; i < 10; ++i) set("key" + std::to_string(i), "v");
  talk_on<12>([](const std::array<int, 12>& others) {
    for (const int other : others) {
      say(other, "SCAN 0 COUNT 5\r\n");
      EXPECT_EQ(hear(other, 4), "*2\r\n");
    }
  });
}

TEST_F(RespKeysTest, ScansChooseAndEnd) {
  for (const char* key : {"one", "two", "three"}) set(key, "v");
  const std::string got = ask("SCAN 0 MATCH t* COUNT 100");
  EXPECT_TRUE(got.starts_with("*2\r\n$1\r\n0\r\n*2\r\n")) << got;
  EXPECT_EQ(ask("SCAN 0 TYPE hash COUNT 100\r\nSCAN a\r\nSCAN 0 COUNT 0"),
            "*2\r\n$1\r\n0\r\n*0\r\n-ERR invalid cursor\r\n-ERR syntax error\r\n");
  EXPECT_TRUE(ask("SCAN 0 TYPE string COUNT 100").starts_with("*2\r\n$1\r\n0\r\n*3\r\n"));
  EXPECT_EQ(ask("SCAN 12345"), "-ERR the cursor is not known any more; scan from 0\r\n");
}

constexpr std::string_view kForgotten = "-ERR the cursor is not known any more; scan from 0\r\n";

std::string cursor_of(int other, std::string_view request = "SCAN 0 COUNT 1") {
  say(other, std::string(request) + "\r\nPING\r\n");
  std::string text;
  while (!text.ends_with("+PONG\r\n")) text += hear(other, 1);
  const size_t begin = text.find('\n', 4) + 1;
  return text.substr(begin, text.find('\r', begin) - begin);
}

TEST_F(RespKeysTest, CursorsAreForgotten) {
  for (int i = 0; i < 10; ++i) set("key" + std::to_string(i), "v");
  talk([&](int other) {
    const std::string first = cursor_of(other), second = cursor_of(other), third = cursor_of(other);
    exchange(other, "SCAN " + second + " MATCH none COUNT 1000\r\n", "*2\r\n$1\r\n0\r\n*0\r\n");
    exchange(other, "SCAN " + second + "\r\n", kForgotten);
    for (size_t i = 0; i < RespScans::kMax; ++i) {
      clock.move(1);
      cursor_of(other);
    }
    exchange(other, "SCAN " + first + "\r\n", kForgotten);
    const std::string last = cursor_of(other);
    clock.move(RespScans::kIdleMs + 1);
    exchange(other, "SCAN " + last + "\r\n", kForgotten);
  });
}

// Clients that keep numbers as doubles have 53 bits for one. In September 2039 the time in milliseconds has as many as there are for it in a cursor.
TEST_F(RespKeysTest, CursorsAreNoLongerInLaterYears) {
  clock.move((int64_t{1} << 41) - static_cast<int64_t>(clock.now_ms()));
  for (int i = 0; i < 10; ++i) set("key" + std::to_string(i), "v");
  talk([](int other) {
    std::string cursor = "0";
    int calls = 0;
    do {
      cursor = cursor_of(other, "SCAN " + cursor + " COUNT 2");
      EXPECT_LT(parse_number<uint64_t>(cursor).value_or(~uint64_t{0}), uint64_t{1} << 53);
    } while (++calls < 10 && cursor != "0");
    EXPECT_EQ(calls, 5);
  });
}

TEST_F(RespKeysTest, AnyConnectionGoesOnWithAScan) {
  for (int i = 0; i < 10; ++i) set("key" + std::to_string(i), "v");
  talk_on<2>([](const std::array<int, 2>& others) {
    std::string cursor = "0";
    int calls = 0;
    do cursor = cursor_of(others[static_cast<size_t>(calls++ % 2)], "SCAN " + cursor + " COUNT 2");
    while (cursor != "0");
    EXPECT_EQ(calls, 5);
  });
}

// Of two workers: each has its own Items, and clients come to either.
TEST_F(RespKeysTest, AScanGoesOnWhereItBegan) {
  constexpr int kCount = 3000;
  constexpr size_t kScans = 6;
  for (int i = 0; i < kCount; ++i) set("key" + std::to_string(i), "v");
  task::Scheduler two;
  ASSERT_TRUE(two.open({.worker_count = 2, .stack_bytes = task::kTestStackBytes}));
  RespScans scans;
  std::atomic<uint64_t> cursors[kScans] = {};
  std::multiset<std::string> found[kScans];
  std::atomic<uint32_t> turn[kScans] = {};
  task::Future began[2], done[2];
  // Both take steps of all scans, in turns.
  const auto work = [&](uint32_t worker) {
    Items own;
    ASSERT_TRUE(own.open(shared));
    scans.begin(worker, own);
    std::optional<RespScans::Caller> caller(std::in_place, scans, worker, own);
    began[worker].fulfil();
    began[1 - worker].wait();
    for (bool has_more = true; has_more;) {
      has_more = false;
      for (uint32_t i = 0; i < kScans; ++i) {
        const uint32_t now = turn[i];  // the other worker may be ending its turn
        if (now > 0 && cursors[i] == 0) continue;
        has_more = true;
        if ((now + i) % 2 != worker) continue;
        auto step = caller->step({.cursor = cursors[i], .count = 100, .type = ""});
        ASSERT_TRUE(step) << step.error().message;
        found[i].insert(step->keys.begin(), step->keys.end());
        cursors[i] = step->cursor;
        ++turn[i];
      }
      task::yield();
    }
    EXPECT_EQ(caller->step({.cursor = 12345, .count = 1, .type = ""}).error().number, ESRCH);
    caller.reset();
    done[worker].fulfil();
    done[1 - worker].wait();
    scans.end(worker);
    own.close();
  };
  auto run = [&] {
    auto first = [&] { work(0); };
    auto second = [&] { work(1); };
    task::Task& a = task::start("scans", first, &two.worker(0));
    task::Task& b = task::start("scans", second, &two.worker(1));
    task::join(a);
    task::join(b);
  };
  ASSERT_TRUE(two.run(task::calls("scans", run)));
  two.close();
  for (const std::multiset<std::string>& one : found) {
    EXPECT_EQ(one.size(), size_t{kCount});
    EXPECT_EQ(std::set<std::string>(one.begin(), one.end()).size(), size_t{kCount});
  }
}

// More than are read ahead.
constexpr int kManyKeys = 2000;

std::string line_of(int other) {
  std::string line;
  while (!line.ends_with('\n')) line += hear(other, 1);
  return line;
}

// Is it a cursor for another call, and not the text of an error?
bool has_more(const std::string& cursor) {
  return cursor != "0" && !cursor.empty() && cursor.find_first_not_of("0123456789") == std::string::npos;
}

TEST_F(RespKeysTest, ScansThatAreUsedStay) {
  for (int i = 0; i < kManyKeys; ++i) set("key" + std::to_string(i), "v");
  talk_on<kv::Snapshots::kMax + 1>([&](const auto& others) {
    std::vector<std::string> cursors;
    for (size_t i = 0; i < kv::Snapshots::kMax; ++i) {
      cursors.push_back(cursor_of(others[i]));
      clock.move(1);
    }
    for (const char* request : {"SCAN 0", "KEYS *", "DBSIZE", "RANDOMKEY"}) {
      say(others.back(), std::string(request) + "\r\n");
      EXPECT_TRUE(line_of(others.back()).starts_with("-ERR ")) << request;
    }
    // The first scan is not used for long, and ends; the last one is used.
    clock.move(RespScans::kUsedMs);
    cursors.back() = cursor_of(others[0], "SCAN " + cursors.back() + " COUNT 1");
    exchange(others.back(), "DBSIZE\r\n", ":2000\r\n");
    exchange(others[0], "SCAN " + cursors.front() + "\r\n", kForgotten);
    EXPECT_TRUE(has_more(cursor_of(others[0], "SCAN " + cursors.back() + " COUNT 1")));
  });
}

TEST_F(RespKeysTest, ScansOfWhoBeginsOthersOrHasGoneDoNotHoldUpAnybody) {
  for (int i = 0; i < kManyKeys; ++i) set("key" + std::to_string(i), "v");
  constexpr size_t kMax = kv::Snapshots::kMax;
  talk_on<kMax>([&](const std::array<int, kMax>& others) {
    const int stays = others[0];
    const std::string kept = cursor_of(stays);
    for (size_t i = 0; i < 3 * kMax; ++i) EXPECT_TRUE(has_more(cursor_of(others[1]))) << i;
    // Each holds as many scans as one may keep from others; together they are more than there is room for.
    for (size_t i = 1; i < kMax; ++i) {
      for (int scans = 0; scans < 2; ++scans) EXPECT_TRUE(has_more(cursor_of(others[i]))) << i;
      say(others[i], "QUIT\r\n");
      EXPECT_EQ(line_of(others[i]), "+OK\r\n");
    }
    EXPECT_TRUE(has_more(cursor_of(stays, "SCAN " + kept + " COUNT 1")));
  });
}

TEST_F(RespKeysTest, NobodyWaitsForReplicas) {
  EXPECT_EQ(ask("WAIT 0 0\r\nWAIT 3 100\r\nWAIT 1 -1"), ":0\r\n:0\r\n-ERR timeout is negative\r\n");
}

// A cache that drops items all the time.
class RespCacheScansTest : public ItemsTest {
 protected:
  // Reading takes so long that much is changed meanwhile.
  RespCacheScansTest()
      : ItemsTest(*storage::make_latency_device(*storage::make_memory_device(32 << 20),
                                                {.mean_us = 1000, .channel_count = 64})) {}
  void SetUp() override {
    ASSERT_TRUE(kv::Store::make(*device, {.segment_bytes = 1 << 20, .is_cache = true}));
    open();
  }
};

TEST_F(RespCacheScansTest, WhatIsDroppedMeanwhileIsLeftOut) {
  for (int i = 0; i < 2000; ++i) set("key" + std::to_string(i), std::string(1000, 'v'));
  std::atomic<bool> is_over{false};
  std::vector<std::thread> others;
  for (int t = 0; t < 3; ++t)
    others.emplace_back([&, t] {
      Items own;
      ASSERT_TRUE(own.open(shared));
      const std::string large(400'000, 'o');
      for (int i = 0; !is_over.load(std::memory_order_relaxed); ++i)
        of(own.set("key" + std::to_string(t) + "-" + std::to_string(i % 20), bytes_of(large)));
      own.close();
    });
  auto scan = [&] {
    Items own;
    ASSERT_TRUE(own.open(shared));
    RespScans scans;
    scans.begin(0, own);
    {
      RespScans::Caller caller(scans, 0, own);
      for (int i = 0; i < 8; ++i) {
        auto step = caller.step({.cursor = 0, .count = 4096, .type = ""});
        ASSERT_TRUE(step) << step.error().message;
      }
    }
    scans.end(0);
    own.close();
  };
  task::Scheduler scheduler;
  ASSERT_TRUE(scheduler.open({.worker_count = 1, .stack_bytes = task::kTestStackBytes}));
  EXPECT_TRUE(scheduler.run(task::calls("scans", scan)));
  scheduler.close();
  is_over = true;
  for (std::thread& other : others) other.join();
}

}  // namespace
}  // namespace server
