// Queues of requests to a cache with several nodes: which requests go to which servers, and when.
#include <array>

#include "pagecache/request_queue.h"
#include "pagecache/test_cache.h"

namespace pagecache {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kPages = 64 * 40;
constexpr uint32_t kNodes = 4;

class RequestNodesTest : public testing::Test {
 protected:
  void SetUp() override { open(kNodes); }
  void TearDown() override { close(); }
  void open(uint32_t threads) {
    close();
    cache = *PageCache::open(with_frames(kNodes * 1000, {.nodes = kNodes, .balances_nodes = false}));
    file = *cache->add(test.device);
    session.open(*cache);
    servers = *Servers::open(*cache, {.threads = threads});
    queue.open(*servers, 1000, 1);
  }
  void close() {
    queue.close();
    if (cache == nullptr) return;
    servers->close();
    session.close();
    cache->close();
    cache = nullptr;
  }
  // The file's nth page that is on the node.
  uint64_t page_of(uint32_t node, uint64_t nth = 0) const {
    for (uint64_t page = 0;; ++page)
      if (cache->node_of(file->key(page)) == node && nth-- == 0) return page;
  }
  struct Own : Request {
    std::array<std::byte, 8> memory = {};
  };
  // Requests for pages of a node, from the nth on.
  std::vector<Own> requests(Request::Kind kind, uint32_t node, uint64_t count, uint64_t nth = 0) {
    std::vector<Own> all(count);
    for (uint64_t i = 0; i < count; ++i) {
      all[i].kind = kind;
      all[i].file = file;
      all[i].offset = page_of(node, nth + i) * kPage;
    }
    return all;
  }
  void submit(std::vector<Own>& all) {
    std::vector<Request*> pointers;
    for (Own& own : all) {
      own.bytes = own.memory;
      pointers.push_back(&own);
    }
    ASSERT_EQ(queue.submit(pointers), all.size());
  }
  void load(uint32_t node, uint64_t count) {
    std::byte byte;
    for (uint64_t i = 0; i < count; ++i)
      ASSERT_TRUE(session.read(*file, page_of(node, i) * kPage, {&byte, 1}));
  }
  uint64_t sent() const { return servers->counts().requests; }
  void end_all() {
    while (queue.wait() != 0) {
    }
  }

