// For tests: a RespClient over a store in memory, and a thread that talks to it through a pair of sockets.
#pragma once
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/clients/resp_client.h"
#include "server/items/test_items.h"
#include "server/net/test_peer.h"
#include "task/test_tasks.h"

namespace server {

// A request as clients send it.
inline std::string request(std::initializer_list<std::string_view> arguments) {
  std::string text = "*" + std::to_string(arguments.size()) + "\r\n";
  for (const std::string_view argument : arguments)
    text += "$" + std::to_string(argument.size()) + "\r\n" + std::string(argument) + "\r\n";
  return text;
}
inline std::string bulk(std::string_view text) {
  return "$" + std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n";
}

class RespClientTest : public ItemsTest {
 protected:
  void SetUp() override {
    ItemsTest::SetUp();
    hub = std::make_unique<Hub>(settings, shared);
    ASSERT_TRUE(scheduler.open({.worker_count = 1, .stack_bytes = task::kTestStackBytes}));
  }
  void TearDown() override { scheduler.close(); }

  // Serves kCount connections at the same time; `ask` gets their other ends, which are closed afterwards.
  template <size_t kCount, class Ask>
  void talk_on(Ask ask) {
    std::array<int, kCount> ours, others;
    for (size_t i = 0; i < kCount; ++i) {
      int ends[2];
      ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
      ours[i] = ends[0];
      others[i] = ends[1];
    }
    std::thread asks([&] {
      ask(others);
      for (const int other : others) ::close(other);
    });
    auto serve = [&] { serve_all(ours); };
    auto ran = scheduler.run(task::calls("serve", serve));
    ASSERT_TRUE(ran) << ran.error().message;
    asks.join();
  }
  template <class Ask>
  void talk(Ask ask) {
    talk_on<1>([&](const std::array<int, 1>& others) { ask(others[0]); });
  }

  // All answers to a client that sends this, so many bytes at a time, and then ends its side.
  std::string answer(std::string_view text, size_t piece_bytes = SIZE_MAX) {
    std::string heard;
    talk([&](int other) {
      std::thread says([&] {
        for (std::string_view left = text; !left.empty();
             left.remove_prefix(std::min(piece_bytes, left.size())))
          if (!say(other, left.substr(0, piece_bytes))) break;
        ::shutdown(other, SHUT_WR);
      });
      heard = hear(other);
      says.join();
    });
    return heard;
  }
  std::string answer(std::initializer_list<std::string_view> arguments) { return answer(request(arguments)); }
  // A request that is inline: words between blanks.
  std::string ask(const std::string& words) { return answer(words + "\r\n"); }

  // Says it, and expects this to be answered.
  static void exchange(int descriptor, std::string_view text, std::string_view expected) {
    say(descriptor, text);
    EXPECT_EQ(hear(descriptor, expected.size()), expected) << text;
  }

  // Whether another client, which asks so much later, is answered before this request is. On a busy machine it may ask too late, so there are
  // several rounds.
  bool answers_others_meanwhile(std::string_view asked, std::chrono::milliseconds later,
                                std::string_view answered) {
    bool was_meanwhile = false;
    for (int round = 0; round < 20 && !was_meanwhile; ++round)
      talk_on<2>([&](const std::array<int, 2>& others) {
        say(others[0], asked);
        std::this_thread::sleep_for(later);
        exchange(others[1], "PING\r\n", "+PONG\r\n");
        pollfd first = {.fd = others[0], .events = POLLIN, .revents = 0};
        was_meanwhile = ::poll(&first, 1, 0) == 0;
        exchange(others[0], "", answered);
      });
    return was_meanwhile;
  }

  Settings settings;
  std::unique_ptr<Hub> hub;
  task::Scheduler scheduler;

 private:
  void serve_all(std::span<const int> descriptors) {
    Items served;
    ASSERT_TRUE(served.open(shared));
    hub->scans.begin(0, served);
    std::vector<std::function<void()>> serves;
    for (const int descriptor : descriptors)
      serves.emplace_back([&, descriptor] { serve_one(served, descriptor); });
    std::vector<task::Task*> tasks;
    for (auto& one : serves) tasks.push_back(&task::start("serves", one));
    for (task::Task* const one : tasks) task::join(*one);
    hub->scans.end(0);
    served.close();
  }
  void serve_one(Items& served, int descriptor) {
    storage::BufferPool pool;
    Stream stream(pool, settings.stream);
    ASSERT_TRUE(stream.take(descriptor));
    Connection connection;
    connection.speech = Speech::kResp;
    connection.stream = &stream;
    connection.task = task::Worker::current()->running();
    connection.peer = "127.0.0.1:4711";
    connection.own = "127.0.0.1:6379";
    connection.begun_ms = now_ms();
    ASSERT_TRUE(hub->enter(connection));
    {
      RespClient client(*hub, connection, served);
      std::ignore = client.serve();
    }
    hub->leave(connection);
    stream.close();
  }
};

}  // namespace server
