#include "server/resp/request_queue.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace server::resp {
namespace {

using Words = std::vector<std::string>;

bool add(RequestQueue& queue, const Words& words, uint64_t bytes_max = 1 << 20) {
  const std::vector<std::string_view> arguments(words.begin(), words.end());
  return queue.add(**find_command(arguments), arguments, bytes_max);
}

// Each with the name of its command before it.
std::vector<Words> all(const RequestQueue& queue) {
  std::vector<Words> requests;
  queue.for_each([&](const Command& command, Arguments arguments) {
    Words words = {std::string(command.name)};
    words.insert(words.end(), arguments.begin(), arguments.end());
    requests.push_back(words);
  });
  return requests;
}

TEST(RequestQueue, HasRequestsInTheirOrder) {
  RequestQueue queue;
  EXPECT_EQ(all(queue), std::vector<Words>{});
  EXPECT_TRUE(add(queue, {"SET", "k", std::string("a\0\r\n", 4)}));
  EXPECT_TRUE(add(queue, {"ping"}));
  EXPECT_TRUE(add(queue, {"Get", ""}));
  EXPECT_TRUE(add(queue, {"config", "GET", "a", "", "b"}));
  EXPECT_EQ(queue.count(), 4u);
  EXPECT_EQ(all(queue), (std::vector<Words>{{"set", "SET", "k", std::string("a\0\r\n", 4)},
                                            {"ping", "ping"},
                                            {"get", "Get", ""},
                                            {"config|get", "config", "GET", "a", "", "b"}}));
  EXPECT_EQ(all(queue).size(), 4u) << "as often as one likes";
}

TEST(RequestQueue, HasCopies) {
  RequestQueue queue;
  {
    const Words words = {"SET", std::string(1000, 'k'), std::string(100'000, 'v')};
    EXPECT_TRUE(add(queue, words));
  }
  EXPECT_EQ(all(queue),
            (std::vector<Words>{{"set", "SET", std::string(1000, 'k'), std::string(100'000, 'v')}}));
}

TEST(RequestQueue, IsBounded) {
  RequestQueue queue;
  EXPECT_FALSE(add(queue, {"SET", "k", std::string(1000, 'v')}, 1000));
  EXPECT_EQ(queue.count(), 0u);
  EXPECT_TRUE(add(queue, {"GET", "k"}, 1000));
  EXPECT_FALSE(add(queue, {"SET", "k", std::string(950, 'v')}, 1000)) << "with what there is";
  int count = 1;
  while (add(queue, {"PING"}, 1000)) ++count;
  EXPECT_LT(count, 50) << "what is kept of each counts, too";
  EXPECT_EQ(queue.count(), static_cast<size_t>(count));
  EXPECT_EQ(all(queue).size(), static_cast<size_t>(count));
}

TEST(RequestQueue, IsEmptyWhenItWasMovedAway) {
  RequestQueue queue;
  EXPECT_TRUE(add(queue, {"GET", "k"}));
  const RequestQueue moved = std::exchange(queue, {});
  EXPECT_EQ(queue.count(), 0u);
  EXPECT_EQ(moved.count(), 1u);
  EXPECT_TRUE(add(queue, {"PING"}));
  EXPECT_EQ(all(queue), (std::vector<Words>{{"ping", "PING"}}));
  EXPECT_EQ(all(moved), (std::vector<Words>{{"get", "GET", "k"}}));
}

}  // namespace
}  // namespace server::resp
