// Servers and many clients at once, on two workers: connections that come and go, end in the middle, and are there when the server ends.
#include "server/front/server.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "server/front/test_server.h"
#include "server/net/test_peer.h"

namespace server {
namespace {

class ServerTest : public RunningServerTest {
 protected:
  void SetUp() override {
    RunningServerTest::SetUp();
    begin();
  }
  void begin(uint32_t connections_max = 1024, uint64_t drain_ns = 10'000'000'000,
             std::vector<ServerOptions::Given> given = {}) {
    run({.settings = {.version = "1", .worker_count = 2, .connections_max = connections_max},
         .memcache = {"127.0.0.1:0"},
         .metrics = {"127.0.0.1:0"},
         .given = std::move(given),
         .drain_ns = drain_ns,
         .metrics_exchange_ns = metrics_exchange_ns});
    address = std::ranges::find(server->listening(), false, &Listening::is_given)->address;
    metrics = server->listening().back().address;
  }
  int connect() const { return connect_to(address); }

  Address address, metrics;
  uint64_t metrics_exchange_ns = 60'000'000'000;
};

TEST_F(ServerTest, ConnectionsComeAndGoAllTheTime) {
  constexpr int kThreads = 4, kRounds = 60;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      std::mt19937 random(static_cast<unsigned>(thread));
      for (int round = 0; round < kRounds; ++round) {
        const int client = connect();
        ASSERT_GE(client, 0);
        const std::string key = "key" + std::to_string(thread), value(random() % 40'000, 'v');
        const std::string length = std::to_string(value.size());
        ASSERT_TRUE(say(client, "set " + key + " 0 0 " + length + "\r\n" + value + "\r\n"));
        ASSERT_EQ(hear(client, 8), "STORED\r\n");
        ASSERT_TRUE(say(client, "get " + key + "\r\n"));
        const std::string reply = "VALUE " + key + " 0 " + length + "\r\n" + value + "\r\nEND\r\n";
        if (random() % 3 == 0)
          hear(client, random() % reply.size());  // the client goes away in the middle
        else
          ASSERT_TRUE(hear(client, reply.size()) == reply);
        if (random() % 3 == 0) say(client, "set " + key + " 0 0 1000\r\nhalf");
        ::close(client);
      }
    });
  for (std::thread& thread : threads) thread.join();
  const ConnectionCounts counts = server->hub().counts();
  EXPECT_EQ(counts.total, uint64_t{kThreads * kRounds});
}

TEST_F(ServerTest, WhatIsAcknowledgedBeforeTheEndIsThere) {
  constexpr int kThreads = 4;
  for (const Hub::End how : {Hub::End::kDrained, Hub::End::kAtOnce, Hub::End::kDrained}) {
    std::atomic<int> acknowledged[kThreads] = {};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread)
      threads.emplace_back([&, thread] {
        for (int number = 1;;) {
          const int client = connect();
          if (client < 0) return;
          for (int i = 0; i < 20; ++i, ++number) {
            const std::string text = std::to_string(number);
            if (!say(client, "set key" + std::to_string(thread) + " 0 0 " + std::to_string(text.size()) +
                                 "\r\n" + text + "\r\n") ||
                hear(client, 8) != "STORED\r\n")
              break;
            acknowledged[thread] = number;
          }
          ::close(client);
        }
      });
    while (acknowledged[0] < 50 || acknowledged[kThreads - 1] < 50) std::this_thread::yield();
    end(how);
    for (std::thread& thread : threads) thread.join();
    kv::Session session;
    ASSERT_TRUE(session.open(*store));
    for (int thread = 0; thread < kThreads; ++thread) {
      auto found = session.get("key" + std::to_string(thread));
      ASSERT_TRUE(found && found->found());
      const std::string number(kv::text_of(found->value().subspan(1)));
      EXPECT_GE(std::stoi(number), acknowledged[thread]);
    }
    session.close();
    begin();
  }
}

