#include "kv/multi_get.h"

#include <gtest/gtest.h>

#include <cstring>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "kv/testing/test_store.h"
#include "task/test_tasks.h"

namespace kv {
namespace {

// A device in memory whose Ios end when it is polled, and which counts how many were under way together.
class HoldingDevice final : public storage::Device {
 public:
  explicit HoldingDevice(size_t bytes) : medium_(bytes) {
    capacity_bytes_ = bytes;
    counted_ = false;
  }

  std::atomic<size_t> reads{0}, most_reads{0};
  std::atomic<int> read_error{0};
  void damage(std::string_view text) {
    std::lock_guard scope(lock_);
    auto* found = static_cast<std::byte*>(memmem(medium_.data(), medium_.size(), text.data(), text.size()));
    ASSERT_NE(found, nullptr);
    *found ^= std::byte{1};
  }

 private:
  class HoldingQueue final : public storage::Queue {
   public:
    HoldingQueue(HoldingDevice& device, size_t depth) : Queue(device, depth), own_(device) {}

   private:
    void do_start(storage::Io& io) override { held_.push_back(&io); }
    void do_poll(bool) override {
      size_t count = 0;
      for (storage::Io* io : held_) count += io->operation == storage::Operation::kRead;
      own_.reads += count;
      own_.most_reads = std::max(own_.most_reads.load(), count);
      for (storage::Io* io : held_) {
        own_.perform(*io);
        complete(*io);
      }
      held_.clear();
    }
    void do_close() override { delete this; }

    HoldingDevice& own_;
    std::vector<storage::Io*> held_;
  };

  base::Expected<storage::Queue*> do_open_queue(size_t depth, const storage::QueueUse&) override {
    return new HoldingQueue(*this, depth);
  }
  void do_close() override { delete this; }

  void perform(storage::Io& io) {
    std::lock_guard scope(lock_);
    const bool is_read = io.operation == storage::Operation::kRead;
    io.error = is_read ? read_error.load() : 0;
    if (io.error != 0) return;
    io.transferred_bytes = io.length_bytes;
    std::byte* at = &medium_[io.offset_bytes];
    for (uint32_t i = 0; i < io.segment_count; ++i) {
      const iovec& segment = io.segments[i];
      memcpy(is_read ? segment.iov_base : at, is_read ? at : segment.iov_base, segment.iov_len);
      at += segment.iov_len;
    }
  }

  std::mutex lock_;
  std::vector<std::byte> medium_;
};

class MultiGetTest : public testing::Test {
 protected:
  MultiGetTest() {
    EXPECT_TRUE(Store::make(*device, {.segment_bytes = 1 << 20}));
    store = *Store::open(*device, {.durability = Durability::kNone, .stream_count = 1});
  }
  ~MultiGetTest() override {
    EXPECT_TRUE(store->close());
    device->close();
  }
  // Values of several sizes, under key0, key1 and so on.
  static std::string value_of(int i) { return "value" + std::to_string(i) + std::string(i % 7 * 300, 'v'); }
  void put(int count) {
    for (int i = 0; i < count; ++i)
      ASSERT_TRUE(session.put("key" + std::to_string(i), bytes_of(value_of(i))));
  }
  // Gets key0 to key<count - 1>; those from key<there> on do not exist.
  void expect(int count, int there) {
    std::vector<std::string> texts;
    for (int i = 0; i < count; ++i) texts.push_back("key" + std::to_string(i));
    const std::vector<std::string_view> keys(texts.begin(), texts.end());
    std::vector<base::Expected<Found>> results(keys.size());
    MultiGet::get(session, keys, results);
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(results[i]) << results[i].error().message;
      ASSERT_EQ(results[i]->found(), i < there) << i;
      if (i < there) ASSERT_EQ(text_of(results[i]->value()), value_of(i));
    }
  }