  TestDevice test{kPages * kPage};
  PageCache* cache = nullptr;
  File* file = nullptr;
  Session session;
  Servers* servers = nullptr;
  RequestQueue queue;
};

TEST_F(RequestNodesTest, EachGoesToTheServersOfItsPagesNode) {
  for (const uint32_t threads : {1, 3, 4, 10}) {
    open(threads);
    std::array<uint64_t, kNodes> requests_of =
        {};  // those that have servers of their own, and the first also those of others
    for (uint32_t node = 0; node < kNodes; ++node) {
      auto all = requests(Request::Kind::kRead, node, 200);
      submit(all);
      end_all();
      for (const Own& own : all) EXPECT_TRUE(own.result);
    }
    for (uint32_t i = 0; i < threads; ++i) {
      EXPECT_GT(servers->counts_of(i).requests, 0u) << i;
      requests_of[i % kNodes] += servers->counts_of(i).requests;
    }
    for (uint32_t node = 0; node < kNodes; ++node) {
      const uint64_t nodes_here = threads >= kNodes ? 1
                                  : node < threads  ? (kNodes - node + threads - 1) / threads
                                                    : 0;
      EXPECT_EQ(requests_of[node], 200 * nodes_here) << threads << " " << node;
    }
  }
}

TEST_F(RequestNodesTest, WhatIsThereIsDoneAtOnceIfItIsOfTheOwnNode) {
  EXPECT_EQ(queue.node(), 1u);
  for (uint32_t node = 0; node < kNodes; ++node) load(node, 10);
  auto own = requests(Request::Kind::kRead, 1, 10);
  submit(own);
  EXPECT_EQ(queue.poll(), 10u);
  EXPECT_EQ(sent(), 0u);
  auto other = requests(Request::Kind::kRead, 2, 10);
  submit(other);
  end_all();
  EXPECT_EQ(sent(), 10u);
  EXPECT_EQ(servers->counts_of(2).requests, 10u);
  for (const auto& all : {own, other})
    for (const Own& one : all) EXPECT_TRUE(one.result);
}

TEST_F(RequestNodesTest, MessagesThatAreFullGoByThemselves) {
  for (const uint32_t node : {0, 1, 2}) {
    auto all = requests(Request::Kind::kRead, node, 130);
    submit(all);
    const MessageCounts counts = servers->counts_of(node);
    EXPECT_EQ(counts.requests, 128u);
    EXPECT_EQ(counts.request_messages, 2u);
    end_all();
    EXPECT_EQ(servers->counts_of(node).requests, 130u);
    EXPECT_EQ(servers->counts_of(node).request_messages, 3u);
  }
}

// Views of pages keep requests under way.
TEST_F(RequestNodesTest, AMessageGrowsUntilNodesHaveNoMoreUnderWay) {
  std::vector<View> views;
  for (uint64_t i = 0; i < 12; ++i) views.push_back(*session.view(*file, page_of(2, i) * kPage, 1));
  auto held = requests(Request::Kind::kWrite, 2, 12);
  submit(held);
  EXPECT_EQ(queue.poll(), 0u);
  EXPECT_EQ(sent(), 12u);  // there was nothing under way
  auto few = requests(Request::Kind::kRead, 0, 2);
  submit(few);
  EXPECT_EQ(queue.poll(), 0u);
  EXPECT_EQ(sent(), 12u);
  // This applies to each node separately.
  auto other = requests(Request::Kind::kRead, 3, 3);
  submit(other);
  for (size_t ended = 0; ended < 3;) ended += queue.wait();
  EXPECT_EQ(sent(), 15u);
  auto more = requests(Request::Kind::kRead, 0, 1, 2);
  submit(more);
  for (size_t ended = 0; ended < 3;) ended += queue.wait();
  EXPECT_EQ(sent(), 18u);
  views.clear();
  end_all();
  for (const auto* all : {&held, &few, &more})
    for (const Own& one : *all) EXPECT_TRUE(one.result);
}

TEST_F(RequestNodesTest, AMessageThatIsNotFullGoesWhenManyOthersHaveEnded) {
  load(1, 1);
  std::vector<View> views;
  for (uint64_t i = 0; i < 8; ++i) views.push_back(*session.view(*file, page_of(2, i) * kPage, 1));
  auto held = requests(Request::Kind::kWrite, 2, 8);
  submit(held);
  EXPECT_EQ(queue.poll(), 0u);
  auto waits = requests(Request::Kind::kWrite, 2, 1);
  submit(waits);
  int polls = 0;
  for (; sent() == 8 && polls < 1000; ++polls) {
    auto there = requests(Request::Kind::kRead, 1, 1);
    submit(there);
    EXPECT_EQ(queue.poll(), 1u);
    if (polls == 4) {
      EXPECT_EQ(queue.poll(), 0u);  // one that finds nothing does not count
    }
  }
  EXPECT_EQ(polls, 64 * static_cast<int>(kNodes));
  views.clear();
  end_all();
}

TEST_F(RequestNodesTest, QueuesThatMayBeOfAnyNodeTakeTurns) {
  std::array<uint32_t, kNodes> queues_of = {};
  for (uint32_t i = 0; i < 2 * kNodes; ++i) {
    RequestQueue any;
    any.open(*servers, 1);
    ++queues_of[any.node()];
  }
  for (const uint32_t count : queues_of) EXPECT_EQ(count, 2u);
}

TEST_F(RequestNodesTest, PagesOfSeveralNodesAreOneRequest) {
  std::vector<std::byte> text(kPages * kPage, std::byte{'t'}), got(text.size());
  Request request;
  request.kind = Request::Kind::kWrite;
  request.file = file;
  request.bytes = text;
  Request* const one[] = {&request};
  queue.run(one);
  ASSERT_TRUE(request.result);
  request.kind = Request::Kind::kRead;
  request.bytes = got;
  queue.run(one);
  ASSERT_TRUE(request.result);
  EXPECT_TRUE(got == text);
  request.offset = text.size();
  queue.run(one);
  EXPECT_FALSE(request.result);
}

}  // namespace
}  // namespace pagecache