TEST_F(ServerTest, ConnectionsMayBeKilled) {
  const int client = connect(), other = connect();
  ASSERT_TRUE(say(client, "mn\r\n") && say(other, "mn\r\n"));
  ASSERT_EQ(hear(client, 4) + hear(other, 4), "MN\r\nMN\r\n");
  const std::string name = own_end_of(client);
  EXPECT_EQ(server->hub().kill([&](const Connection& connection) { return connection.peer == name; }), 1u);
  EXPECT_EQ(hear(client, 1), "");
  ASSERT_TRUE(say(other, "mn\r\n"));
  EXPECT_EQ(hear(other, 4), "MN\r\n");
  ::close(client);
  ::close(other);
}

// The server's end does not cancel what is sent after it has begun.
TEST_F(ServerTest, WhoListensNoMoreIsCutOffAtTheEnd) {
  using namespace std::chrono_literals;
  end(Hub::End::kDrained);
  begin(1024, 1'000'000'000);
  const int client = connect();
  ASSERT_TRUE(say(client, "set key 0 0 1000000\r\n" + std::string(1'000'000, 'v') + "\r\n"));
  ASSERT_EQ(hear(client, 8), "STORED\r\n");
  std::string requests;
  for (int i = 0; i < 200; ++i) requests += "get key\r\n";
  ASSERT_TRUE(say(client, requests));
  hear(client, 1);
  const auto begun = std::chrono::steady_clock::now();
  server->end(Hub::End::kDrained);
  std::this_thread::sleep_for(100ms);  // now each worker knows
  hear(client, 20'000'000);            // what is sent next is sent after that
  runs.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 30s);
  server->close();
  ::close(client);
}

// A socket that was given may be shut down by another process that has it: then accepting fails again and again, on the worker that also
// answers clients.
TEST_F(ServerTest, ASocketThatOthersShutDownDisturbsNoOther) {
  end(Hub::End::kDrained);
  Address own = parse_address("127.0.0.1:0")->front();
  const int given = *listen_at(own), others = dup(given);
  ::shutdown(others, SHUT_RDWR);
  ::close(others);
  begin(1024, 10'000'000'000, {{.descriptor = given}});
  for (int i = 0; i < 2; ++i) {  // of each worker
    const int client = connect();
    const timeval limit = {.tv_sec = 60, .tv_usec = 0};
    ASSERT_EQ(setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    ASSERT_TRUE(say(client, "mn\r\n"));
    EXPECT_EQ(hear(client, 4), "MN\r\n");
    ::close(client);
  }
}

// The kernel refuses to watch a socket when it has no memory, or the user watches too many (fs.epoll.max_user_watches); a file it always
// refuses.
TEST_F(ServerTest, ASocketAtWhichNobodyCanWaitEndsItWithAnError) {
  end(Hub::End::kDrained);
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  server = std::make_unique<Server>();
  auto listens = server->listen({.settings = {.version = "1", .worker_count = 2},
                                 .memcache = {"127.0.0.1:0"},
                                 .given = {{.descriptor = dup(fileno(file))}}});
  std::fclose(file);
  ASSERT_TRUE(listens) << listens.error().message;
  ASSERT_TRUE(server->open(*store));
  const auto ran = server->run();
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().number, EPERM);
  server->close();
}

// Otherwise it would have to be killed, since the signals are blocked.
TEST_F(ServerTest, OneThatCannotTakeSignalsEndsWithAnError) {
  using namespace std::chrono_literals;
  end(Hub::End::kDrained);
  server = std::make_unique<Server>();
  auto listens = server->listen(
      {.settings = {.version = "1", .worker_count = 2}, .memcache = {"127.0.0.1:0"}, .takes_signals = true});
  ASSERT_TRUE(listens) << listens.error().message;
  ASSERT_TRUE(server->open(*store));
  const int next = dup(STDERR_FILENO);  // all descriptors below are taken
  ::close(next);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none_left = {.rlim_cur = static_cast<rlim_t>(next), .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none_left), 0);
  base::Expected<void> ran;
  std::atomic<bool> has_ended{false};
  runs = std::thread([&] {
    ran = server->run();
    has_ended = true;
  });
  for (int i = 0; i < 1000 && !has_ended; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(has_ended);
  server->end(Hub::End::kAtOnce);
  runs.join();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().number, EMFILE);
  EXPECT_TRUE(std::string_view(ran.error().message).starts_with("cannot take signals: "))
      << ran.error().message;
  server->close();
}

