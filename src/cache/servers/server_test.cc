// Servers: threads get the same through them as by loading pages themselves.
#include "cache/servers/server.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <map>
#include <optional>
#include <thread>

#include "base/statistics.h"
#include "cache/testing/test_world.h"

namespace cache {
namespace {

class ServerTest : public WorldTest {
 protected:
  void serve(uint32_t count = 1, bool always = false) { serving.emplace(*world->cache, count, always); }
  void TearDown() override { serving.reset(); }
  static uint64_t requests() { return base::statistics.cache_server_requests.get(); }
  static uint64_t refusals() { return base::statistics.cache_server_refusals.get(); }
  PageId page(uint64_t i) { return world->cache->page_of(world->address(i)); }

  std::optional<Serving> serving;
};

TEST_F(ServerTest, LoadsPagesFromStorageAndZeros) {
  for (uint64_t i = 0; i < 8; ++i) write(i, static_cast<char>('a' + i));
  evict();
  serve();
  const uint64_t before = requests(), misses = base::statistics.cache_misses.get();
  for (uint64_t i = 0; i < 16; ++i) EXPECT_EQ(value(i), i < 8 ? static_cast<char>('a' + i) : 0);
  EXPECT_EQ(requests() - before, 16u);
  EXPECT_EQ(base::statistics.cache_misses.get() - misses, 16u);
  EXPECT_EQ(refusals(), 0u);
}

TEST_F(ServerTest, WhatIsInMemoryIsFoundWithoutTheServer) {
  write(1, 'x');
  serve();
  const uint64_t before = requests();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(world->cache->load(page(1), *a->workspace).has_value());
  EXPECT_EQ(requests(), before);
}

TEST_F(ServerTest, UnlessEverythingIsAskedFor) {
  write(1, 'x');
  serve(1, true);
  const uint64_t before = requests();
  for (int i = 0; i < 10; ++i) {
    auto bytes = world->cache->load(page(1), *a->workspace);
    ASSERT_TRUE(bytes.has_value());
    EXPECT_EQ(**bytes, 'x');
  }
  EXPECT_EQ(requests() - before, 10u);
}

TEST_F(ServerTest, PinsForItsClients) {
  for (const bool always : {false, true}) {
    open({});
    write_and_evict(3, 'p');
    serve(1, always);
    const uint64_t hits = base::statistics.cache_hits.get();
    auto pinned = world->cache->pin(page(3), *a->workspace);
    ASSERT_TRUE(pinned.has_value());
    EXPECT_EQ(**pinned, 'p');
    EXPECT_EQ(base::statistics.cache_hits.get(), hits);
    EXPECT_EQ(*world->cache->pin(page(3), *b->workspace), *pinned);
    EXPECT_EQ(base::statistics.cache_hits.get(), hits + 1);
    EXPECT_EQ(world->cache->evict(*b->workspace), 0u);
    world->cache->unpin(page(3));
    EXPECT_EQ(world->cache->evict(*b->workspace), 0u);
    world->cache->unpin(page(3));
    evict();
    EXPECT_FALSE(world->resident(3));
    serving.reset();
  }
}

TEST_F(ServerTest, ReadsThatFailAreToldToWhoAsked) {
  write_and_evict(2, 'r');
  world->device->bad_offset_bytes = offset_of('r');
  serve();
  const uint64_t before = requests(), refused = refusals();
  EXPECT_EQ(a->translate(world->address(2)), nullptr);
  EXPECT_EQ(requests() - before, 1u);
  EXPECT_EQ(refusals() - refused, 1u);
  EXPECT_EQ(a->error.number, EIO);
  EXPECT_NE(std::string(a->error.message).find("cannot read page 2"), std::string::npos) << a->error.message;
  world->device->bad_offset_bytes = ~uint64_t{0};
  EXPECT_EQ(value(2), 'r');
}

// All requests of a message have begun before the first of their reads ends.
TEST_F(ServerTest, TheReadsOfAMessageAreUnderWayTogether) {
  open({.frame_count = 16});
  for (uint64_t i = 0; i < Lines::kMax; ++i) write(i, static_cast<char>('a' + i));
  evict();
  const Layout::Part part = world->cache->layout().parts[0];
  uint32_t most = 0;
  world->device->before_transfer = [&](const Io&) {
    uint32_t loading = 0;
    const auto* frames = reinterpret_cast<const Frame*>(part.frames);
    for (uint64_t i = 0; i < part.frame_count; ++i) loading += frames[i].state() == State::kLoading;
    most = std::max(most, loading);
    usleep(2000);  // meanwhile a client that was answered too early would continue
  };
  serve();
  for (int round = 0; round < 5; ++round) {
    most = 0;
    world->cache->load_together(page(0), Lines::kMax, *a->workspace);
    // It was answered only when all of them were there.
    for (uint64_t i = 0; i < Lines::kMax; ++i) EXPECT_TRUE(world->resident(i)) << i;
    EXPECT_EQ(most, Lines::kMax);
    for (uint64_t i = 0; i < Lines::kMax; ++i) EXPECT_EQ(value(i), static_cast<char>('a' + i));
    evict();
  }
  world->device->before_transfer = nullptr;
}

TEST_F(ServerTest, AServerThatCannotMakeRoomLeavesItToItsClient) {
  for (uint64_t i = 0; i < 9; ++i) write_and_evict(i, static_cast<char>('a' + i));
  serve();
  for (uint64_t i = 0; i < 8; ++i) ASSERT_TRUE(world->cache->pin(page(i), *a->workspace).has_value());
  const uint64_t before = refusals();
  std::thread later([&] {
    while (refusals() == before) std::this_thread::yield();
    for (uint64_t i = 0; i < 8; ++i) world->cache->unpin(page(i));
  });
  auto bytes = world->cache->load(page(8), *b->workspace);
  later.join();
  ASSERT_TRUE(bytes.has_value());
  EXPECT_EQ(**bytes, 'i');
}

TEST_F(ServerTest, ThreadsBeyondItsClientsWorkByThemselves) {
  write_and_evict(1, 'n');
  serve();
  std::vector<Workspace*> workspaces;
  for (uint32_t i = 0; i < Server::kMaxClients; ++i) {
    workspaces.push_back(*world->cache->open_workspace());
    ASSERT_TRUE(world->cache->load(page(10 + i % 40), *workspaces.back()).has_value());
  }
  const uint64_t before = requests();
  evict();
  EXPECT_EQ(value(1), 'n');
  EXPECT_EQ(requests(), before);
  for (Workspace* workspace : workspaces) workspace->destroy();
  evict();
  EXPECT_EQ(value(1), 'n');
  EXPECT_EQ(requests(), before + 1);
}

TEST_F(ServerTest, SeveralServeTheRegions) {
  open({.frame_count = 64, .range_pages = 512 * 16, .partition_count = 4});
  for (uint64_t i = 0; i < 16; ++i) write(i * 512, static_cast<char>('a' + i));
  evict();
  std::map<std::thread::id, int> reads;  // never concurrently: there is one client
  world->device->before_transfer = [&](const Io& io) {
    if (io.operation == storage::Operation::kRead) ++reads[std::this_thread::get_id()];
  };
  serve(2);
  for (uint64_t i = 0; i < 16; ++i) EXPECT_EQ(value(i * 512), static_cast<char>('a' + i));
  EXPECT_EQ(reads.size(), 2u);
  EXPECT_EQ(reads.count(std::this_thread::get_id()), 0u);
  for (const auto& [thread, count] : reads) EXPECT_GE(count, 4);
}

// No server runs here: the test itself reads and answers messages.
TEST_F(ServerTest, AMessageOfADeadThreadIsAnsweredBeforeItsClientAsksAgain) {
  Shared shared;
  shared.device = world->device.get();
  Delegation* const delegation = *Delegation::create(shared, 1, false);
  delegation->start(1);
  Client* const client = delegation->take_client();
  Server& server = delegation->server_of(PageId{0});
  const uint64_t of_the_dead = 1234;
  server.lines(0).send(&of_the_dead, 1);
  uint64_t reply = 0;
  std::thread heir([&] {
    const Request request = {.page = PageId{7}};
    client->ask(server, &request, 1, &reply);
  });
  usleep(20'000);
  uint32_t taken = 0;
  const auto answer = [&](uint64_t with) {
    while (server.lines(0).take(taken) == 0) std::this_thread::yield();
    const uint64_t request = server.lines(0).request(0);
    server.lines(0).set_reply(0, with);
    server.lines(0).answer(taken);
    return request;
  };
  const uint64_t first = answer(1);
  EXPECT_EQ(first, of_the_dead);
  if (first == of_the_dead) EXPECT_EQ(Request::of(answer(2)).page, PageId{7});
  heir.join();
  EXPECT_EQ(reply, 2u);
  client->give_back();
  delegation->destroy();
  shared.loads.destroy();
}

TEST_F(ServerTest, AChildOfForkHasNoServersUntilItOpensItsOwn) {
  write_and_evict(1, 'f');
  serve();
  EXPECT_EQ(value(1), 'f');
  evict();
  world->cache->before_fork({[](PageId) { return false; }, [](PageId) { return 0u; }});
  const pid_t child = fork();
  if (child != 0) world->cache->after_fork_in_parent();
  if (child == 0) {
    if (!world->cache->after_fork_in_child()) _exit(1);
    a->workspace->destroy();
    a->workspace = *world->cache->open_workspace();
    const uint64_t before = requests();
    if (value(1) != 'f' || requests() != before) _exit(2);
    evict();
    Serving anew(*world->cache, 1);
    if (value(1) != 'f' || requests() != before + 1) _exit(3);
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  const uint64_t before = requests();
  EXPECT_EQ(value(1), 'f');
  EXPECT_EQ(requests(), before + 1);
}

}  // namespace
}  // namespace cache
