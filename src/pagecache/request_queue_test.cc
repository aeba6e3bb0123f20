// Queues of requests: they read what was written; when callbacks run, what goes into one message, and how failures are reported.
#include "pagecache/request_queue.h"

#include <poll.h>

#include <random>
#include <thread>

#include "pagecache/test_cache.h"
#include "sys/kernel.h"

namespace pagecache {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kPages = 200;
constexpr uint64_t kFileBytes = kPages * kPage;

class RequestQueueTest : public testing::Test {
 protected:
  void SetUp() override { open(32); }
  void TearDown() override { close(); }
  void open(uint64_t frames, const ServersOptions& options = {}) {
    close();
    cache = *PageCache::open(with_frames(frames));
    file = *cache->add(test.device);
    servers = *Servers::open(*cache, options);
    queue.open(*servers, 64);
  }
  void close() {
    queue.close();
    if (cache == nullptr) return;
    servers->close();
    cache->close();
    cache = nullptr;
  }

  struct Own : Request {
    std::vector<std::byte> memory;
    uint64_t done_count = 0;
  };
  Own request(Request::Kind kind, uint64_t offset, size_t bytes, char fill = 0) {
    Own own;
    own.kind = kind;
    own.file = file;
    own.offset = offset;
    own.memory.assign(bytes, static_cast<std::byte>(fill));
    own.done = [](Request& ended) { ++static_cast<Own&>(ended).done_count; };
    return own;
  }
  Own read_of(uint64_t offset, size_t bytes) { return request(Request::Kind::kRead, offset, bytes); }
  Own write_of(uint64_t offset, size_t bytes, char fill) {
    return request(Request::Kind::kWrite, offset, bytes, fill);
  }
  // Returns the result.
  std::string run(Own& own) {
    own.bytes = own.memory;
    Request* const one[] = {&own};
    queue.run(one);
    return own.result ? "" : own.result.error().message;
  }
  std::string read(uint64_t offset, size_t bytes) {
    Own own = read_of(offset, bytes);
    if (const std::string error = run(own); !error.empty()) return error;
    return std::string(reinterpret_cast<const char*>(own.memory.data()), bytes);
  }
  std::string write(uint64_t offset, size_t bytes, char fill) {
    Own own = write_of(offset, bytes, fill);
    return run(own);
  }
  size_t submit(std::vector<Own>& all) {
    std::vector<Request*> pointers;
    for (Own& own : all) {
      own.bytes = own.memory;
      pointers.push_back(&own);
    }
    return queue.submit(pointers);
  }

