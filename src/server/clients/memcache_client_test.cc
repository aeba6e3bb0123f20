// Clients of memcached's protocols: requests and replies, byte for byte. A store in memory, a task that serves, the test as the client.
#include "server/clients/memcache_client.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <thread>

#include "server/items/test_items.h"
#include "server/net/test_peer.h"
#include "storage/testing/test_fail_device.h"
#include "task/test_tasks.h"

namespace server {
namespace {

class MemcacheClientTest : public ItemsTest {
 protected:
  explicit MemcacheClientTest(storage::Device* own_device = *storage::make_memory_device(128 << 20))
      : ItemsTest(own_device) {}
  void SetUp() override {
    ItemsTest::SetUp();
    settings.version = "1.2.3";
  }
  void TearDown() override {
    if (client >= 0) hang_up();
  }
  // Begins a connection, which is served by a thread of its own.
  void connect() {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    client = ends[1];
    serves = std::thread([this, end = ends[0]] {
      task::Scheduler scheduler;
      ASSERT_TRUE(scheduler.open({.worker_count = 1, .stack_bytes = task::kTestStackBytes}));
      auto serve = [&] { serve_one(end); };
      ASSERT_TRUE(scheduler.run(task::calls("serves", serve)));
      scheduler.close();
    });
  }
  void hang_up() {
    ::close(client);
    client = -1;
    serves.join();
  }
  void say(std::string_view text) { ASSERT_TRUE(server::say(client, text)); }
  std::string hear(size_t bytes) { return server::hear(client, bytes); }
  // All answers to the text; the answer to a final mn marks their end.
  std::string ask(const std::string& text) {
    if (client < 0) connect();
    say(text + "mn\r\n");
    std::string heard;
    while (!heard.ends_with("MN\r\n")) {
      const std::string more = hear(1);
      if (more.empty()) return heard + "(end)";
      heard += more;
    }
    return heard.substr(0, heard.size() - 4);
  }

  Settings settings;
  int client = -1;
  std::thread serves;

