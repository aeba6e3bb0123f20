// Streams that talk to a thread with the other end of a pair of sockets.
#include "server/net/stream.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>

#include "server/items/test_items.h"
#include "server/net/test_peer.h"
#include "sys/kernel.h"
#include "task/test_tasks.h"

namespace server {
namespace {

class StreamTest : public task::TasksTest {
 protected:
  StreamTest() : TasksTest(1) {}

  // Calls `serve` with a stream, in a task, and `ask` with the other end, which is closed afterwards, in a
  // thread.
  template <class Serve, class Ask>
  void talk(Serve serve, Ask ask, const StreamOptions& options = {}, int type = SOCK_STREAM) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends), 0);
    std::thread asks([&] {
      ask(ends[1]);
      ::close(ends[1]);
    });
    run([&] {
      storage::BufferPool pool;
      Stream stream(pool, options);
      ASSERT_TRUE(stream.take(ends[0]));
      serve(stream);
      stream.close();
    });
    asks.join();
  }
  static void must_receive(Stream& stream, bool expected = true) {
    auto received = stream.receive();
    ASSERT_TRUE(received) << received.error().message;
    EXPECT_EQ(*received, expected);
  }
  // Called in the thread of the other end. Waits a minute at most.
  static void wait_for(const std::atomic<bool>& condition) {
    for (int i = 0; i < 60'000 && !condition; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  static int number_of(const base::Expected<bool>& result) { return result ? 0 : result.error().number; }
};

TEST_F(StreamTest, WhatIsNotUsedStays) {
  talk(
      [](Stream& stream) {
        must_receive(stream);
        EXPECT_EQ(stream.input(), "one two");
        stream.consume(4);
        EXPECT_EQ(stream.input(), "two");
        ASSERT_TRUE(stream.write("next"));
        must_receive(stream);
        EXPECT_EQ(stream.input(), "two three");
        stream.consume(stream.input().size());
        must_receive(stream, false);
      },
      [](int other) {
        say(other, "one two");
        EXPECT_EQ(hear(other, 4), "next");
        say(other, " three");
      });
}

TEST_F(StreamTest, WhoSendsWithoutEndLetsOthersRun) {
  std::atomic<bool> is_over{false};
  constexpr uint64_t kMs = 1'000'000;
  talk(
      [&](Stream& stream) {
        bool has_run = false;
        auto other = [&] {
          task::sleep_until(sys::monotonic_ns() + kMs);
          has_run = true;
        };
        task::Task& runs = task::start("other", other);
        int rounds = 0;
        for (; !has_run && rounds < 2000; ++rounds) {
          must_receive(stream);
          stream.consume(stream.input().size());
          // Its client is faster than this.
          for (const uint64_t until_ns = sys::monotonic_ns() + kMs; sys::monotonic_ns() < until_ns;) {
          }
        }
        EXPECT_LT(rounds, 1000);
        is_over = true;
        task::join(runs);
      },
      [&](int other) {
        const std::string much(100'000, 'x');
        while (!is_over && say(other, much)) {
        }
      });
}

TEST_F(StreamTest, NoMoreComesAtATimeAfterALongRequest) {
  const std::string request(100'000, 'r'), much(2 * Stream::kInputBytes, 'x');
  talk(
      [&](Stream& stream) {
        auto received = stream.receive_at_least(request.size());
        ASSERT_TRUE(received && *received);
        stream.consume(stream.input().size() - 1);  // so that the memory of all of it stays
        ASSERT_TRUE(stream.write("next") && stream.send());
        std::this_thread::sleep_for(std::chrono::milliseconds(50));  // blocks all tasks
        for (size_t had = 1; had < 1 + much.size(); had = stream.input().size()) {
          ASSERT_NO_FATAL_FAILURE(must_receive(stream));
          EXPECT_LE(stream.input().size() - had, Stream::kInputBytes);
        }
        EXPECT_TRUE(stream.input() == "r" + much);
      },
      [&](int other) {
        say(other, request);
        EXPECT_EQ(hear(other, 4), "next");
        say(other, much);
        EXPECT_EQ(hear(other, 1), "");
      });
}

TEST_F(StreamTest, AnEndThatCameWithTheLastBytesIsSeen) {
  talk(
      [](Stream& stream) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));  // blocks all tasks
        must_receive(stream);
        EXPECT_EQ(stream.input(), "bye");
        must_receive(stream, false);
      },
      [](int other) {
        say(other, "bye");
        ::shutdown(other, SHUT_WR);
        EXPECT_EQ(hear(other, 1), "");
      });
}

