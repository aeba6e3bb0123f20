// Tasks that communicate over sockets, on one worker and between two; deadlines, cancellation, peers that disappear.
#include "task/socket.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/check.h"
#include "task/scheduler.h"
#include "task/sync.h"
#include "task/test_tasks.h"

namespace task {
namespace {

class SocketsTest : public TasksTest {
 protected:
  SocketsTest() : TasksTest(2) {}

  // A listening socket of the loopback interface, and its address.
  static int listen_on_loopback(sockaddr_in& address) {
    const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(bind(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    CHECK(listen(descriptor, 128) == 0);
    socklen_t bytes = sizeof address;
    CHECK(getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &bytes) == 0);
    return descriptor;
  }
};

TEST_F(SocketsTest, AServerAndManyClients) {
  constexpr int kClients = 50, kRounds = 20;
  constexpr size_t kBytes = 30'000;  // more than fits into the buffers at once
  sockaddr_in address;
  const int listening = listen_on_loopback(address);
  std::atomic<int> answered{0};
  run([&] {
    auto serve = [&] {
      Socket listener;
      ASSERT_TRUE(listener.take(listening));
      int next = 0;
      auto echo = [&] {
        Socket connection;
        ASSERT_TRUE(connection.take(next));
        char buffer[4096];
        for (;;) {
          auto received = connection.receive(buffer, sizeof buffer);
          ASSERT_TRUE(received);
          if (*received == 0) return;
          ASSERT_TRUE(connection.send(buffer, *received));
        }
      };
      std::vector<Task*> echoes;
      for (int i = 0; i < kClients; ++i) {
        auto accepted = listener.accept();
        ASSERT_TRUE(accepted);
        next = *accepted;
        echoes.push_back(&start("talks", echo));
        yield();  // it takes its descriptor
      }
      for (Task* task : echoes) join(*task);
    };
    auto ask = [&] {
      auto talk = [&] {
        Socket connection;
        ASSERT_TRUE(connection.take(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)));
        ASSERT_TRUE(connection.connect(reinterpret_cast<sockaddr*>(&address), sizeof address));
        const int number = answered.load();
        std::string sent(kBytes, static_cast<char>(number)), got(kBytes, 0);
        for (int round = 0; round < kRounds; ++round) {
          auto send = [&] { ASSERT_TRUE(connection.send(sent.data(), sent.size())); };
          Task& sender = start("talks", send);
          size_t at = 0;
          while (at < kBytes) {
            auto received = connection.receive(got.data() + at, kBytes - at);
            ASSERT_TRUE(received);
            ASSERT_GT(*received, 0u);
            at += *received;
          }
          join(sender);
          ASSERT_EQ(got, sent);
          ++answered;
        }
      };
      std::vector<Task*> clients;
      for (int i = 0; i < kClients; ++i) clients.push_back(&start("talks", talk));
      for (Task* task : clients) join(*task);
    };
    Task& server = start("talks", serve, &scheduler.worker(0));
    Task& client = start("talks", ask, &scheduler.worker(1));
    join(server);
    join(client);
  });
  EXPECT_EQ(answered, kClients * kRounds);
}

TEST_F(SocketsTest, WaitsEndByDeadlineAndCancel) {
  run([&] {
    int pair[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    Socket one, other;
    ASSERT_TRUE(one.take(pair[0]));
    ASSERT_TRUE(other.take(pair[1]));
    char byte;
    EXPECT_EQ(one.receive(&byte, 1, {.deadline_ns = now_ns() + 5'000'000}).error().number, ETIMEDOUT);
    const uint64_t begun_ns = now_ns();
    EXPECT_EQ(one.receive(&byte, 1, {.within_ns = 5'000'000}).error().number, ETIMEDOUT);
    EXPECT_GE(now_ns() - begun_ns, 5'000'000u);
    EXPECT_EQ(
        one.receive(&byte, 1, {.deadline_ns = now_ns() + 5'000'000, .within_ns = kNever - 1}).error().number,
        ETIMEDOUT);
    EXPECT_GE(now_ns() - begun_ns, 10'000'000u);
    auto waits = [&] { EXPECT_EQ(one.receive(&byte, 1).error().number, ECANCELED); };
    Task& task = start("talks", waits);
    yield();
    cancel(task);
    join(task);
    // What comes later is not lost.
    EXPECT_TRUE(other.send("x", 1));
    EXPECT_EQ(*one.receive(&byte, 1), 1u);
    EXPECT_EQ(byte, 'x');
    // Nobody reads: the buffers are full, and the deadline ends that wait, too.
    const std::string much(1 << 20, 'y');
    EXPECT_EQ(other.send(much.data(), much.size(), {.deadline_ns = now_ns() + 5'000'000}).error().number,
              ETIMEDOUT);
    one.close();
    EXPECT_EQ(other.send("z", 1).error().number, EPIPE);
  });
}

TEST_F(SocketsTest, WhoWaitsForRoomMayHearOfInput) {
  run([&] {
    int pair[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    Socket one, other;
    ASSERT_TRUE(one.take(pair[0]));
    ASSERT_TRUE(other.take(pair[1]));
    constexpr Limit kShort = {.within_ns = 5'000'000};
    std::string much(8 << 20, 'y');
    iovec pieces[] = {{much.data(), 1 << 20}, {much.data(), 7 << 20}};
    std::span<iovec> left(pieces);
    const size_t sent = *one.send_now(left);
    EXPECT_GT(sent, 0u);
    size_t left_bytes = 0;
    for (const iovec& piece : left) left_bytes += piece.iov_len;
    EXPECT_EQ(sent + left_bytes, much.size());
    EXPECT_EQ(*one.send_now(left), 0u);
    static_cast<void>(one.wait_for_room(true, kShort));  // may end because of an earlier report
    EXPECT_EQ(one.wait_for_room(true, kShort).error().number, ETIMEDOUT);
    // Input.
    char byte;
    EXPECT_TRUE(other.send("x", 1));
    EXPECT_TRUE(one.wait_for_room(true));
    EXPECT_EQ(*one.receive(&byte, 1), 1u);
    EXPECT_TRUE(other.send("x", 1));
    EXPECT_EQ(one.wait_for_room(false, kShort).error().number, ETIMEDOUT);
    EXPECT_EQ(*one.receive(&byte, 1), 1u);
    static_cast<void>(one.wait_for_input(kShort));  // as above
    // Room, and input: the wait ends once.
    std::string got(sent, 0);
    for (size_t at = 0; at < sent;) at += *other.receive(got.data() + at, sent - at);
    EXPECT_TRUE(other.send("x", 1));
    EXPECT_TRUE(one.wait_for_room(true));
    EXPECT_EQ(*one.receive(&byte, 1), 1u);
    EXPECT_GT(*one.send_now(left), 0u);
    EXPECT_EQ(one.wait_for_input(kShort).error().number, ETIMEDOUT);
  });
}

// Before it is connected, the kernel reports a socket as one that will receive nothing more.
TEST_F(SocketsTest, OneThatIsConnectedLateHasNotEnded) {
  sockaddr_in address;
  const int listening = listen_on_loopback(address);
  run([&] {
    Socket listener, client;
    ASSERT_TRUE(listener.take(listening));
    ASSERT_TRUE(client.take(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)));
    sleep_until(now_ns() + 5'000'000);  // meanwhile the worker gets the report
    ASSERT_TRUE(client.connect(reinterpret_cast<sockaddr*>(&address), sizeof address));
    static_cast<void>(client.wait_for_input({.within_ns = 5'000'000}));  // may end because of that report
    const auto waited = client.wait_for_input({.within_ns = 5'000'000});
    ASSERT_FALSE(waited);
    EXPECT_EQ(waited.error().number, ETIMEDOUT);
  });
}

TEST_F(SocketsTest, WhatCannotBeDoneIsSaid) {
  run([&] {
    // Nobody listens there any more.
    sockaddr_in address;
    close(listen_on_loopback(address));
    Socket refused;
    ASSERT_TRUE(refused.take(socket(AF_INET, SOCK_STREAM, 0)));
    auto connected = refused.connect(reinterpret_cast<sockaddr*>(&address), sizeof address);
    ASSERT_FALSE(connected);
    EXPECT_EQ(connected.error().number, ECONNREFUSED);
    EXPECT_EQ(std::string(connected.error().message), "cannot connect: connection refused");
    // Files cannot be waited for.
    Socket file;
    EXPECT_EQ(file.take(fileno(tmpfile())).error().number, EPERM);
    // A pipe can.
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    Socket in, out;
    ASSERT_TRUE(in.take(ends[0]));
    ASSERT_TRUE(out.take(ends[1]));
    EXPECT_TRUE(out.send("abc", 3));
    char buffer[8];
    EXPECT_EQ(*in.receive(buffer, sizeof buffer), 3u);
    out.close();
    EXPECT_EQ(*in.receive(buffer, sizeof buffer), 0u);
  });
}

}  // namespace
}  // namespace task