 private:
  void serve_one(int end) {
    storage::BufferPool pool;
    Items own;
    ASSERT_TRUE(own.open(shared));
    Hub hub(settings, shared);
    Stream stream(pool, {});
    ASSERT_TRUE(stream.take(end));
    Connection connection;
    connection.stream = &stream;
    connection.task = &task::self();
    ASSERT_TRUE(hub.enter(connection));
    EXPECT_TRUE(MemcacheClient(hub, connection, own).serve());
    hub.leave(connection);
    stream.close();
    own.close();
  }
};

TEST_F(MemcacheClientTest, StoresAndFinds) {
  EXPECT_EQ(ask("set a 5 0 3\r\nabc\r\n"), "STORED\r\n");
  EXPECT_EQ(ask("get a\r\n"), "VALUE a 5 3\r\nabc\r\nEND\r\n");
  EXPECT_EQ(ask("get none\r\n"), "END\r\n");
  EXPECT_EQ(ask("get none a none a\r\n"), "VALUE a 5 3\r\nabc\r\nVALUE a 5 3\r\nabc\r\nEND\r\n");
  EXPECT_EQ(ask("add a 0 0 1\r\nx\r\nadd b 0 0 1\r\nx\r\n"), "NOT_STORED\r\nSTORED\r\n");
  EXPECT_EQ(ask("replace none 0 0 1\r\nx\r\nreplace b 0 0 1\r\ny\r\n"), "NOT_STORED\r\nSTORED\r\n");
  EXPECT_EQ(ask("append b 0 0 2\r\nzz\r\nprepend b 0 0 1\r\nx\r\nget b\r\n"),
            "STORED\r\nSTORED\r\nVALUE b 0 4\r\nxyzz\r\nEND\r\n");
  EXPECT_EQ(ask("append none 0 0 1\r\nx\r\n"), "NOT_STORED\r\n");
  EXPECT_EQ(ask("set empty 0 0 0\r\n\r\nget empty\r\n"), "STORED\r\nVALUE empty 0 0\r\n\r\nEND\r\n");
  EXPECT_EQ(ask("delete b\r\ndelete b\r\n"), "DELETED\r\nNOT_FOUND\r\n");
}

TEST_F(MemcacheClientTest, TheCasUniqueDecides) {
  ask("set a 0 0 1\r\nx\r\n");
  const std::string found = ask("gets a\r\n");
  const std::string cas = found.substr(12, found.find('\r') - 12);
  EXPECT_EQ(found, "VALUE a 0 1 " + cas + "\r\nx\r\nEND\r\n");
  EXPECT_EQ(ask("cas a 0 0 1 " + cas + "1\r\ny\r\n"), "EXISTS\r\n");
  EXPECT_EQ(ask("cas a 0 0 1 " + cas + "\r\ny\r\n"), "STORED\r\n");
  EXPECT_EQ(ask("cas a 0 0 1 " + cas + "\r\nz\r\n"), "EXISTS\r\n");
  EXPECT_EQ(ask("cas none 0 0 1 1\r\nz\r\nget a\r\n"), "NOT_FOUND\r\nVALUE a 0 1\r\ny\r\nEND\r\n");
  // No item has a cas of 0.
  EXPECT_EQ(ask("cas a 0 0 1 0\r\nz\r\ncas none 0 0 1 0\r\nz\r\n"), "EXISTS\r\nNOT_FOUND\r\n");
  EXPECT_EQ(ask("ms a 1 C0\r\nz\r\nms a 1 C0 I\r\nz\r\nmd a C0\r\n"), "EX\r\nEX\r\nEX\r\n");
}

TEST_F(MemcacheClientTest, Counts) {
  ask("set n 0 0 2\r\n10\r\nset text 0 0 1\r\nx\r\n");
  EXPECT_EQ(ask("incr n 5\r\ndecr n 1\r\ndecr n 100\r\n"), "15\r\n14\r\n0\r\n");
  EXPECT_EQ(ask("incr none 1\r\n"), "NOT_FOUND\r\n");
  EXPECT_EQ(ask("incr text 1\r\n"), "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n");
}

TEST_F(MemcacheClientTest, ItemsExpire) {
  EXPECT_EQ(ask("set a 0 10 1\r\nx\r\nset gone 0 -1 1\r\nx\r\nget a gone\r\n"),
            "STORED\r\nSTORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n");
  EXPECT_EQ(ask("touch a 100\r\ntouch none 1\r\n"), "TOUCHED\r\nNOT_FOUND\r\n");
  clock.move(50'000);
  EXPECT_EQ(ask("gat 10 a none\r\n"), "VALUE a 0 1\r\nx\r\nEND\r\n");
  clock.move(11'000);
  EXPECT_EQ(ask("get a\r\n"), "END\r\n");
}

TEST_F(MemcacheClientTest, IsQuietWhenItIsToldSo) {
  EXPECT_EQ(ask("set a 0 0 1 noreply\r\n1\r\nadd a 0 0 1 noreply\r\nx\r\nincr a 1 noreply\r\nget a\r\n"),
            "VALUE a 0 1\r\n2\r\nEND\r\n");
  EXPECT_EQ(
      ask("touch a 0 noreply\r\ndelete a noreply\r\ndelete a noreply\r\nflush_all noreply\r\nget a\r\n"),
      "END\r\n");
  EXPECT_EQ(ask("mg none v q\r\nms a 1 q\r\nx\r\nmd a q\r\nmd a\r\n"), "NF\r\n");
}

TEST_F(MemcacheClientTest, Flushes) {
  ask("set a 0 0 1\r\nx\r\n");
  EXPECT_EQ(ask("flush_all\r\nget a\r\nset a 0 0 1\r\ny\r\nget a\r\n"),
            "OK\r\nEND\r\nSTORED\r\nVALUE a 0 1\r\ny\r\nEND\r\n");
  EXPECT_EQ(ask("flush_all 10\r\nget a\r\n"), "OK\r\nVALUE a 0 1\r\ny\r\nEND\r\n");
  clock.move(11'000);
  EXPECT_EQ(ask("get a\r\n"), "END\r\n");
  hang_up();
  settings.takes_flush = false;
  EXPECT_EQ(ask("flush_all\r\nflush_all noreply\r\nflush_all 10 noreply\r\n"),
            "CLIENT_ERROR flush_all not allowed\r\n");
}

TEST_F(MemcacheClientTest, WhatThereIsNotHereIsRefusedUnlessItIsToBeQuiet) {
  EXPECT_EQ(ask("cache_memlimit 100\r\n").substr(0, 26), "CLIENT_ERROR not available");
  EXPECT_EQ(ask("cache_memlimit 100 noreply\r\nslabs reassign 1 2 noreply\r\nslabs automove x noreply\r\n"
                "lru mode flat noreply\r\nextstore free_memchunks 1 0 noreply\r\n"),
            "");
}

TEST_F(MemcacheClientTest, WhatRunsByItselfMayBeTurnedOnAndOff) {
  EXPECT_EQ(ask("lru_crawler enable\r\nlru_crawler  disable\r\nslabs automove 1\r\n"), "OK\r\nOK\r\nOK\r\n");
  EXPECT_EQ(ask("lru_crawler enable x\r\n").substr(0, 12), "CLIENT_ERROR");
  EXPECT_EQ(ask("lru_crawler metadump all\r\n").substr(0, 12), "CLIENT_ERROR");
}

TEST_F(MemcacheClientTest, MetaCommandsAnswerWhatTheyAreAskedFor) {
  EXPECT_EQ(ask("ms a 3 T100 F7 c\r\nabc\r\n").substr(0, 4), "HD c");
  EXPECT_EQ(ask("mg a v f t s k Oq1\r\n"), "VA 3 f7 t100 s3 ka Oq1\r\nabc\r\n");
  EXPECT_EQ(ask("mg a\r\nmg none v\r\n"), "HD\r\nEN\r\n");
  EXPECT_EQ(ask("mg a h l\r\nmg a h l\r\n"), "HD h1 l0\r\nHD h1 l0\r\n") << "it was asked for before";
  EXPECT_EQ(ask("mg new N30 v t\r\nmg new v\r\n"), "VA 0 t30 W\r\n\r\nVA 0 Z\r\n\r\n");
  EXPECT_EQ(ask("ma n N0 J5\r\nma n v D3\r\nma n MD v\r\n"), "HD\r\nVA 1\r\n8\r\nVA 1\r\n7\r\n");
  EXPECT_EQ(ask("md a I T30\r\nmg a v\r\nmg a v\r\n"), "HD\r\nVA 3 X W\r\nabc\r\nVA 3 Z X\r\nabc\r\n");
  EXPECT_EQ(ask("ms a 1 MA\r\nd\r\nmg a v q\r\n").substr(0, 4), "HD\r\n");
  EXPECT_EQ(ask("md a\r\nmd a\r\n"), "HD\r\nNF\r\n");
  EXPECT_EQ(ask("ms YmluYXJ5 3 b\r\nabc\r\nmg YmluYXJ5 b k v\r\nget binary\r\n"),
            "HD\r\nVA 3 kYmluYXJ5 b\r\nabc\r\nVALUE binary 0 3\r\nabc\r\nEND\r\n");
  EXPECT_EQ(ask("me none\r\n"), "EN\r\n");
  EXPECT_EQ(ask("me binary\r\n").substr(0, 10), "ME binary ");
}

// Like all of memcached's times: up to 30 days count from now, more from 1970.
TEST_F(MemcacheClientTest, WhatEndsSoonIsToBeFetchedAnew) {
  const auto since_1970 = [&](uint64_t from_now_s) { return std::to_string(now_ms() / 1000 + from_now_s); };
  ask("set a 0 100 1\r\nx\r\nset b 0 100 1\r\nx\r\nset stays 0 0 1\r\nx\r\n");
  EXPECT_EQ(ask("mg a R-1\r\nmg a R0\r\nmg a R100\r\nmg a R101\r\n"), "HD\r\nHD\r\nHD\r\nHD W\r\n");
  EXPECT_EQ(ask("mg b R" + since_1970(50) + "\r\nmg b R" + since_1970(200) + "\r\n"), "HD\r\nHD W\r\n");
  EXPECT_EQ(ask("mg stays R9223372036854775807\r\n"), "HD\r\n");
}

TEST_F(MemcacheClientTest, FlagsAboutTheExpiryAreHeededInTheirOrder) {
  ask("set a 0 10 1\r\nx\r\nset b 0 10 1\r\nx\r\n");
  EXPECT_EQ(ask("mg a t T100\r\nmg a t\r\nmg a R200 T300 t\r\n"), "HD t10\r\nHD t100\r\nHD t300 W\r\n");
  EXPECT_EQ(ask("mg b T100 R30\r\nmg b T20 R30 t\r\n"), "HD\r\nHD t20 W\r\n");
  EXPECT_EQ(ask("mg c t N60\r\nmg c t\r\nmg d N60 T30 t\r\nmg d t\r\nmg e T30 t N60\r\nmg e t\r\n"),
            "HD t-1 W\r\nHD t60 Z\r\nHD t30 W\r\nHD t30 Z\r\nHD t30 W\r\nHD t60 Z\r\n");
  EXPECT_EQ(ask("ma n N60 T30 t\r\nma n t T90\r\nma n T40 t\r\nma o t N60\r\nma o t\r\n"),
            "HD t30\r\nHD t30\r\nHD t40\r\nHD t-1\r\nHD t60\r\n");
}

TEST_F(MemcacheClientTest, WhatIsWrongIsSaidAndTheConnectionGoesOn) {
  EXPECT_EQ(ask("fly\r\n"), "ERROR\r\n");
  EXPECT_EQ(ask("set a 0 0 3\r\nabcde\r\n"), "CLIENT_ERROR bad data chunk\r\nERROR\r\n");
  EXPECT_EQ(ask("get a\r\n"), "END\r\n");
  EXPECT_EQ(ask("get " + std::string(251, 'k') + "\r\n"), "CLIENT_ERROR bad command line format\r\n");
  const std::string large(1 << 20, 'v');
  ask("set a 0 0 1\r\nx\r\n");
  EXPECT_EQ(ask("set a 0 0 " + std::to_string(large.size()) + "\r\n" + large + "\r\nget a\r\n"),
            "SERVER_ERROR object too large for cache\r\nEND\r\n")
      << "what was there is not what was meant";
  EXPECT_EQ(ask("slabs reassign 1 2\r\n").substr(0, 12), "CLIENT_ERROR");
  EXPECT_EQ(ask("shutdown\r\n"), "ERROR: shutdown not enabled\r\n");
}

TEST_F(MemcacheClientTest, AValueThatIsStillToComeIsOfTheCommandBehindALineThatWasTooLong) {
  const std::string too_long = "get " + std::string(3000, 'k') + " x\r\n",
                    refusal = "CLIENT_ERROR bad command line format\r\n";
  EXPECT_EQ(ask(too_long), refusal);
  for (const size_t bytes : {5, 20'000}) {
    const std::string value(bytes, 'v'), size = std::to_string(bytes);
    say(too_long + "set a 0 0 " + size + "\r\nvv");
    EXPECT_EQ(hear(refusal.size()), refusal) << "and it waits for the value";
    EXPECT_TRUE(ask(value.substr(2) + "\r\nget a\r\n") ==
                "STORED\r\nVALUE a 0 " + size + "\r\n" + value + "\r\nEND\r\n")
        << bytes;
  }
}

TEST_F(MemcacheClientTest, AValueThatIsTooLargeIsRefusedWhenAllOfItHasCome) {
  const std::string value(2'000'000, 'v'), size = std::to_string(value.size());
  for (const std::string& head : {"set key 0 0 " + size + "\r\n", "ms key " + size + "\r\n"}) {
    if (client < 0) connect();
    say(head + value.substr(1));
    pollfd readable = {.fd = client, .events = POLLIN, .revents = 0};
    EXPECT_EQ(poll(&readable, 1, 50), 0) << head;
    say("v\r\nmn\r\n");
    const std::string expected = "SERVER_ERROR object too large for cache\r\nMN\r\n";
    EXPECT_EQ(hear(expected.size()), expected);
  }
}

class FailingDeviceTest : public MemcacheClientTest {
 protected:
  FailingDeviceTest()
      : MemcacheClientTest(new storage::FailDevice(*storage::make_memory_device(128 << 20))) {}
  storage::FailDevice& failing() { return *static_cast<storage::FailDevice*>(device); }
};

TEST_F(FailingDeviceTest, WhatCannotBeDroppedIsSaidAndTheConnectionGoesOn) {
  const std::string large(1 << 20, 'v'), too_large = "set a 0 0 " + std::to_string(large.size());
  ask("set a 0 0 1\r\nx\r\n");
  failing().fail(storage::FailDevice::Failing::kWrites, EIO);
  const std::string heard =
      ask(too_large + "\r\n" + large + "\r\n" + too_large + " noreply\r\n" + large + "\r\n");
  failing().fail(storage::FailDevice::Failing::kNothing, 0);
  EXPECT_TRUE(heard.starts_with("SERVER_ERROR ") && !heard.contains("too large")) << heard;
  EXPECT_EQ(std::ranges::count(heard, '\n'), 1) << heard;
  EXPECT_TRUE(heard.ends_with("\r\n")) << heard;
}

TEST_F(FailingDeviceTest, ErrorsOfTheDeviceAreCounted) {
  const auto errors = [&] { return shared.counts()[Count::kErrors]; };
  ask("set a 0 0 1\r\nx\r\nmg " + std::string(251, 'k') + "\r\nincr a 1\r\n");
  EXPECT_EQ(errors(), 0u) << "those are its client's";
  failing().fail(storage::FailDevice::Failing::kReads, EIO);
  EXPECT_TRUE(ask("get a\r\n").starts_with("SERVER_ERROR "));
  EXPECT_EQ(errors(), 1u);
  failing().fail(storage::FailDevice::Failing::kNothing, 0);
  EXPECT_EQ(ask("get a\r\n"), "VALUE a 0 1\r\nx\r\nEND\r\n");
  EXPECT_EQ(errors(), 1u);
}

TEST_F(MemcacheClientTest, QuitEndsIt) {
  connect();
  say("set a 0 0 1\r\nx\r\nquit\r\nget a\r\n");
  EXPECT_EQ(hear(100), "STORED\r\n");
}

TEST_F(MemcacheClientTest, AnHttpClientIsNotAnswered) {
  connect();
  say("GET / HTTP/1.1\r\n");
  EXPECT_EQ(hear(100), "");
}

TEST_F(MemcacheClientTest, ValuesOfAllLengths) {
  for (const size_t bytes : {1, 2000, 3000, 16'300, 16'384, 16'400, 40'000, 300'000, 1'000'000}) {
    std::string value(bytes, 'v');
    value.back() = 'e';
    const std::string length = std::to_string(bytes);
    EXPECT_EQ(ask("set key 0 0 " + length + "\r\n" + value + "\r\n"), "STORED\r\n") << bytes;
    EXPECT_TRUE(ask("get key\r\n") == "VALUE key 0 " + length + "\r\n" + value + "\r\nEND\r\n") << bytes;
    EXPECT_TRUE(ask("mg key v s\r\n") == "VA " + length + " s" + length + "\r\n" + value + "\r\n") << bytes;
  }
}

std::string many_requests(std::string& replies) {
  std::string requests;
  for (int i = 0; i < 300; ++i) {
    const std::string key = "key" + std::to_string(i % 97), value(static_cast<size_t>(i * 37 % 5000), 'v');
    const std::string length = std::to_string(value.size());
    requests += "set " + key + " 1 0 " + length + "\r\n" + value + "\r\nget " + key + "\r\nget none " + key +
                "\r\nmg " + key + " s v\r\nmg none v\r\n";
    const std::string found = "VALUE " + key + " 1 " + length + "\r\n" + value + "\r\nEND\r\n";
    replies += "STORED\r\n" + found + found + "VA " + length + " s" + length + "\r\n" + value + "\r\nEN\r\n";
  }
  return requests;
}

TEST_F(MemcacheClientTest, ManyRequestsAtOnceAreAnsweredInTheirOrder) {
  std::string replies, heard;
  const std::string requests = many_requests(replies);
  connect();
  std::thread says([&] { say(requests); });
  heard = hear(replies.size());
  says.join();
  EXPECT_TRUE(heard == replies);
}

TEST_F(MemcacheClientTest, PiecesOfRequestsAreAnsweredAsWholeOnes) {
  std::string replies, heard;
  const std::string requests = many_requests(replies);
  connect();
  std::thread says([&] {
    for (size_t at = 0; at < requests.size(); at += 613) say(requests.substr(at, 613));
  });
  heard = hear(replies.size());
  says.join();
  EXPECT_TRUE(heard == replies);
}

TEST_F(MemcacheClientTest, EachByteMayComeByItself) {
  connect();
  const std::string requests = "set a 0 0 3\r\nabc\r\nget a b\r\nmg a v\r\ndelete a\r\n";
  const std::string replies = "STORED\r\nVALUE a 0 3\r\nabc\r\nEND\r\nVA 3\r\nabc\r\nDELETED\r\n";
  for (const char byte : requests) {
    say({&byte, 1});
    std::this_thread::yield();
  }
  EXPECT_EQ(hear(replies.size()), replies);
}

TEST_F(MemcacheClientTest, SetsThatComeTogetherAreMadeTogether) {
  std::string says, hears;
  for (int i = 0; i < 200; ++i) {
    const std::string key = "key" + std::to_string(i % 150), value = std::to_string(i * i);
    const std::string line = "set " + key + " 1 0 " + std::to_string(value.size());
    says += i % 10 == 3 ? line + " noreply\r\n" + value + "\r\n" : line + "\r\n" + value + "\r\n";
    if (i % 10 != 3) hears += "STORED\r\n";
    if (i % 50 == 20) {
      says += "set bad 0 0 2\r\nxxxx\r\nms meta 1 c\r\nx\r\nms meta 1 MA\r\ny\r\ncas key1 0 0 1 5\r\nz\r\n";
      hears += "CLIENT_ERROR bad data chunk\r\nERROR\r\n";
    }
  }
  std::string heard = ask(says);
  // The meta sets report their items' cas uniques.
  for (size_t at; (at = heard.find("HD c")) != std::string::npos;) {
    const size_t end = heard.find("HD\r\nEXISTS\r\n", at);
    ASSERT_NE(end, std::string::npos);
    heard.erase(at, end + std::string("HD\r\nEXISTS\r\n").size() - at);
  }
  EXPECT_EQ(heard, hears);
  for (int i = 50; i < 200; ++i) {
    const std::string value = std::to_string(i * i), key = "key" + std::to_string(i % 150);
    EXPECT_EQ(ask("get " + key + "\r\n"),
              "VALUE " + key + " 1 " + std::to_string(value.size()) + "\r\n" + value + "\r\nEND\r\n");
  }
  EXPECT_EQ(ask("get meta\r\n"), "VALUE meta 0 2\r\nxy\r\nEND\r\n");
  EXPECT_GT(store->counts().use.put_many_keys, 150u);
}

TEST_F(MemcacheClientTest, KeysInBase64AreEachTheirOwn) {
  EXPECT_EQ(
      ask("ms a2V5MQ== 1 b\r\n1\r\nms a2V5Mg== 1 b\r\n2\r\nms plain 1\r\n3\r\nms a2V5Mw== 1 b\r\n4\r\n"),
      "HD\r\nHD\r\nHD\r\nHD\r\n");
  EXPECT_EQ(ask("mg a2V5MQ== b k v\r\nmg a2V5Mg== b k v\r\n"),
            "VA 1 ka2V5MQ== b\r\n1\r\nVA 1 ka2V5Mg== b\r\n2\r\n");
  EXPECT_EQ(
      ask("get key1 key2 key3 plain\r\n"),
      "VALUE key1 0 1\r\n1\r\nVALUE key2 0 1\r\n2\r\nVALUE key3 0 1\r\n4\r\nVALUE plain 0 1\r\n3\r\nEND\r\n");
}

TEST_F(MemcacheClientTest, TellsOfPrefixes) {
  EXPECT_EQ(ask("stats detail dump\r\nstats detail on\r\n"), "END\r\nOK\r\n");
  ask("set a:1 0 0 1\r\nx\r\nset b:1 0 0 1\r\nx\r\nadd b:1 0 0 1\r\nx\r\nset c 0 0 1\r\nx\r\n");
  ask("get a:1 a:2 b:1\r\nmg b:1 t\r\ngat 5 a:1\r\ndelete a:9\r\n");
  EXPECT_EQ(ask("stats detail dump\r\n"),
            "PREFIX a get 3 hit 2 set 1 del 1\r\nPREFIX b get 2 hit 2 set 2 del 0\r\nEND\r\n");
  EXPECT_EQ(ask("stats detail off\r\nget a:1\r\n"), "OK\r\nVALUE a:1 0 1\r\nx\r\nEND\r\n");
  EXPECT_EQ(
      ask("stats detail dump\r\nstats reset\r\nstats detail dump\r\n"),
      "PREFIX a get 3 hit 2 set 1 del 1\r\nPREFIX b get 2 hit 2 set 2 del 0\r\nEND\r\nRESET\r\nEND\r\n");
  EXPECT_EQ(
      ask("stats detail\r\nstats detail x\r\n"),
      "CLIENT_ERROR usage: stats detail on|off|dump\r\nCLIENT_ERROR usage: stats detail on|off|dump\r\n");
}

TEST_F(MemcacheClientTest, AGetIsCountedOnce) {
  ask("set a:1 0 0 1\r\nx\r\nstats detail on\r\nmd a:1 I\r\n");
  EXPECT_EQ(ask("mg a:1 v\r\nmg a:1 v\r\nme a:1\r\n").substr(0, 33),
            "VA 1 X W\r\nx\r\nVA 1 Z X\r\nx\r\nME a:1 ");
  EXPECT_EQ(ask("stats detail dump\r\n"), "PREFIX a get 2 hit 2 set 0 del 1\r\nEND\r\n");
  EXPECT_TRUE(ask("stats\r\n").contains("STAT get_hits 2\r\n"));
}

TEST_F(MemcacheClientTest, TestsMoveTheClock) {
  EXPECT_EQ(ask("debugtime 5\r\n"), "ERROR\r\n");
  hang_up();
  settings.movable_clock = &clock;
  ask("set a 0 10 1\r\nx\r\n");
  EXPECT_EQ(ask("debugtime 5\r\nget a\r\n"), "OK\r\nVALUE a 0 1\r\nx\r\nEND\r\n");
  EXPECT_EQ(ask("debugtime 6\r\nget a\r\ndebugtime x\r\ndebugtime\r\n"), "OK\r\nEND\r\nERROR\r\nERROR\r\n");
}

TEST_F(MemcacheClientTest, GetsOfMoreKeysThanAreLookedUpAtOnce) {
  std::string line = "get", replies;
  for (int i = 0; i < 500; ++i) {
    const std::string key = "key" + std::to_string(i);
    line += " " + key;
    if (i % 3 != 0) continue;
    set(key, "v" + std::to_string(i));
    replies += "VALUE " + key + " 0 " + std::to_string(1 + std::to_string(i).size()) + "\r\nv" +
               std::to_string(i) + "\r\n";
  }
  EXPECT_EQ(ask(line + "\r\n"), replies + "END\r\n");
}

TEST_F(MemcacheClientTest, AnErrorIsTheEndOfAGet) {
  set("a", "1");
  set("b", "2");
  kv::Session session;
  ASSERT_TRUE(session.open(*store));
  const std::byte no_marks{0xff};
  ASSERT_TRUE(session.put("bad", {&no_marks, 1}));
  session.close();
  const std::string error = "SERVER_ERROR " + std::string(no_item().message) + "\r\n";
  const std::string a = "VALUE a 0 1\r\n1\r\n", b = "VALUE b 0 1\r\n2\r\n";
  EXPECT_EQ(ask("get a bad b\r\nget bad\r\nget b a\r\n"), a + error + error + b + a + "END\r\n");
  EXPECT_EQ(ask("gat 0 a bad b\r\ngat 0 b\r\n"), a + error + b + "END\r\n");
  std::string in_parts = "get bad";
  while (in_parts.size() < 5000) in_parts += " a";
  EXPECT_EQ(ask(in_parts + "\r\nget b\r\n"), error + b + "END\r\n");
  EXPECT_EQ(ask(in_parts + " " + std::string(251, 'k') + "\r\nget b\r\n"), error + b + "END\r\n");
  EXPECT_EQ(ask("mg bad v\r\nmg a v\r\nget a\r\n"), error + "VA 1\r\n1\r\n" + a + "END\r\n");
}

TEST_F(MemcacheClientTest, Statistics) {
  ask("set a 0 0 1\r\nx\r\nget a b\r\n");
  const std::string stats = ask("stats\r\n");
  for (const char* line : {"STAT version 1.2.3\r\n", "STAT get_hits 1\r\n", "STAT get_misses 1\r\n",
                           "STAT cmd_set 1\r\n", "STAT curr_connections 1\r\n", "STAT threads 1\r\n"})
    EXPECT_TRUE(stats.contains(line)) << line << " in\n" << stats;
  EXPECT_TRUE(stats.ends_with("END\r\n"));
  // Stored: a once and b twice; created: n and m.
  ask("add a 0 0 1\r\nx\r\ncas a 0 0 1 0\r\nx\r\nreplace none 0 0 1\r\nx\r\n");
  ask("set b 0 0 1\r\nx\r\nset b 0 0 1\r\ny\r\nma n N0\r\nma n N0\r\nmg m N0\r\nmg m N0\r\n");
  const std::string later = ask("stats\r\n");
  EXPECT_TRUE(later.contains("STAT cmd_set 6\r\n")) << later;
  EXPECT_TRUE(later.contains("STAT total_items 5\r\n")) << later;
  EXPECT_EQ(ask("stats reset\r\n"), "RESET\r\n");
  EXPECT_TRUE(ask("stats\r\n").contains("STAT get_hits 0\r\n"));
  EXPECT_TRUE(ask("stats settings\r\n").contains("STAT item_size_max 1048576\r\n"));
  EXPECT_EQ(ask("stats nothing\r\n"), "ERROR\r\n");
  EXPECT_EQ(ask("version\r\nverbosity 1\r\n"), "VERSION 1.2.3\r\nOK\r\n");
}

TEST_F(MemcacheClientTest, StatisticsOfTheStoreBeginAgainToo) {
  ASSERT_EQ(set("a", std::string(1000, 'x')), Outcome::kDone);
  reopen();  // so that the value is read from the device
  ask("get a\r\n");
  EXPECT_FALSE(ask("stats\r\n").contains("STAT get_extstore 0\r\n"));
  EXPECT_EQ(ask("stats reset\r\n"), "RESET\r\n");
  EXPECT_TRUE(ask("stats\r\n").contains("STAT get_extstore 0\r\n"));
}

// 24 bytes, extras, key, value.
std::string binary(uint8_t opcode, const std::string& extras, const std::string& key,
                   const std::string& value) {
  std::string text(24, '\0');
  text[0] = '\x80';
  text[1] = static_cast<char>(opcode);
  text[3] = static_cast<char>(key.size());
  text[4] = static_cast<char>(extras.size());
  const size_t body = extras.size() + key.size() + value.size();
  for (int i = 0; i < 4; ++i) text[8 + i] = static_cast<char>(body >> (24 - 8 * i));
  text[12] = 'o';
  return text + extras + key + value;
}

TEST_F(MemcacheClientTest, SpeaksTheBinaryProtocol) {
  connect();
  const std::string flags_and_expiry(8, '\0');
  say(binary(0x01, flags_and_expiry, "key", "value"));
  std::string reply = hear(24);
  EXPECT_EQ(reply.substr(0, 8), std::string("\x81\x01\0\0\0\0\0\0", 8));
  EXPECT_EQ(reply[12], 'o');
  say(binary(0x00, "", "key", "") + binary(0x0c, "", "key", "") + binary(0x09, "", "none", "") +
      binary(0x0a, "", "", ""));
  reply = hear(24 + 4 + 5);
  EXPECT_EQ(reply.substr(28), "value");
  reply = hear(24 + 4 + 3 + 5);
  EXPECT_EQ(reply.substr(28), "keyvalue");
  EXPECT_EQ(hear(24)[1], 0x0a) << "of the get that was quiet nothing is said";
  say(binary(0x04, "", "key", "") + binary(0x04, "", "key", ""));
  EXPECT_EQ(hear(24)[7], 0);
  reply = hear(24 + 9);
  EXPECT_EQ(reply[7], 1);
  EXPECT_EQ(reply.substr(24), "Not found");
  say(binary(0x07, "", "", ""));
  EXPECT_EQ(hear(1000).size(), 24u) << "quit is answered, and ends it";
}

TEST_F(MemcacheClientTest, ABinaryTouchIsNoGet) {
  connect();
  say(binary(0x01, std::string(8, '\0'), "key", "v") + binary(0x1c, std::string(4, '\0'), "key", ""));
  EXPECT_EQ(hear(24)[7], 0);
  EXPECT_EQ(hear(24 + 4)[7], 0);
  EXPECT_EQ(shared.counts()[Count::kTouchHits], 1u);
  EXPECT_EQ(shared.counts()[Count::kGetHits], 0u);
}

TEST_F(MemcacheClientTest, ABinaryClientIsNotToldThatThereAreNoPrefixes) {
  connect();
  say(binary(0x10, "", "detail on", "") + binary(0x10, "", "detail off", ""));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(hear(24)[7], 0);
  for (const char* what : {"detail", "detail dump", "detail x"}) {
    say(binary(0x10, "", what, ""));
    ASSERT_EQ(hear(24)[7], 1) << what;
    EXPECT_EQ(hear(9), "Not found");
  }
}

TEST_F(MemcacheClientTest, AFlushThatIsRefusedIsSoInItsOwnProtocol) {
  settings.takes_flush = false;
  connect();
  say(binary(0x08, "", "", "") + binary(0x18, "", "", "") + binary(0x0a, "", "", ""));
  for (const char opcode : {'\x08', '\x18'}) {
    const std::string reply = hear(24 + 13);
    EXPECT_EQ(reply.substr(0, 8), std::string({'\x81', opcode, 0, 0, 0, 0, 0, '\x20'}));
    EXPECT_EQ(reply.substr(24), "Auth failure.");
  }
  EXPECT_EQ(hear(24)[1], 0x0a);
}

TEST_F(MemcacheClientTest, NobodyIsServedWhoHasNotSaidWhoHeIs) {
  settings.accounts = Accounts::of_password("secret");
  EXPECT_EQ(ask("set key 0 0 14\r\ndefault secret\r\nset key 0 0 1\r\nx\r\n"), "STORED\r\nSTORED\r\n");
  hang_up();
  connect();
  const std::string unknown = "CLIENT_ERROR unauthenticated\r\n";
  say("get key\r\ndelete key\r\nset key 0 0 13\r\ndefault wrong\r\nget key\r\n");
  const std::string expected = unknown + unknown + "CLIENT_ERROR authentication failure\r\n" + unknown;
  EXPECT_EQ(hear(expected.size()), expected);
  hang_up();
  // Binary: a delete, and a set that is too large, which would remove the present item.
  for (const std::string& request :
       {binary(0x04, "", "key", ""), binary(0x01, std::string(8, '\0'), "key", std::string(2 << 20, 'x')),
        binary(0x21, "", "PLAIN", std::string("\0default\0wrong", 14)) + binary(0x04, "", "key", "")}) {
    connect();
    server::say(client, request);  // as far as anybody reads it
    EXPECT_EQ(hear(8).substr(6), std::string("\0\x20", 2));
    hang_up();
  }
  connect();
  say(binary(0x21, "", "PLAIN", std::string("\0default\0secret", 15)) + binary(0x00, "", "key", ""));
  EXPECT_EQ(hear(24 + 13).substr(24), "Authenticated");
  EXPECT_EQ(hear(24 + 4 + 1).substr(28), "x");
}

TEST_F(MemcacheClientTest, LargeBinaryValues) {
  connect();
  const std::string value(500'000, 'v'), flags_and_expiry(8, '\0');
  std::thread says([&] { say(binary(0x01, flags_and_expiry, "key", value) + binary(0x00, "", "key", "")); });
  EXPECT_EQ(hear(24)[7], 0);
  EXPECT_TRUE(hear(28 + value.size()).substr(28) == value);
  says.join();
}

}  // namespace
}  // namespace server