TEST_F(StreamTest, AllRepliesGoTogetherBeforeItWaits) {
  talk(
      [](Stream& stream) {
        must_receive(stream);
        for (const char* reply : {"one", "two", "three"}) {
          auto room = stream.room(100);
          ASSERT_TRUE(room);
          memcpy(room->data(), reply, strlen(reply));
          stream.wrote(strlen(reply));
        }
        stream.consume(3);
        must_receive(stream, false);
        EXPECT_EQ(stream.sent_bytes(), 11u);
        EXPECT_EQ(stream.received_bytes(), 3u);
      },
      [](int other) {
        say(other, "all");
        char packet[100];
        EXPECT_EQ(::read(other, packet, sizeof packet), 11);
      },
      {}, SOCK_SEQPACKET);
}

TEST_F(StreamTest, HasNoMemoryWhileNothingHappens) {
  std::atomic<size_t> waiting_bytes{1};
  std::atomic<bool> has_looked{false};
  talk(
      [&](Stream& stream) {
        must_receive(stream);
        EXPECT_EQ(stream.memory_bytes(), Stream::kInputBytes);
        ASSERT_TRUE(stream.write("reply"));
        stream.consume(stream.input().size());
        auto look = [&] {
          waiting_bytes = stream.memory_bytes();
          has_looked = true;
        };
        task::Task& looks = task::start("looks", look);
        must_receive(stream);
        task::join(looks);
      },
      [&](int other) {
        say(other, "request");
        hear(other, 5);
        wait_for(has_looked);
        say(other, "another");
      });
  EXPECT_EQ(waiting_bytes, 0u);
}