  TestDevice test{kFileBytes};
  PageCache* cache = nullptr;
  File* file = nullptr;
  Servers* servers = nullptr;
  RequestQueue queue;
};

TEST_F(RequestQueueTest, ReadsWhatWasWritten) {
  EXPECT_EQ(write(10'000, 5, 'h'), "");
  EXPECT_EQ(read(9'999, 7), std::string("\0hhhhh\0", 7));
  EXPECT_EQ(write(5 * kPage - 100, 3 * kPage, 'l'), "");
  EXPECT_EQ(read(5 * kPage - 101, 3 * kPage + 2), '\0' + std::string(3 * kPage, 'l') + '\0');
  EXPECT_EQ(read(kFileBytes - 1, 2),
            "page cache: cannot read 2 bytes at offset 819199: failing has 819200 bytes");
  EXPECT_EQ(write(kFileBytes, 1, 'x'),
            "page cache: cannot write 1 bytes at offset 819200: failing has 819200 bytes");
  EXPECT_EQ(read(kFileBytes, 0), "");
}

TEST_F(RequestQueueTest, WhatIsThereNeedsNoMessageAndEndsInPoll) {
  read(3 * kPage, 1);
  const MessageCounts before = servers->counts();
  EXPECT_EQ(before.requests, 1u);
  EXPECT_EQ(before.request_messages, 1u);
  EXPECT_EQ(before.reply_messages, 1u);
  std::vector<Own> all;
  for (int i = 0; i < 10; ++i)
    all.push_back(i % 2 == 0 ? read_of(3 * kPage, 1) : write_of(3 * kPage, 1, 'w'));
  EXPECT_EQ(submit(all), 10u);
  EXPECT_EQ(queue.in_flight_count(), 10u);
  for (const Own& own : all) EXPECT_EQ(own.done_count, 0u);
  EXPECT_EQ(queue.poll(), 10u);
  for (const Own& own : all) EXPECT_EQ(own.done_count, 1u);
  EXPECT_EQ(all[8].memory[0], std::byte{'w'});
  EXPECT_EQ(servers->counts().requests, before.requests);
  EXPECT_EQ(queue.poll(), 0u);
  EXPECT_EQ(queue.wait(), 0u);
}

TEST_F(RequestQueueTest, TakesAsManyAsItMay) {
  std::vector<Own> all;
  for (uint64_t i = 0; i < 100; ++i) all.push_back(read_of(i * kPage, 8));
  EXPECT_EQ(submit(all), 64u);
  EXPECT_EQ(queue.in_flight_count(), 64u);
  // All of them went in one message, which is full.
  EXPECT_EQ(servers->counts().requests, 64u);
  EXPECT_EQ(servers->counts().request_messages, 1u);
  size_t ended = 0;
  while (ended < 64) ended += queue.wait();
  EXPECT_EQ(ended, 64u);
  EXPECT_EQ(all[63].done_count, 1u);
  EXPECT_EQ(all[64].done_count, 0u);
}

TEST_F(RequestQueueTest, AMessageThatIsNotFullGoesWhenNothingElseIsToBeDone) {
  std::vector<Own> all;
  all.push_back(read_of(0, 8));
  submit(all);
  EXPECT_EQ(servers->counts().request_messages, 0u);
  EXPECT_EQ(queue.poll(), 0u);
  EXPECT_EQ(servers->counts().request_messages, 1u);
  EXPECT_EQ(queue.wait(), 1u);
}

TEST_F(RequestQueueTest, AMessageThatIsNotFullGoesAfterSomePolls) {
  read(0, 1);
  std::vector<Own> miss, hit;
  miss.push_back(read_of(7 * kPage, 8));
  hit.push_back(read_of(0, 1));
  submit(miss);
  int polls = 0;
  for (; servers->counts().requests == 1 && polls < 100; ++polls) {
    submit(hit);
    EXPECT_EQ(queue.poll(), 1u);
  }
  EXPECT_EQ(polls, 8);
  EXPECT_EQ(queue.wait(), 1u);
}

TEST_F(RequestQueueTest, ACallbackMaySubmitAgain) {
  struct Chain : Request {
    int left = 50;
    std::byte byte = {};
  };
  Chain chain;
  chain.file = file;
  chain.bytes = {&chain.byte, 1};
  chain.done = [](Request& ended) {
    auto& self = static_cast<Chain&>(ended);
    if (--self.left == 0) return;
    self.offset += kPage;
    Request* const again[] = {&self};
    EXPECT_EQ(self.queue->submit(again), 1u);
  };
  Request* const one[] = {&chain};
  queue.submit(one);
  while (queue.wait() != 0) {
  }
  EXPECT_EQ(chain.left, 0);
  EXPECT_EQ(chain.offset, 49 * kPage);
}

TEST_F(RequestQueueTest, RunsMoreThanAreUnderWay) {
  std::vector<Own> all;
  for (uint64_t i = 0; i < kPages; ++i) all.push_back(write_of(i * kPage, kPage, static_cast<char>(i)));
  std::vector<Request*> pointers;
  for (Own& own : all) {
    own.bytes = own.memory;
    pointers.push_back(&own);
  }
  queue.run(pointers);
  EXPECT_EQ(queue.in_flight_count(), 0u);
  for (uint64_t i = 0; i < kPages; ++i) {
    EXPECT_EQ(all[i].done_count, 1u);
    EXPECT_EQ(read(i * kPage + 5, 1), std::string(1, static_cast<char>(i)));
  }
}

TEST_F(RequestQueueTest, EachIsToldWhatFailed) {
  test.device.fail(Failing::kReads, EIO, 2);
  std::vector<Own> all;
  for (uint64_t i = 0; i < 20; ++i) all.push_back(read_of(i * kPage, 8));
  submit(all);
  while (queue.wait() != 0) {
  }
  int failed = 0;
  for (uint64_t i = 0; i < all.size(); ++i) {
    if (all[i].result) continue;
    ++failed;
    EXPECT_EQ(
        std::string(all[i].result.error().message),
        "page cache: cannot read failing at offset " + std::to_string(i * kPage) + ": input/output error");
  }
  EXPECT_EQ(failed, 10);
  test.device.fail(Failing::kNothing, 0);
  // A request that is used again does not keep its old result, even if its page is in memory by now.
  for (uint64_t i = 0; i < 10; ++i) read(i * kPage, 8);
  submit(all);
  while (queue.wait() != 0) {
  }
  for (const Own& own : all) EXPECT_TRUE(own.result);
}

TEST_F(RequestQueueTest, CloseWaitsForWhatIsUnderWay) {
  std::vector<Own> all;
  for (uint64_t i = 0; i < 40; ++i) all.push_back(read_of(i * kPage, 8));
  submit(all);
  queue.close();
  for (const Own& own : all) EXPECT_EQ(own.done_count, 1u);
}

TEST_F(RequestQueueTest, AFileIsRemovedWhenTheServersHaveLeftIt) {
  EXPECT_EQ(write(1, 1, 'w'), "");
  Session session;
  session.open(*cache);
  auto removed = session.remove(*file);
  ASSERT_FALSE(removed);
  EXPECT_EQ(std::string(removed.error().message), "page cache: failing is in use by 1 other sessions");
  servers->leave(*file);
  EXPECT_TRUE(session.remove(*file));
  session.close();
  EXPECT_EQ(test.content()[1], std::byte{'w'});
}

TEST_F(RequestQueueTest, AWriteToAPageThatIsViewedWaits) {
  Session session;
  session.open(*cache);
  std::vector<Own> all;
  all.push_back(write_of(kPage, 1, 'v'));
  {
    const View view = *session.view(*file, kPage, 1);
    submit(all);
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(queue.poll(), 0u);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      EXPECT_EQ(view.bytes()[0], std::byte{0});
    }
  }
  EXPECT_EQ(queue.wait(), 1u);
  EXPECT_TRUE(all[0].result);
  EXPECT_EQ(read(kPage, 1), "v");
  session.close();
}

TEST_F(RequestQueueTest, WrongNumbersOfServersAreRefused) {
  for (const ServersOptions& options : {ServersOptions{.threads = 0}, ServersOptions{.threads = 65},
                                        ServersOptions{.tasks_each = 0}, ServersOptions{.tasks_each = 1025}})
    EXPECT_FALSE(Servers::open(*cache, options));
  EXPECT_EQ(std::string(Servers::open(*cache, {.threads = 65}).error().message),
            "page cache: servers are 1 to 64 threads with 1 to 1024 requests at a time, not 65 with 64");
}

TEST_F(RequestQueueTest, AWaitEndsWhenItsTimeHasCome) {
  EXPECT_EQ(queue.wait_until(RequestQueue::kForever), 0u) << "nothing is under way";
  // A view keeps writers from the page.
  Session session;
  session.open(*cache);
  auto view = session.view(*file, 3 * kPage, 1);
  ASSERT_TRUE(view);
  std::vector<Own> all;
  all.push_back(write_of(3 * kPage, 1, 'w'));
  EXPECT_EQ(submit(all), 1u);
  EXPECT_EQ(queue.wait_until(sys::monotonic_ns() + 20'000'000), 0u);
  EXPECT_EQ(queue.wait_until(0), 0u);
  EXPECT_EQ(all[0].done_count, 0u);
  view->reset();
  EXPECT_EQ(queue.wait_until(sys::monotonic_ns() + 60'000'000'000), 1u);
  EXPECT_EQ(all[0].done_count, 1u);
  session.close();
}

TEST_F(RequestQueueTest, AnEventTellsThatSomethingHasEnded) {
  sys::Event event;
  ASSERT_TRUE(event.open());
  const auto is_set = [&](int timeout_ms) {
    pollfd one = {.fd = event.descriptor(), .events = POLLIN, .revents = 0};
    return ::poll(&one, 1, timeout_ms) == 1;
  };
  queue.set_event(event);
  EXPECT_FALSE(is_set(0));
  for (int round = 0; round < 3; ++round) {
    std::vector<Own> all;
    all.push_back(read_of(static_cast<uint64_t>(round) * kPage, 1));
    EXPECT_EQ(submit(all), 1u);
    EXPECT_EQ(queue.poll(), 0u) << "this sends it";
    EXPECT_TRUE(is_set(60'000));
    event.clear();
    EXPECT_EQ(queue.poll(), 1u);
    EXPECT_FALSE(is_set(0));
  }
  // Also for requests that have ended before.
  std::vector<Own> all;
  all.push_back(read_of(50 * kPage, 1));
  EXPECT_EQ(submit(all), 1u);
  EXPECT_EQ(queue.poll(), 0u);
  EXPECT_TRUE(is_set(60'000));
  event.clear();
  queue.set_event(event);
  EXPECT_TRUE(is_set(0));
  EXPECT_EQ(queue.poll(), 1u);
  close();
  event.close();
}

}  // namespace
}  // namespace pagecache
