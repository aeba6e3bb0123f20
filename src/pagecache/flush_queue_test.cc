#include "pagecache/flush_queue.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace pagecache {
namespace {

class FlushQueueTest : public testing::Test, protected FlushQueue::Server {
 protected:
  void open(uint32_t executors) { ASSERT_TRUE(queue.open(*this, executors)); }
  void put(size_t begin, size_t end) {
    for (; begin < end; ++begin) queue.put(sets[begin]);
  }
  // Returns the sets' numbers.
  std::vector<size_t> take(uint32_t executor) {
    std::array<PageSet*, FlushQueue::kBatchSets> taken;
    std::vector<size_t> numbers;
    const size_t count = queue.take(executor, taken);
    for (size_t i = 0; i < count; ++i) numbers.push_back(static_cast<size_t>(taken[i] - sets.data()));
    return numbers;
  }
  size_t take_all(uint32_t executor) {
    size_t count = 0;
    while (const size_t some = take(executor).size()) count += some;
    return count;
  }

  std::vector<PageSet> sets = std::vector<PageSet>(FlushQueue::kMaxSets + 10);
  FlushQueue queue;
  std::vector<uint32_t> started;

 private:
  void start_flush(uint32_t executor) override { started.push_back(executor); }
};

using Numbers = std::vector<size_t>;

TEST_F(FlushQueueTest, ASetIsInItOnce) {
  open(1);
  put(0, 2);
  put(0, 3);
  EXPECT_FALSE(queue.is_open_for(sets[0]));
  EXPECT_EQ(take(0), (Numbers{0, 1, 2}));
  EXPECT_TRUE(queue.is_open_for(sets[0]));
  put(1, 2);
  EXPECT_EQ(take(0), Numbers{1});
  EXPECT_EQ(take(0), Numbers());
  queue.close();
}

TEST_F(FlushQueueTest, TakesNothingWhileNobodyServesIt) {
  put(0, 1);
  EXPECT_FALSE(queue.is_open_for(sets[0]));
  EXPECT_FALSE(sets[0].is_queued());
  open(1);
  EXPECT_FALSE(queue.open(*this, 1));
  put(0, 3);
  take_all(0);
  queue.close();
  put(3, 5);
  EXPECT_FALSE(sets[3].is_queued());
  open(2);
  EXPECT_TRUE(queue.is_open_for(sets[0]));
  queue.close();
}

TEST_F(FlushQueueTest, WhatDoesNotFitIsLeftOut) {
  open(1);
  put(0, sets.size());
  EXPECT_TRUE(sets[FlushQueue::kMaxSets - 1].is_queued());
  EXPECT_FALSE(sets[FlushQueue::kMaxSets].is_queued());
  EXPECT_EQ(take(0).size(), FlushQueue::kBatchSets);
  put(sets.size() - 1, sets.size());
  EXPECT_EQ(take_all(0), FlushQueue::kMaxSets - FlushQueue::kBatchSets + 1);
  queue.close();
}

TEST_F(FlushQueueTest, AsManyExecutorsAreAtWorkAsThereIsWorkFor) {
  using Executors = std::vector<uint32_t>;
  open(2);
  put(0, FlushQueue::kBatchSets);
  EXPECT_EQ(started, Executors{0});
  put(FlushQueue::kBatchSets, sets.size());
  EXPECT_EQ(started, (Executors{0, 1}));
  EXPECT_EQ(take_all(1), FlushQueue::kMaxSets);
  // The other executor is still working.
  put(0, 1);
  EXPECT_EQ(started, (Executors{0, 1}));
  EXPECT_EQ(take_all(0), 1u);
  put(0, 1);
  EXPECT_EQ(started, (Executors{0, 1, 0}));
  EXPECT_EQ(take_all(0), 1u);
  queue.close();
}

TEST_F(FlushQueueTest, CloseWaitsForExecutorsAtWork) {
  open(1);
  put(0, 20);
  EXPECT_EQ(take(0).size(), FlushQueue::kBatchSets);
  std::atomic<bool> is_closed = false;
  std::thread closes([&] {
    queue.close();
    is_closed = true;
  });
  while (queue.is_served()) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(is_closed);
  // There is nothing left to take.
  EXPECT_EQ(take(0), Numbers());
  closes.join();
  for (const PageSet& set : sets) EXPECT_FALSE(set.is_queued());
}

}  // namespace
}  // namespace pagecache