TEST_F(StreamTest, ARequestMayBeLongButNotTooLong) {
  const std::string first(100'000, 'a'), second(Stream::kInputBytes * 16, 'b');
  talk(
      [&](Stream& stream) {
        auto received = stream.receive_at_least(first.size());
        ASSERT_TRUE(received && *received);
        EXPECT_EQ(stream.input().substr(0, first.size()), first);
        stream.consume(first.size());
        while (received) received = stream.receive();
        EXPECT_EQ(number_of(received), EMSGSIZE);
        EXPECT_EQ(stream.input(), second.substr(0, Stream::kInputBytes * 8));
      },
      [&](int other) {
        say(other, first);
        say(other, second);
      },
      {.input_bytes_max = Stream::kInputBytes * 8});
}

TEST_F(StreamTest, SomeOfTheInputGoesElsewhere) {
  const std::string value(50'000, 'v');
  talk(
      [&](Stream& stream) {
        std::string memory(value.size(), ' ');
        must_receive(stream);
        EXPECT_EQ(stream.input().substr(0, 4), "set ");
        auto received = stream.receive_into(4, std::as_writable_bytes(std::span(memory)));
        ASSERT_TRUE(received && *received);
        EXPECT_EQ(memory, value);
        received = stream.receive_at_least(8);
        ASSERT_TRUE(received && *received);
        EXPECT_EQ(stream.input(), "set then");
        // All of it has come.
        memory.resize(2);
        received = stream.receive_into(1, std::as_writable_bytes(std::span(memory)));
        ASSERT_TRUE(received && *received);
        EXPECT_EQ(memory, "et");
        EXPECT_EQ(stream.input(), "s then");
        received = stream.receive_into(0, std::as_writable_bytes(std::span(memory.assign(100, ' '))));
        ASSERT_TRUE(received);
        EXPECT_FALSE(*received) << "it ends before";
      },
      [&](int other) { say(other, "set " + value + "then"); });
}

// What was there has been received whole, and has filled the room to the last byte.
TEST_F(StreamTest, RepliesAreSentAlsoWhenNothingWasLeftToReceive) {
  talk(
      [](Stream& stream) {
        std::string memory(1000, ' ');
        must_receive(stream);
        stream.consume(4);
        auto received = stream.receive_into(0, std::as_writable_bytes(std::span(memory)));
        ASSERT_TRUE(received && *received);
        ASSERT_TRUE(stream.write("done"));
        must_receive(stream, false);
      },
      [](int other) {
        say(other, "set ");
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        say(other, std::string(1000, 'v'));
        EXPECT_EQ(hear(other, 4), "done");
      });
}

TEST_F(StreamTest, BytesAreThrownAway) {
  talk(
      [](Stream& stream) {
        auto skipped = stream.skip(100'000);
        ASSERT_TRUE(skipped && *skipped);
        must_receive(stream);
        EXPECT_EQ(stream.input(), "then");
        skipped = stream.skip(5);
        ASSERT_TRUE(skipped);
        EXPECT_FALSE(*skipped);
      },
      [](int other) {
        say(other, std::string(100'000, 'x'));
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        say(other, "then");
      });
}

TEST_F(StreamTest, AClientThatTakesNothingIsGivenUp) {
  std::atomic<bool> is_given_up{false};
  talk(
      [&](Stream& stream) {
        base::Expected<void> sent;
        while (sent) sent = stream.write(std::string(Stream::kTextBytes, 'x'));
        EXPECT_EQ(sent.error().number, ETIMEDOUT);
        EXPECT_FALSE(stream.was_idle());
        is_given_up = true;
      },
      [&](int) { wait_for(is_given_up); }, {.send_ns = 20'000'000});
}

// Otherwise neither side would ever have room for what it has to send.
TEST_F(StreamTest, WhatAClientSaysBeforeItTakesAnythingIsReceived) {
  std::string requests;
  for (int i = 0; requests.size() < size_t{4} << 20; ++i) requests += std::to_string(i) + ' ';
  const std::string replies(8 << 20, 'r');
  talk(
      [&](Stream& stream) {
        stream.keep_ahead(2 * requests.size());
        must_receive(stream);
        std::string got(stream.input());
        stream.consume(got.size());
        ASSERT_TRUE(stream.write(replies));
        ASSERT_TRUE(stream.send());
        while (got.size() < requests.size()) {
          ASSERT_NO_FATAL_FAILURE(must_receive(stream));
          got += stream.input();
          stream.consume(stream.input().size());
        }
        EXPECT_TRUE(got == requests);
        must_receive(stream, false);
      },
      [&](int other) {
        EXPECT_TRUE(say(other, requests));
        EXPECT_TRUE(hear(other, replies.size()) == replies);
      },
      {.send_ns = 5'000'000'000});
}

TEST_F(StreamTest, SomeOfWhatIsReceivedAheadGoesElsewhere) {
  const std::string value(1 << 20, 'v'), replies(8 << 20, 'r');
  talk(
      [&](Stream& stream) {
        stream.keep_ahead(2 * value.size());
        must_receive(stream);
        EXPECT_EQ(stream.input(), "set ");
        ASSERT_TRUE(stream.write(replies));
        ASSERT_TRUE(stream.send());
        std::string memory(value.size(), ' ');
        auto received = stream.receive_into(4, std::as_writable_bytes(std::span(memory)));
        ASSERT_TRUE(received && *received);
        EXPECT_TRUE(memory == value);
        received = stream.receive_at_least(8);
        ASSERT_TRUE(received && *received);
        EXPECT_EQ(stream.input(), "set then");
      },
      [&](int other) {
        say(other, "set ");
        EXPECT_EQ(hear(other, 1), "r");
        EXPECT_TRUE(say(other, value + "then"));
        EXPECT_TRUE(hear(other, replies.size() - 1) == replies.substr(1));
      },
      {.send_ns = 5'000'000'000});
}

TEST_F(StreamTest, OnlySoMuchIsReceivedAhead) {
  constexpr size_t kMax = size_t{8} << 20;
  size_t said_bytes = 0;
  talk(
      [](Stream& stream) {
        stream.keep_ahead(100'000);
        must_receive(stream);
        base::Expected<void> sent;
        while (sent) sent = stream.write(std::string(Stream::kTextBytes, 'x'));
        EXPECT_EQ(sent.error().number, ETIMEDOUT);
      },
      [&](int other) {
        keep_little(other);
        const std::string part(1000, 'y');
        while (said_bytes < kMax && say(other, part)) said_bytes += part.size();
      },
      {.send_ns = 1'000'000'000});
  EXPECT_GT(said_bytes, 100'000u);
  EXPECT_LT(said_bytes, kMax / 4);
}

TEST_F(StreamTest, AClientThatTakesNothingIsGivenUpAlsoIfItSaysMore) {
  constexpr int kMax = 20'000;
  int said_count = 0;
  talk(
      [](Stream& stream) {
        stream.keep_ahead(2 * kMax);
        must_receive(stream);
        base::Expected<void> sent;
        while (sent) sent = stream.write(std::string(Stream::kTextBytes, 'x'));
        EXPECT_EQ(sent.error().number, ETIMEDOUT);
      },
      [&](int other) {
        for (; said_count < kMax && say(other, "y"); ++said_count)
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
      },
      {.send_ns = 20'000'000});
  EXPECT_LT(said_count, kMax);
}

TEST_F(StreamTest, AClientThatSaysNothingIsGivenUp) {
  talk(
      [](Stream& stream) {
        EXPECT_FALSE(stream.receive_within(1'000'000)->has_value());
        EXPECT_FALSE(stream.was_idle());
        EXPECT_EQ(number_of(stream.receive()), ETIMEDOUT);
        EXPECT_TRUE(stream.was_idle());
      },
      [](int other) { EXPECT_EQ(hear(other, 1), ""); }, {.idle_ns = 20'000'000});
}

TEST_F(StreamTest, AnExchangeEndsInTimeHoweverOftenSomethingComes) {
  std::atomic<bool> has_ended{false};
  talk(
      [&](Stream& stream) {
        stream.begin_exchange();
        base::Expected<bool> received = true;
        while (received && *received) received = stream.receive();
        EXPECT_EQ(number_of(received), ETIMEDOUT);
        has_ended = true;
      },
      [&](int other) {
        for (int i = 0; i < 60'000 && !has_ended && say(other, "x"); ++i)
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
      },
      {.exchange_ns = 20'000'000});
}

TEST_F(StreamTest, WhenItDrainsARequestThatHasBegunIsWaitedFor) {
  std::atomic<bool> has_drained{false};
  talk(
      [&](Stream& stream) {
        must_receive(stream);
        EXPECT_EQ(stream.input(), "be");
        auto drain = [&] {
          EXPECT_FALSE(stream.drain());
          has_drained = true;
        };
        task::Task& drains = task::start("drains", drain);
        must_receive(stream);
        task::join(drains);
        EXPECT_EQ(stream.input(), "begun");
        stream.consume(5);
        must_receive(stream, false);
        EXPECT_FALSE(task::is_cancelled());
      },
      [&](int other) {
        say(other, "be");
        wait_for(has_drained);
        say(other, "gun");
        EXPECT_EQ(hear(other, 1), "");
      });
}

TEST_F(StreamTest, WhenItDrainsARequestWhoseRestIsThrownAwayIsWaitedFor) {
  std::atomic<bool> has_drained{false};
  talk(
      [&](Stream& stream) {
        auto drain = [&] {
          EXPECT_FALSE(stream.drain());
          has_drained = true;
        };
        task::Task& drains = task::start("drains", drain);
        auto skipped = stream.skip(10);
        task::join(drains);
        EXPECT_TRUE(skipped && *skipped);
        must_receive(stream, false);
      },
      [&](int other) {
        say(other, "12345");
        wait_for(has_drained);
        say(other, "67890");
        EXPECT_EQ(hear(other, 1), "");
      });
}

// The request has come, but the task that waits for it has not been told yet.
TEST_F(StreamTest, WhenItDrainsARequestThatBeginsAtThatMomentIsWaitedFor) {
  std::atomic<bool> has_drained{false}, has_begun{false};
  const std::string value(50'000, 'v');
  talk(
      [&](Stream& stream) {
        task::Task& own = task::self();
        auto drain = [&] {
          while (own.state.load(std::memory_order_relaxed) != task::State::kRunnable) task::yield();
          EXPECT_TRUE(stream.drain());
          task::cancel(own);
          has_drained = true;
        };
        task::Task& drains = task::start("drains", drain);
        must_receive(stream);
        EXPECT_EQ(stream.input(), "be");
        must_receive(stream);
        EXPECT_EQ(stream.input(), "begun");
        has_begun = true;
        std::string memory(value.size(), ' ');
        auto received = stream.receive_into(5, std::as_writable_bytes(std::span(memory)));
        ASSERT_TRUE(received) << received.error().message;
        EXPECT_TRUE(*received && memory == value);
        stream.consume(5);
        must_receive(stream, false);
        task::join(drains);
      },
      [&](int other) {
        say(other, "be");
        wait_for(has_drained);
        say(other, "gun");
        wait_for(has_begun);
        std::this_thread::sleep_for(std::chrono::milliseconds(10));  // meanwhile it begins to wait for more
        say(other, value);
        EXPECT_EQ(hear(other, 1), "");
      });
}

TEST_F(StreamTest, WhenItDrainsNoOtherIs) {
  talk(
      [](Stream& stream) {
        task::Task& own = task::self();
        auto drain = [&] {
          EXPECT_TRUE(stream.drain());
          task::cancel(own);
        };
        task::Task& drains = task::start("drains", drain);
        must_receive(stream, false);
        task::join(drains);
      },
      [](int other) { EXPECT_EQ(hear(other, 1), ""); });
}

// With items of a store.
class StreamValuesTest : public ItemsTest {
 protected:
  StreamValuesTest() { options.value_bytes_max = 4 * Stream::kPartBytes; }
  static std::string value_of(size_t number) {
    return std::string(number % 50 == 0  ? 5 * Stream::kPartBytes / 2
                       : number % 7 == 0 ? 300'000
                       : number % 3 == 0 ? 2'000
                                         : 3'000,
                       static_cast<char>('a' + number % 26));
  }

  // What the other end receives from send(stream, items), which a task runs.
  template <class Send>
  std::string heard_of(Send send) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    std::string heard;
    std::thread asks([&] {
      heard = hear(ends[1]);
      ::close(ends[1]);
    });
    task::Scheduler scheduler;
    EXPECT_TRUE(scheduler.open({.worker_count = 1, .stack_bytes = task::kTestStackBytes}));
    auto serve = [&] {
      storage::BufferPool pool;
      Items own;
      ASSERT_TRUE(own.open(shared));
      Stream stream(pool, {});
      ASSERT_TRUE(stream.take(ends[0]));
      send(stream, own);
      ASSERT_TRUE(stream.send());
      sent_bytes = stream.sent_bytes();
      stream.close();
      own.close();
    };
    EXPECT_TRUE(scheduler.run(task::calls("serves", serve)));
    scheduler.close();
    asks.join();
    return heard;
  }
  static Item found(Items& items, const std::string& key) {
    auto item = items.get(key);
    EXPECT_TRUE(item && item->found()) << key;
    return item ? std::move(*item) : Item();
  }
  static void begin(Stream& stream, Items& items, Item& item, uint64_t offset, uint64_t bytes) {
    auto begun = stream.begin_value(items, item, offset, bytes);
    EXPECT_TRUE(begun && *begun);
  }

  uint64_t sent_bytes = 0;
};

TEST_F(StreamValuesTest, GoInTheirOrderWithTheTextAroundThem) {
  constexpr size_t kItems = 300;
  std::string expected;
  for (size_t i = 0; i < kItems; ++i) {
    set("key" + std::to_string(i), value_of(i));
    expected += "VALUE " + std::to_string(i) + ":" + value_of(i) + ";";
  }
  const std::string heard = heard_of([](Stream& stream, Items& own) {
    for (size_t i = 0; i < kItems; ++i) {
      Item item = found(own, "key" + std::to_string(i));
      begin(stream, own, item, 0, item.value_bytes());
      ASSERT_TRUE(stream.write("VALUE " + std::to_string(i) + ":"));
      ASSERT_TRUE(stream.write_value(own, std::move(item), ";"));
    }
  });
  EXPECT_EQ(sent_bytes, expected.size());
  EXPECT_TRUE(heard == expected);
}

// Of a large value and of a small one.
TEST_F(StreamValuesTest, PartsAreWhatLiesThere) {
  std::string large, expected;
  for (uint32_t i = 0; large.size() < 3 * Stream::kPartBytes; ++i) large += std::to_string(i) + ' ';
  const std::string small = large.substr(0, 3000);
  set("large", large);
  set("small", small);
  const std::pair<size_t, size_t> parts[] = {{0, 10},
                                             {0, 0},
                                             {2999, 1},
                                             {17, 2900},
                                             {1000, 300'000},
                                             {1, 2 * Stream::kPartBytes},
                                             {5, Stream::kPartBytes}};
  const std::string heard = heard_of([&](Stream& stream, Items& own) {
    for (const auto& [offset, bytes] : parts)
      for (const std::string* value : {&std::as_const(large), &small}) {
        if (offset + bytes > value->size()) continue;
        Item item = found(own, value == &large ? "large" : "small");
        EXPECT_EQ(item.is_large(), value == &large);
        begin(stream, own, item, offset, bytes);
        ASSERT_TRUE(stream.write_part(own, item, offset, bytes));
        expected += value->substr(offset, bytes);
      }
  });
  EXPECT_TRUE(heard == expected);
}

}  // namespace
}  // namespace server
