#include "server/clients/watchers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <sstream>
#include <thread>
#include <vector>

namespace server {
namespace {

// A line's text without its time and number.
std::string event_of(const std::string& line) { return line.substr(line.find(' ', line.find(' ') + 1) + 1); }

TEST(Watchers, AreToldWhatTheyWatch) {
  Watchers watchers;
  EXPECT_FALSE(watchers.wants(Watchers::kFetches));
  watchers.tell_fetched("nobody", true, 1, 1);
  {
    Watchers::Watcher fetches(watchers, Watchers::kFetches), all(watchers, 7);
    EXPECT_TRUE(watchers.wants(Watchers::kFetches));
    EXPECT_TRUE(watchers.wants(Watchers::kConnections));
    watchers.tell_fetched("a b", true, 5, 3);
    watchers.tell_stored("key", "stored", "cas", -1, 7, 4);
    watchers.tell_connection("[::1]:4711", "", 9);
    watchers.tell_connection("/run/socket", "error", 9);
    EXPECT_EQ(event_of(fetches.take()), "type=item_get key=a%20b status=found clsid=0 cfd=3 size=5\n");
    std::istringstream lines(all.take());
    std::string line;
    std::vector<std::string> told;
    while (std::getline(lines, line)) told.push_back(event_of(line));
    EXPECT_EQ(told, (std::vector<std::string>{
                        "type=item_get key=a%20b status=found clsid=0 cfd=3 size=5",
                        "type=item_store key=key status=stored cmd=cas ttl=0 clsid=0 cfd=4 size=7",
                        "type=conn_new rip=[::1] rport=4711 transport=tcp cfd=9",
                        "type=conn_close rip=unix rport=0 transport=local reason=error cfd=9"}));
    EXPECT_EQ(all.take(), "");
    EXPECT_EQ(watchers.counts().watchers, 2u);
  }
  EXPECT_FALSE(watchers.wants(Watchers::kFetches));
  EXPECT_EQ(watchers.counts().watchers, 0u);
  EXPECT_EQ(watchers.counts().sent, 5u);
  watchers.reset_counts();
  EXPECT_EQ(watchers.counts().sent, 0u);
}

TEST(Watchers, WhatOneHasNoRoomForIsLeftOut) {
  Watchers watchers;
  Watchers::Watcher slow(watchers, Watchers::kFetches);
  const std::string key(200, 'k');
  while (watchers.counts().skipped < 3) watchers.tell_fetched(key, false, 0, 1);
  EXPECT_LT(slow.take().size(), Watchers::kMaxBytes + 1000);
  watchers.tell_fetched("later", false, 0, 1);
  const std::string text = slow.take();
  EXPECT_TRUE(text.starts_with("skipped=3\nts=")) << text;
}

TEST(Watchers, ComeAndGoWhileManyAreWatched) {
  Watchers watchers;
  std::atomic<bool> ends{false};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 3; ++i)
    threads.emplace_back([&, i] {
      while (!ends)
        if (watchers.wants(Watchers::kFetches)) watchers.tell_fetched("key", true, 1, i);
    });
  uint64_t events = 0;
  while (events < 2'000) {
    Watchers::Watcher watcher(watchers, Watchers::kFetches);
    for (int turn = 0; turn < 50; ++turn) {
      std::istringstream lines(watcher.take());
      for (std::string line; std::getline(lines, line);) events += line.starts_with("ts=");
    }
  }
  ends = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(watchers.counts().sent, events);
}

}  // namespace
}  // namespace server
