// The protocols between a client and a server: all interleavings of their steps, and real threads.
#include "cache/servers/lines.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "cache/servers/bell.h"
#include "sys/kernel.h"

namespace cache {
namespace {

TEST(LinesTest, EachMessageIsTakenOnceAndAnswered) {
  auto lines = std::make_unique<Lines>();
  uint32_t taken = 0;
  EXPECT_TRUE(lines->is_free());
  EXPECT_EQ(lines->take(taken), 0u);
  for (uint64_t message = 0; message < 1000; ++message) {
    uint64_t requests[Lines::kMax];
    const auto count = static_cast<uint32_t>(message % Lines::kMax + 1);
    for (uint32_t i = 0; i < count; ++i) requests[i] = message * 10 + i;
    lines->send(requests, count);
    EXPECT_FALSE(lines->is_free());
    EXPECT_TRUE(lines->has_message(taken));
    ASSERT_EQ(lines->take(taken), count);
    EXPECT_FALSE(lines->has_message(taken));
    EXPECT_EQ(lines->take(taken), 0u);
    for (uint32_t i = 0; i < count; ++i) lines->set_reply(i, lines->request(i) + 1'000'000);
    EXPECT_FALSE(lines->is_free());
    EXPECT_FALSE(lines->publish_replies(taken));
    ASSERT_TRUE(lines->is_free());
    for (uint32_t i = 0; i < count; ++i) EXPECT_EQ(lines->reply(i), requests[i] + 1'000'000);
  }
}

TEST(LinesTest, AMessageHasOneToSevenRequests) {
  auto lines = std::make_unique<Lines>();
  const uint64_t requests[Lines::kMax + 1] = {};
  EXPECT_DEATH(lines->send(requests, 0), "count");
  EXPECT_DEATH(lines->send(requests, Lines::kMax + 1), "count");
}

// Runs the steps of two sides in all interleavings, each in a new state.
template <class State>
void in_all_orders(void (*const (&one)[3])(State&), void (*const (&other)[3])(State&),
                   void (*check)(const State&, const std::string& order)) {
  for (unsigned choices = 0; choices < 1 << 6; ++choices) {
    if (__builtin_popcount(choices) != 3) continue;
    State state;
    std::string order;
    for (unsigned i = 0, a = 0, b = 0; i < 6; ++i) {
      const bool is_one = (choices >> i & 1) != 0;
      order += is_one ? '1' : '2';
      (is_one ? one[a++] : other[b++])(state);
    }
    check(state, order);
  }
}

// A client that lies down while the server answers.
struct Answering {
  Answering() : lines(std::make_unique<Lines>()) {
    const uint64_t request = 1;
    lines->send(&request, 1);
    lines->take(taken);
  }
  std::unique_ptr<Lines> lines;
  uint32_t taken = 0;
  bool must_wake = false;
  bool was_free = false;
  bool sleeps = false;
};

TEST(LinesTest, NoClientSleepsOverItsAnswer) {
  in_all_orders<Answering>(
      {[](Answering& s) { s.lines->lie_down(); }, [](Answering& s) { s.was_free = s.lines->is_free(); },
       [](Answering& s) {
         // The kernel lets nobody sleep on a word whose value has changed.
         s.sleeps = !s.was_free && !s.lines->is_free();
       }},
      {[](Answering& s) { s.lines->set_reply(0, 2); },
       [](Answering& s) { s.must_wake = s.lines->publish_replies(s.taken); },
       [](Answering& s) {
         if (s.must_wake) s.sleeps = false;
       }},
      [](const Answering& s, const std::string& order) {
        EXPECT_FALSE(s.sleeps) << order;
        EXPECT_TRUE(s.lines->is_free()) << order;
      });
}

// A server that lies down while a client sends.
struct Sending {
  Sending() : lines(std::make_unique<Lines>()) {}
  std::unique_ptr<Lines> lines;
  Bell bell;
  uint32_t taken = 0;
  bool rings = false;
  bool sleeps = false;
};

TEST(BellTest, NoServerSleepsOverAMessage) {
  in_all_orders<Sending>({[](Sending& s) { s.bell.lie_down(); },
                          [](Sending& s) {
                            if (s.lines->has_message(s.taken))
                              s.bell.get_up();
                            else
                              s.sleeps = true;
                          },
                          // If it was rung before it slept, the sleep ends at once.
                          [](Sending& s) { s.sleeps = s.sleeps && !s.rings; }},
                         {[](Sending& s) {
                            const uint64_t request = 1;
                            s.lines->send(&request, 1);
                          },
                          [](Sending& s) { s.rings = s.bell.must_ring(); },
                          [](Sending& s) {
                            if (s.rings) s.sleeps = false;
                          }},
                         [](const Sending& s, const std::string& order) { EXPECT_FALSE(s.sleeps) << order; });
}

TEST(BellTest, OnlyASleeperIsRungFor) {
  Bell bell;
  EXPECT_FALSE(bell.must_ring());
  bell.lie_down();
  EXPECT_TRUE(bell.must_ring());
  EXPECT_FALSE(bell.must_ring());
  bell.lie_down();
  bell.get_up();
  EXPECT_FALSE(bell.must_ring());
}

TEST(BellTest, SleepEndsWithTheQuietOfAPoller) {
  Bell bell;
  ASSERT_TRUE(bell.open());
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  // Sleeps until another thread ends the sleep by `end`.
  const auto sleep_until = [&](const base::Quiet& quiet, const std::function<void()>& end) {
    std::atomic<bool> ended{false};
    bell.lie_down();
    std::thread other([&] {
      usleep(20'000);
      ended = true;
      end();
    });
    EXPECT_TRUE(bell.sleep(quiet));
    EXPECT_TRUE(ended);
    other.join();
    EXPECT_FALSE(bell.must_ring());
  };
  sleep_until({.until_ns = base::Quiet::kForever}, [&] { bell.ring(); });
  sleep_until({.until_ns = base::Quiet::kForever, .descriptor = ends[0]}, [&] { bell.ring(); });
  sleep_until({.until_ns = base::Quiet::kForever, .descriptor = ends[0]},
              [&] { ASSERT_EQ(write(ends[1], "x", 1), 1); });
  bell.lie_down();
  const uint64_t until_ns = sys::monotonic_ns() + 1'000'000;
  EXPECT_TRUE(bell.sleep({.until_ns = until_ns}));
  EXPECT_GE(sys::monotonic_ns(), until_ns);
  ::close(ends[0]);
  ::close(ends[1]);
  bell.close();
}

TEST(BellTest, NobodySleepsForWhatIsToBePolledNow) {
  Bell bell;
  ASSERT_TRUE(bell.open());
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  for (const uint64_t until_ns : {uint64_t{0}, uint64_t{1}, sys::monotonic_ns()}) {
    bell.lie_down();
    EXPECT_FALSE(bell.sleep({.until_ns = until_ns, .descriptor = ends[0]})) << until_ns;
    EXPECT_FALSE(bell.must_ring());
  }
  // A poller that can only be polled would use the processor all the time.
  bell.lie_down();
  EXPECT_TRUE(bell.sleep({}));
  ::close(ends[0]);
  ::close(ends[1]);
  bell.close();
}

// Clients and a server that sleep whenever they have nothing to do, so that a lost wakeup would hang.
TEST(LinesTest, ThreadsThatSleepAtEveryTurn) {
  constexpr uint32_t kClients = 3;
  constexpr uint64_t kMessages = 5'000;
  std::vector<std::unique_ptr<Lines>> lines;
  for (uint32_t i = 0; i < kClients; ++i) lines.push_back(std::make_unique<Lines>());
  Bell bell;
  ASSERT_TRUE(bell.open());
  std::atomic<uint32_t> left{kClients};
  std::thread server([&] {
    uint32_t taken[kClients] = {};
    const auto has_work = [&] {
      for (uint32_t i = 0; i < kClients; ++i)
        if (lines[i]->has_message(taken[i])) return true;
      return left == 0;
    };
    while (left > 0) {
      for (uint32_t client = 0; client < kClients; ++client) {
        const uint32_t count = lines[client]->take(taken[client]);
        for (uint32_t i = 0; i < count; ++i) lines[client]->set_reply(i, ~lines[client]->request(i));
        if (count > 0) lines[client]->answer(taken[client]);
      }
      bell.lie_down();
      if (has_work())
        bell.get_up();
      else
        bell.sleep({.until_ns = base::Quiet::kForever});
    }
  });
  std::vector<std::thread> clients;
  for (uint32_t client = 0; client < kClients; ++client) {
    clients.emplace_back([&, client] {
      for (uint64_t message = 0; message < kMessages; ++message) {
        uint64_t requests[Lines::kMax];
        const auto count = static_cast<uint32_t>(message % Lines::kMax + 1);
        for (uint32_t i = 0; i < count; ++i) requests[i] = message << 8 | i;
        lines[client]->send(requests, count);
        bell.ring();
        while (!lines[client]->is_free()) lines[client]->sleep();
        for (uint32_t i = 0; i < count; ++i) CHECK_EQ(lines[client]->reply(i), ~requests[i]);
      }
      --left;
      bell.ring();
    });
  }
  for (std::thread& client : clients) client.join();
  server.join();
  bell.close();
}

}  // namespace
}  // namespace cache