  HoldingDevice* device = new HoldingDevice(64 << 20);
  Store* store;
  Session session;
};

TEST_F(MultiGetTest, AThreadsReadsAreUnderWayTogether) {
  ASSERT_TRUE(session.open(*store));
  put(200);
  device->reads = device->most_reads = 0;
  expect(210, 200);
  EXPECT_EQ(device->most_reads, MultiGet::kGroup);
  EXPECT_EQ(device->reads, 200u) << "one I/O for each";
  expect(0, 0);
  expect(1, 1);
  session.close();
}

TEST_F(MultiGetTest, ATasksReadsAreUnderWayTogether) {
  task::Scheduler scheduler;
  ASSERT_TRUE(scheduler.open({.worker_count = 1, .stack_bytes = task::kTestStackBytes}));
  auto main = [&] {
    ASSERT_TRUE(session.open(*store));
    put(100);
    device->reads = device->most_reads = 0;
    expect(101, 100);
    session.close();
  };
  ASSERT_TRUE(scheduler.run(task::calls("main", main)));
  scheduler.close();
  EXPECT_EQ(device->most_reads, MultiGet::kGroup);
  EXPECT_EQ(device->reads, 100u);
}

TEST_F(MultiGetTest, OnlyAsManyAreReadAsAreAskedForInBytes) {
  ASSERT_TRUE(session.open(*store));
  for (const char* key : {"key0", "key1", "key2"})
    ASSERT_TRUE(session.put(key, bytes_of(std::string(100'000, 'v'))));
  const std::string_view keys[] = {"none", "key0", "key1", "key2"};
  base::Expected<Found> results[std::size(keys)];
  device->reads = 0;
  EXPECT_EQ(MultiGet::get_some(session, keys, results, 250'000), 3u);
  EXPECT_EQ(device->reads, 2u);
  EXPECT_FALSE(results[0]->found());
  EXPECT_EQ(results[1]->value_bytes(), 100'000u);
  EXPECT_EQ(results[2]->value_bytes(), 100'000u);
  EXPECT_EQ(MultiGet::get_some(session, keys, results, 1), 1u) << "what is not there needs no bytes";
  EXPECT_EQ(MultiGet::get_some(session, std::span(keys).last(2), std::span(results).last(2), 1), 1u);
  EXPECT_EQ(results[2]->value_bytes(), 100'000u);
  EXPECT_EQ(MultiGet::get_some(session, {}, {}, 1), 0u);
  for (auto& result : results) result = Found();
  session.close();
}

TEST_F(MultiGetTest, EachKeyHasAResultOfItsOwn) {
  ASSERT_TRUE(session.open(*store));
  put(3);
  ASSERT_TRUE(session.put("expired", bytes_of("x"), {.expires_ms = 1}));
  ASSERT_TRUE(session.put("expires", bytes_of("y"), {.expires_ms = uint64_t{1} << 47, .flags = 7}));
  device->damage(value_of(1));
  const std::string_view keys[] = {"key0", "key1", "", "key2", "expired", "expires", "key0"};
  base::Expected<Found> results[std::size(keys)];
  MultiGet::get(session, keys, results);
  EXPECT_EQ(text_of(results[0]->value()), value_of(0));
  EXPECT_EQ(results[1].error().number, EBADMSG);
  EXPECT_EQ(results[2].error().number, EINVAL);
  EXPECT_EQ(text_of(results[3]->value()), value_of(2));
  EXPECT_FALSE(results[4]->found());
  EXPECT_EQ(text_of(results[5]->value()), "y");
  EXPECT_EQ(results[5]->flags(), 7u);
  EXPECT_EQ(text_of(results[6]->value()), value_of(0));
  for (auto& result : results) result = Found();
  device->read_error = ENODEV;
  device->reads = 0;
  MultiGet::get(session, keys, results);
  EXPECT_EQ(device->reads, 6u) << "what failed is not read again";
  EXPECT_EQ(results[0].error().number, ENODEV);
  EXPECT_NE(std::string_view(results[0].error().message).find("cannot read"), std::string_view::npos);
  device->read_error = 0;
  for (auto& result : results) result = Found();
  session.close();
}

// Records stay in place until they have been read, although everything is moved and overwritten all the time.
TEST(MultiGetThreads, ReadWhatIsCollectedMeanwhile) {
  auto* const device = new HoldingDevice(12 << 20);
  ASSERT_TRUE(Store::make(*device, {.segment_bytes = 1 << 20}));
  Store* const store = *Store::open(*device, {.durability = Durability::kNone, .stream_count = 1});
  constexpr int kKeys = 300;
  std::vector<std::string> texts;
  for (int i = 0; i < kKeys; ++i) texts.push_back("key" + std::to_string(i) + ":");
  const auto write = [&](int rounds) {
    Session own;
    ASSERT_TRUE(own.open(*store));
    std::mt19937_64 random(1);
    for (int i = 0; i < rounds * kKeys; ++i) {
      const std::string& key = texts[i < kKeys ? i : random() % kKeys];
      ASSERT_TRUE(own.put(key, bytes_of(key + std::string(random() % 8000, 'v'))));
    }
    own.close();
  };
  write(1);
  std::atomic<bool> stops{false};
  std::thread writer([&] {
    write(200);
    stops = true;
  });
  Session session;
  ASSERT_TRUE(session.open(*store));
  const std::vector<std::string_view> keys(texts.begin(), texts.end());
  std::vector<base::Expected<Found>> results(kKeys);
  do {
    MultiGet::get(session, keys, results);
    for (int i = 0; i < kKeys; ++i) {
      ASSERT_TRUE(results[i]) << results[i].error().message;
      ASSERT_TRUE(results[i]->found()) << texts[i];
      ASSERT_EQ(text_of(results[i]->value()).substr(0, texts[i].size()), texts[i]);
      results[i] = Found();
    }
  } while (!stops);
  writer.join();
  EXPECT_GT(store->counts().collected.victims, 20u);
  session.close();
  ASSERT_TRUE(store->close());
  device->close();
}

}  // namespace
}  // namespace kv
