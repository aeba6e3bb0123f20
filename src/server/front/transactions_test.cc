// Transactions of many clients, on three workers, beside others that read and write, by both protocols; and a server that ends meanwhile.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "kv/testing/test_effort.h"
#include "server/front/test_server.h"
#include "server/net/test_peer.h"

namespace server {
namespace {

constexpr int kAll = 1000;  // what two accounts have together

class TransactionsTest : public RunningServerTest {
 protected:
  void SetUp() override {
    RunningServerTest::SetUp();
    begin();
  }
  void begin() {
    run({.settings = {.version = "1", .worker_count = 3},
         .memcache = {"127.0.0.1:0"},
         .resp = {"127.0.0.1:0"},
         .drain_ns = 2'000'000'000});
  }
  int connect(Speech speech) const {
    for (const Listening& listening : server->listening())
      if (listening.speech == speech) return connect_to(listening.address);
    return -1;
  }
};

// A client that reads lines.
class Client {
 public:
  explicit Client(int descriptor) : descriptor_(descriptor) {}
  ~Client() { ::close(descriptor_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool has_ended() const { return has_ended_; }
  void say(const std::string& words) {
    if (!server::say(descriptor_, words + "\r\n")) has_ended_ = true;
  }
  std::string line() {
    std::string text;
    while (!text.ends_with("\r\n")) {
      const std::string more = hear(descriptor_, 1);
      if (more.empty()) {
        has_ended_ = true;
        return {};
      }
      text += more;
    }
    return text.substr(0, text.size() - 2);
  }
  std::string ask(const std::string& words) {
    say(words);
    return line();
  }
  // A value in a line of its own, behind one that says how long it is.
  int number() {
    line();
    const std::string text = line();
    return text.empty() ? 0 : std::stoi(text);
  }

 private:
  int descriptor_;
  bool has_ended_ = false;
};

// Moves an amount from a to b, computed from what it has read. False: others have changed one of them meanwhile, and nothing was done.
bool transfer_what_was_read(Client& client, int amount) {
  client.ask("WATCH a b");
  client.say("GET a");
  const int a = client.number();
  client.say("GET b");
  const int b = client.number();
  client.ask("MULTI");
  client.ask("SET a " + std::to_string(a - amount));
  client.ask("SET b " + std::to_string(b + amount));
  const std::string answer = client.ask("EXEC");
  if (answer == "*-1") return false;
  EXPECT_EQ(answer, "*2");
  EXPECT_EQ(client.line(), "+OK");
  EXPECT_EQ(client.line(), "+OK");
  return true;
}

// The same by relative changes, which need not know what is there. Counts it, too.
void transfer(Client& client, int amount) {
  client.ask("MULTI");
  client.ask("INCRBY b " + std::to_string(amount));
  client.ask("INCR counted");
  client.ask("DECRBY a " + std::to_string(amount));
  EXPECT_EQ(client.ask("EXEC"), "*3");
  for (int answer = 0; answer < 3; ++answer) client.line();
}

TEST_F(TransactionsTest, OthersSeeAllOfEachOrNothing) {
  static const int kTransfers = static_cast<int>(500 / kv::kEffortParts);
  constexpr int kThreads = 6;
  {
    Client first(connect(Speech::kResp));
    ASSERT_EQ(first.ask("MSET a 1000 b 0 counted 0"), "+OK");
  }
  std::atomic<int> at_it{kThreads}, torn{0}, counted{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      Client client(connect(Speech::kResp));
      for (int done = 0; done < kTransfers;) {
        if (thread % 2 == 0) {
          done += transfer_what_was_read(client, thread + 1);
        } else {
          transfer(client, thread);
          ++done;
          ++counted;
        }
      }
      --at_it;
    });
  threads.emplace_back([&] {
    Client client(connect(Speech::kResp));
    while (at_it > 0) {
      EXPECT_EQ(client.ask("MGET a b"), "*2");
      const int a = client.number(), b = client.number();
      torn += a + b != kAll;
    }
  });
  threads.emplace_back([&] {
    Client client(connect(Speech::kResp));
    while (at_it > 0) {
      client.ask("MULTI");
      client.ask("GET a");
      client.ask("STRLEN a");
      client.ask("GET b");
      EXPECT_EQ(client.ask("EXEC"), "*3");
      const int a = client.number();
      EXPECT_EQ(client.line(), ":" + std::to_string(std::to_string(a).size()));
      torn += a + client.number() != kAll;
    }
  });
  threads.emplace_back([&] {
    Client client(connect(Speech::kMemcache));
    while (at_it > 0) {
      client.say("get a b");
      const int a = client.number(), b = client.number();
      torn += a + b != kAll;
      EXPECT_EQ(client.line(), "END");
      client.ask("incr counted 1");
      ++counted;
    }
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(torn, 0);
  Client last(connect(Speech::kResp));
  EXPECT_EQ(last.ask("MGET a b counted"), "*3");
  const int a = last.number(), b = last.number();
  EXPECT_EQ(a + b, kAll);
  EXPECT_EQ(last.number(), counted);
}

// Each transaction under way was either carried out whole or not at all.
TEST_F(TransactionsTest, AServerThatEndsLeavesNoneHalfDone) {
  using namespace std::chrono_literals;
  constexpr int kThreads = 6, kEach = 50, kMin = 30;
  std::string transaction = "MULTI\r\n";
  for (int i = 0; i < kEach; ++i) transaction += "INCR a\r\nINCR b\r\n";
  transaction += "EXEC";
  constexpr int kLines = 1 + 2 * kEach + 1 + 2 * kEach;
  for (const Hub::End how : {Hub::End::kDrained, Hub::End::kAtOnce}) {
    {
      Client first(connect(Speech::kResp));
      ASSERT_EQ(first.ask("MSET a 0 b 0"), "+OK");
    }
    std::atomic<int> done{0};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread)
      threads.emplace_back([&] {
        Client client(connect(Speech::kResp));
        while (!client.has_ended()) {
          client.say(transaction);
          for (int line = 0; line < kLines && !client.has_ended(); ++line) client.line();
          if (!client.has_ended()) ++done;
        }
      });
    while (done < kMin) std::this_thread::sleep_for(1ms);
    end(how);
    for (std::thread& thread : threads) thread.join();
    begin();
    Client last(connect(Speech::kResp));
    EXPECT_EQ(last.ask("MGET a b"), "*2");
    const int a = last.number(), b = last.number();
    EXPECT_EQ(a, b);
    EXPECT_EQ(a % kEach, 0);
    EXPECT_GE(a, done * kEach);
  }
}

}  // namespace
}  // namespace server
