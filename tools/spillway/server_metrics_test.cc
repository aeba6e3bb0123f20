#include "server_metrics.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <list>
#include <thread>

#include "command.h"
#include "descriptor.h"

namespace tools {
namespace {

TEST(ServerMetrics, AreNamesAndValues) {
  const Metrics metrics = parse_metrics(
      "HTTP/1.1 200 OK\r\n\r\n# HELP spillway_connections Connections.\n# TYPE spillway_connections gauge\n"
      "spillway_connections 3\nspillway_item_calls_total{call=\"get\",result=\"hit\"} 100\n"
      "spillway_store_call_seconds{call=\"get\",quantile=\"0.5\"} 6.5e-05\nother 1\nspillway_wrong "
      "1x\nspillway_none\n"
      "spillway_last 7");
  const Metrics expected = {{"connections", 3},
                            {"item_calls_total{call=\"get\",result=\"hit\"}", 100},
                            {"store_call_seconds{call=\"get\",quantile=\"0.5\"}", 6.5e-5},
                            {"last", 7}};
  EXPECT_EQ(metrics, expected);
  EXPECT_TRUE(parse_metrics("").empty());
}

TEST(ServerMetrics, WhatNoServerTellsIsLeftOut) {
  EXPECT_TRUE(parse_metrics("spillway_\x1b[2J 1\nspillway_a\x7f 1\nspillway_b nan\nspillway_c inf\n"
                            "spillway_d -1\nspillway_e 1e300\nspillway_\xc2\x9b[2J 1\n")
                  .empty());
  EXPECT_EQ(parse_metrics("spillway_f 1e18\nspillway_g 0\n"), (Metrics{{"f", 1e18}, {"g", 0}}));
}

TEST(ServerMetrics, AddressesAreHostsAndPorts) {
  EXPECT_EQ(split_address(":9150"), (ServerAddress{"", "9150"}));
  EXPECT_EQ(split_address("cache.example:9150"), (ServerAddress{"cache.example", "9150"}));
  EXPECT_EQ(split_address("[::1]:9150"), (ServerAddress{"::1", "9150"}));
  EXPECT_EQ(split_address("tls:cache.example:9150"), (ServerAddress{"cache.example", "9150", true}));
  EXPECT_EQ(split_address("tls::9150"), (ServerAddress{"", "9150", true}));
  for (const char* wrong : {"", "host", "host:", "tls:", "tls:9150"})
    EXPECT_THROW(split_address(wrong), WrongInput) << wrong;
}

TEST(ServerMetrics, WhatDoesNotAnswerIsNamed) {
  try {
    fetch_metrics("127.0.0.1:1");
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(
        std::string(error.what()),
        "nothing tells metrics at 127.0.0.1:1: Connection refused; it is where a server's --metrics listens");
  }
}

// Listens at a port that is free, and stores where that is.
void listen_somewhere(const Descriptor& listens, sockaddr_in& at) {
  at = {};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof at;
  auto* const address = reinterpret_cast<sockaddr*>(&at);
  ASSERT_EQ(bind(*listens, address, bytes), 0);
  ASSERT_EQ(listen(*listens, 0), 0);
  ASSERT_EQ(getsockname(*listens, address, &bytes), 0);
}

// What is fetched from a server that answers this.
Metrics fetch_from(std::string_view answer) {
  const Descriptor listens(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at;
  listen_somewhere(listens, at);
  const std::jthread answers([&] {
    const Descriptor client(accept(*listens, nullptr, nullptr));
    char request[1024];
    EXPECT_GT(recv(*client, request, sizeof request, 0), 0);
    EXPECT_EQ(send(*client, answer.data(), answer.size(), MSG_NOSIGNAL), static_cast<ssize_t>(answer.size()));
  });
  return fetch_metrics(concat("127.0.0.1:", ntohs(at.sin_port)));
}

TEST(ServerMetrics, WhatBreaksOffIsNotShown) {
  const std::string_view answer =
      "HTTP/1.1 200 OK\r\nContent-Length: 32\r\n\r\nspillway_requests_total 1234567\n";
  EXPECT_EQ(fetch_from(answer), (Metrics{{"requests_total", 1234567}}));
  try {
    fetch_from(answer.substr(0, answer.size() - 4));
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_TRUE(std::string(error.what()).contains(": the answer breaks off; ")) << error.what();
  }
}

TEST(ServerMetrics, WhatTakesNoConnectionHasTakenTooLong) {
  const Descriptor listens(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at;
  listen_somewhere(listens, at);
  // They fill the queue of a listener that accepts nothing.
  std::list<Descriptor> waiting;
  for (int i = 0; i < 8; ++i) {
    waiting.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    static_cast<void>(connect(*waiting.back(), reinterpret_cast<sockaddr*>(&at), sizeof at));
  }
  try {
    fetch_metrics(concat("127.0.0.1:", ntohs(at.sin_port)), std::chrono::seconds(1));
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_TRUE(std::string(error.what()).contains(": Connection timed out; ")) << error.what();
  }
}

}  // namespace
}  // namespace tools