TEST_F(ServerTest, WhoAsksForMetricsTakesNoClientsPlace) {
  end(Hub::End::kDrained);
  begin(1);
  const int client = connect();
  ASSERT_TRUE(say(client, "mn\r\n"));
  ASSERT_EQ(hear(client, 4), "MN\r\n");
  const int refused = connect();
  EXPECT_EQ(hear(refused), "ERROR Too many open connections\r\n");
  ::close(refused);
  // All places of clients are taken; those for metrics are others. These connections stay.
  const std::string found = "HTTP/1.1 200 OK\r\n";
  const auto ask = [&](int asks) {
    return say(asks, "GET /metrics HTTP/1.1\r\n\r\n") ? hear(asks, found.size()) : std::string();
  };
  std::vector<int> asking;
  for (uint32_t i = 0; i < Hub::kMaxMetricsConnections; ++i) {
    asking.push_back(connect_to(metrics));
    ASSERT_EQ(ask(asking.back()), found);
  }
  const int one_more = connect_to(metrics);
  EXPECT_TRUE(hear(one_more).starts_with("HTTP/1.1 503 "));
  ::close(one_more);
  const ConnectionCounts counts = server->hub().counts();
  EXPECT_EQ(counts.now, 1u);
  EXPECT_EQ(counts.total, 1u);
  EXPECT_EQ(counts.refused, 1u);
  EXPECT_EQ(counts.requests, 1u);
  // A freed place goes to the next connection, as soon as the server has noticed.
  for (std::string answer; answer != found; answer = ask(asking.back())) {
    ::close(asking.back());
    asking.back() = connect_to(metrics);
  }
  for (const int descriptor : asking) ::close(descriptor);
  ::close(client);
}

TEST_F(ServerTest, WhoAsksForNoMoreMetricsGivesHisPlaceBack) {
  end(Hub::End::kDrained);
  metrics_exchange_ns = 3'000'000'000;
  begin();
  const int client = connect(), asks = connect_to(metrics);
  ASSERT_TRUE(say(asks, "HEAD /metrics HTTP/1.1\r\n\r\n"));  // at once: it has three seconds for that
  const int asks_nothing = connect_to(metrics);
  for (const int ends : {asks, asks_nothing}) {
    const timeval limit = {.tv_sec = 30, .tv_usec = 0};
    ASSERT_EQ(setsockopt(ends, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    EXPECT_EQ(hear(ends).starts_with("HTTP/1.1 200 OK\r\n"), ends == asks);
    char more;
    EXPECT_EQ(::read(ends, &more, 1), 0) << "its end has been heard";
  }
  ASSERT_TRUE(say(client, "mn\r\n"));
  EXPECT_EQ(hear(client, 4), "MN\r\n");
  for (const int descriptor : {client, asks, asks_nothing}) ::close(descriptor);
}

TEST_F(ServerTest, WhoNeverEndsARequestForMetricsGivesHisPlaceBack) {
  using namespace std::chrono_literals;
  end(Hub::End::kDrained);
  metrics_exchange_ns = 300'000'000;
  begin();
  const int asks = connect_to(metrics);
  ASSERT_TRUE(say(asks, "GET /metrics HTTP/1.1\r\n"));
  bool is_there = true;
  for (int i = 0; i < 600 && is_there; ++i) {
    is_there = say(asks, "x");
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_FALSE(is_there);
  ::close(asks);
}

TEST(Server, ListensNowhereIfItCannotListenEverywhere) {
  Server server;
  auto listens = server.listen({.memcache = {"127.0.0.1:0", "nowhere"}});
  ASSERT_FALSE(listens);
  EXPECT_EQ(listens.error().number, EINVAL);
  EXPECT_TRUE(server.listening().empty());
  EXPECT_FALSE(Server().listen({}));
}

}  // namespace
}  // namespace server
