// How requests come and replies go: pipelines, pieces, large arguments, errors, passwords.
#include "server/clients/resp_client.h"

#include <map>
#include <random>

#include "server/clients/test_resp_client.h"

namespace server {
namespace {

// The texts are long: only the beginning is printed.
void expect_same(const std::string& got, const std::string& expected) {
  EXPECT_EQ(got.size(), expected.size());
  EXPECT_TRUE(got == expected) << got.substr(0, 200);
}

TEST_F(RespClientTest, AnswersInlineRequestsAndArrays) {
  EXPECT_EQ(answer("PING\r\n"), "+PONG\r\n");
  EXPECT_EQ(answer("ping hello\n\r\n\"echo\" 'a b'\r\n"), "$5\r\nhello\r\n$3\r\na b\r\n");
  EXPECT_EQ(answer("*0\r\n*1\r\n$4\r\nPING\r\n"), "+PONG\r\n");
}

TEST_F(RespClientTest, ManyGetsInOnePieceAreAnsweredInOrder) {
  std::string requests, expected;
  for (int i = 0; i < 100; ++i) {
    const std::string key = "key" + std::to_string(i);
    if (i % 3 != 0) set(key, "value" + std::to_string(i));
    requests += request({"GET", key});
    expected += i % 3 != 0 ? bulk("value" + std::to_string(i)) : "$-1\r\n";
  }
  EXPECT_EQ(answer(requests), expected);
  EXPECT_EQ(answer(requests, 1), expected);
  EXPECT_EQ(answer(requests, 777), expected);
}

TEST_F(RespClientTest, GetsSeeTheSetsBeforeThem) {
  std::string requests, expected;
  for (int i = 0; i < 200; ++i) {
    const std::string value = std::to_string(i);
    requests += request({"SET", "k", value}) + request({"GET", "k"}) + "\r\n" + request({"get", "none"}) +
                "GET k\r\n" + request({"GET", "k"});
    expected += "+OK\r\n" + bulk(value) + "$-1\r\n" + bulk(value) + bulk(value);
  }
  EXPECT_EQ(answer(requests), expected);
  EXPECT_EQ(answer(requests, 13), expected);
}

TEST_F(RespClientTest, RandomPipelinesAreAnsweredAsAMapWould) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::map<std::string, std::string> model;
    std::string requests = request({"FLUSHALL"}), expected = "+OK\r\n";
    for (int i = 0; i < 300; ++i) {
      const std::string key = "key" + std::to_string(random() % 10);
      const std::string value(random() % 8 == 0 ? 8000 + random() % 400 : random() % 3000, 'a' + i % 26);
      const auto at = model.find(key);
      const std::string there = at != model.end() ? bulk(at->second) : "$-1\r\n";
      switch (random() % 10) {
        case 0:
          requests += request({"SET", key, value});
          expected += "+OK\r\n";
          model[key] = value;
          break;
        case 1:
          requests += request({"GETDEL", key});
          expected += there;
          model.erase(key);
          break;
        case 2:
          requests += request({"MGET", key, "none", key});
          expected += "*3\r\n" + there + "$-1\r\n" + there;
          break;
        case 3:
          requests += "GET " + key + "\r\n\r\n";
          expected += there;
          break;
        default: requests += request({"GET", key}); expected += there;
      }
    }
    expect_same(answer(requests, 1 + random() % 20'000), expected);
  }
}

// Clients do send pipelines this way.
TEST_F(RespClientTest, ALongPipelineMayComeBeforeItsFirstAnswerIsTaken) {
  settings.stream.send_ns = 10'000'000'000;
  const std::string value(100, 'v'), large(100'000, 'x');
  set("k", value);
  std::string requests, expected;
  for (int i = 0; i < 50'000; ++i) {
    requests += request({"GET", "k"});
    expected += bulk(value);
  }
  requests += request({"SET", "large", large}) + request({"STRLEN", "large"});
  expected += "+OK\r\n:100000\r\n";
  talk([&](int other) {
    EXPECT_TRUE(say(other, requests));
    expect_same(hear(other, expected.size()), expected);
  });
}

TEST_F(RespClientTest, OfAStrangersPipelineNothingIsReceivedAhead) {
  constexpr size_t kMax = size_t{16} << 20;
  settings.accounts = Accounts::of_password("secret");
  settings.stream.send_ns = 200'000'000;
  std::string requests;
  for (int i = 0; i < 1000; ++i) requests += request({"PING"});
  size_t said_bytes = 0;
  talk([&](int other) {
    keep_little(other);
    while (said_bytes < kMax && say(other, requests)) said_bytes += requests.size();
  });
  EXPECT_LT(said_bytes, kMax / 2);
}

TEST_F(RespClientTest, RequestsMayComeByteByByte) {
  const std::string value(9000, 'v');
  const std::string requests = request({"SET", "k", value, "EX", "100"}) + request({"TTL", "k"}) +
                               request({"GETRANGE", "k", "8998", "-1"});
  EXPECT_EQ(answer(requests, 1), "+OK\r\n:100\r\n$2\r\nvv\r\n");
}

TEST_F(RespClientTest, LargeArgumentsMayStandAnywhere) {
  const std::string large(100'000, 'x'), other(8192, 'y');
  const std::string requests = request({"GET", "none"}) + request({"SET", "a", large, "PX", "5000"}) +
                               request({"MSET", "b", other, "c", large, "d", "4"}) + request({"GET", "a"}) +
                               request({"GET", "b"}) + request({"MGET", "c", "none", "d"}) +
                               request({"ECHO", large}) + request({"PTTL", "a"});
  const std::string expected = "$-1\r\n+OK\r\n+OK\r\n" + bulk(large) + bulk(other) + "*3\r\n" + bulk(large) +
                               "$-1\r\n$1\r\n4\r\n" + bulk(large) + ":5000\r\n";
  expect_same(answer(requests), expected);
  expect_same(answer(requests, 4099), expected);
}

TEST_F(RespClientTest, LargeArgumentsAreNoKeysNorCommands) {
  const std::string large(20'000, 'x');
  const std::string got = answer(request({large}) + request({"GET", large}) + request({"PING"}));
  EXPECT_TRUE(got.starts_with("-ERR unknown command 'xxx")) << got.substr(0, 100);
  EXPECT_TRUE(got.ends_with("\r\n+PONG\r\n"));
  EXPECT_EQ(std::ranges::count(got, '\n'), 3);
}

TEST_F(RespClientTest, ValuesMayBeAsLongAsTheSettingSays) {
  settings.value_bytes_max = 100'000;
  const std::string largest(100'000, 'x');
  EXPECT_EQ(answer(request({"SET", "k", largest}) + request({"STRLEN", "k"})), "+OK\r\n:100000\r\n");
}

TEST_F(RespClientTest, ALongerValueIsRefusedWhenAllOfItHasCome) {
  settings.value_bytes_max = 100'000;
  const std::string one_more(100'001, 'x'), much_more(3'000'000, 'y');
  const std::string refused = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n";
  const std::string requests = request({"SET", "a", one_more}) + request({"SET", "b", "1"}) +
                               request({"MSET", "b", "2", "c", much_more, "d", "4"}) +
                               request({"APPEND", "b", much_more}) + request({"NOPE", much_more}) +
                               request({"MGET", "a", "b", "c", "d"});
  const std::string expected = refused + "+OK\r\n" + refused + refused +
                               "-ERR unknown command 'NOPE', with args beginning with: '' \r\n" +
                               "*4\r\n$-1\r\n" + bulk("1") + "$-1\r\n$-1\r\n";
  expect_same(answer(requests), expected);
  expect_same(answer(requests, 4099), expected);
  EXPECT_EQ(answer("*2\r\n$3\r\nGET\r\n$100001\r\nxxx"), "") << "the rest does not come";
  EXPECT_EQ(answer("*1\r\n$536870913\r\n"), "-ERR Protocol error: invalid bulk length\r\n");
}

TEST_F(RespClientTest, ManyLargeValuesAreReadWhileTheyAreSent) {
  const std::string large(300'000, 'z');
  set("k", large);
  std::string requests, expected;
  for (int i = 0; i < 70; ++i) {
    requests += request({"GET", "k"});
    expected += bulk(large);
  }
  expect_same(answer(requests), expected);
}

TEST_F(RespClientTest, WhatIsNoRequestEndsTheConnection) {
  EXPECT_EQ(answer(request({"GET", "k"}) + "*1\r\n+PING\r\n" + request({"PING"})),
            "$-1\r\n-ERR Protocol error: expected '$', got '+'\r\n");
  EXPECT_EQ(answer("*x\r\n"), "-ERR Protocol error: invalid multibulk length\r\n");
  EXPECT_EQ(answer("\"a\r\n"), "-ERR Protocol error: unbalanced quotes in request\r\n");
}

TEST_F(RespClientTest, BrowsersAreNotAnswered) {
  EXPECT_EQ(answer("POST / HTTP/1.1\r\nHost: a\r\nPING\r\n"), "");
  EXPECT_EQ(answer("PING\r\nHost: a\r\nPING\r\n"), "+PONG\r\n");
}

TEST_F(RespClientTest, AnUnfinishedRequestIsNotAnswered) {
  EXPECT_EQ(answer(request({"GET", "k"}) + "*2\r\n$3\r\nGET\r\n$1\r\n"), "$-1\r\n");
  EXPECT_EQ(answer("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$20000\r\nabc"), "");
}

TEST_F(RespClientTest, WrongRequestsAreRefusedAndTheNextIsAnswered) {
  EXPECT_EQ(ask("NOPE a b"), "-ERR unknown command 'NOPE', with args beginning with: 'a' 'b' \r\n");
  EXPECT_EQ(ask("GET\r\nPING"), "-ERR wrong number of arguments for 'get' command\r\n+PONG\r\n");
  EXPECT_EQ(ask("CLIENT NOPE\r\nPING"), "-ERR unknown subcommand 'NOPE'. Try CLIENT HELP.\r\n+PONG\r\n");
  EXPECT_TRUE(ask("DEBUG SLEEP 1").starts_with("-ERR DEBUG command not allowed."));
}

TEST_F(RespClientTest, QuitIsAnsweredAndEndsTheConnection) {
  EXPECT_EQ(ask("GET k\r\nQUIT\r\nPING"), "$-1\r\n+OK\r\n");
}

TEST_F(RespClientTest, PasswordsComeFirst) {
  settings.accounts = Accounts::of_password("secret");
  EXPECT_EQ(ask("GET k\r\nNOPE\r\nGET"),
            "-NOAUTH Authentication required.\r\n-ERR unknown command 'NOPE', with args beginning with: \r\n"
            "-ERR wrong number of arguments for 'get' command\r\n");
  EXPECT_EQ(ask("AUTH wrong\r\nAUTH secre\r\nAUTH secrets\r\nAUTH other secret\r\nPING"),
            "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
            "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
            "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
            "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
            "-NOAUTH Authentication required.\r\n");
  EXPECT_EQ(ask("AUTH secret\r\nGET k\r\nRESET\r\nGET k\r\nAUTH default secret\r\nGET k"),
            "+OK\r\n$-1\r\n+RESET\r\n-NOAUTH Authentication required.\r\n+OK\r\n$-1\r\n");
  EXPECT_EQ(answer(request({"SET", "k", std::string(20'000, 'x')})),
            "-ERR Protocol error: unauthenticated bulk length\r\n");
}

TEST_F(RespClientTest, WithoutAPasswordNoneIsTaken) {
  EXPECT_EQ(ask("AUTH any\r\nAUTH default any\r\nAUTH other any"),
            "-ERR AUTH <password> called without any password configured for the default user. Are you sure "
            "your configuration is correct?\r\n+OK\r\n"
            "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
}

TEST_F(RespClientTest, AFullStoreTakesNothingUntilItIsFlushed) {
  const std::string large(1 << 20, 'x');
  std::string got, requests;
  talk([&](int other) {
    constexpr std::string_view kDone = "+OK\r\n", kFull = "-OOM ";
    int count = 0;
    do {
      say(other, request({"SET", "key" + std::to_string(count), large}));
      got = hear(other, kDone.size());
    } while (got == kDone && ++count < 200);
    EXPECT_EQ(got, kFull);
    EXPECT_GT(count, 50);
    exchange(other, "", "command not allowed when used memory > 'maxmemory'.\r\n");
    exchange(other, request({"STRLEN", "key0"}) + request({"FLUSHALL"}) + request({"GET", "key0"}),
             ":1048576\r\n+OK\r\n$-1\r\n");
  });
  EXPECT_EQ(shared.counts()[Count::kErrors], 1u);
}

TEST_F(RespClientTest, RequestsHaveOnlySoMuchOfLargeArguments) {
  std::string requests = "*200\r\n$4\r\nMGET\r\n";
  const std::string large = bulk(std::string(1 << 20, 'x'));
  for (int i = 0; i < 65; ++i) requests += large;
  EXPECT_EQ(answer(requests), "-ERR Protocol error: too big request\r\n");
}

TEST_F(RespClientTest, RequestsMayHaveTensOfThousandsOfKeys) {
  set("one that is there", "v");
  std::string requests = "*50002\r\n$3\r\nDEL\r\n";
  for (int i = 0; i < 50'000; ++i) requests += bulk("a key of some thirty bytes " + std::to_string(i));
  requests += bulk("one that is there");
  ASSERT_GT(requests.size(), size_t{1} << 20);
  EXPECT_EQ(answer(requests + request({"PING"})), ":1\r\n+PONG\r\n");
}

TEST_F(RespClientTest, RequestsHaveOnlySoMuchOfOtherArguments) {
  settings.stream.input_bytes_max = 1 << 20;
  std::string requests = "*200000\r\n$4\r\nMGET\r\n";
  const std::string key = bulk(std::string(8000, 'x'));
  for (int i = 0; i < 200; ++i) requests += key;
  EXPECT_EQ(answer(requests), "-ERR Protocol error: too big request\r\n");
}

TEST_F(RespClientTest, WhatIsCountedIsSo) {
  answer(request({"GET", "k"}) + request({"GET", "k"}) + request({"SET", "k", "v"}) + request({"NOPE"}));
  const ConnectionCounts counts = hub->counts();
  EXPECT_EQ(counts.requests, 3u);
  EXPECT_EQ(counts.received_bytes, 20u + 20u + 27u + 14u);
  EXPECT_EQ(counts.sent_bytes,
            5u + 5u + 5u + sizeof("-ERR unknown command 'NOPE', with args beginning with: \r\n") - 1);
  EXPECT_EQ(counts.now, 0u);
}

}  // namespace
}  // namespace server
