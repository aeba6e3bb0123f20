// Stores that are full, of values that leave more or less room at a segment's end: puts are refused, removes never, and what was removed or has
// expired makes room again.
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <thread>

#include "kv/media/clock.h"
#include "kv/testing/test_store.h"

namespace kv {
namespace {

struct Shape {
  size_t value_bytes_least, value_bytes_most;
  uint32_t spare_percent;
};

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << shape.value_bytes_least << " to " << shape.value_bytes_most << " bytes, "
             << shape.spare_percent << " % to spare";
}

class FullStoreTest : public StoreTest, public testing::WithParamInterface<Shape> {
 protected:
  static constexpr uint64_t kBytes = 64 << 20;

  FullStoreTest() : StoreTest(kBytes) {}
  void SetUp() override { make({.segment_bytes = 1 << 20, .spare_percent = GetParam().spare_percent}); }
  // Puts new keys until the store is full, or until keys expire, since then it never gets full. Returns how many bytes it took.
  uint64_t fill(const PutOptions& options = {}) {
    const auto& [least, most, spare] = GetParam();
    for (uint64_t bytes = 0;;) {
      const std::string key = "key" + std::to_string(next_);
      const std::string value(least + random_() % (most - least + 1), 'v');
      auto done = session.put(key, bytes_of(value), options);
      if (!done) {
        EXPECT_EQ(done.error().number, ENOSPC) << done.error().message;
        return bytes;
      }
      ++next_;
      bytes += value.size();
      if (options.expires_ms != 0 && now_ms() >= options.expires_ms) return bytes;
    }
  }
  // Removes the oldest keys.
  void remove(uint64_t count) {
    for (; count > 0; --count) {
      auto done = session.remove("key" + std::to_string(first_++));
      ASSERT_TRUE(done) << done.error().message;
      ASSERT_EQ(done->outcome, Outcome::kDone);
    }
  }
  uint64_t count() const { return next_ - first_; }

 private:
  std::mt19937_64 random_{1};
  uint64_t first_ = 0, next_ = 0;
};

TEST_P(FullStoreTest, TakesRemovesAndThenPuts) {
  const uint64_t taken = fill();
  EXPECT_GT(taken, kBytes / 2);
  for (int i = 0; i < 3; ++i) {
    remove(count() / 2);
    ASSERT_FALSE(HasFatalFailure());
    EXPECT_GT(fill(), taken / 3) << i;
    reopen();
  }
  remove(count());
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_GT(fill(), taken * 9 / 10);
}

TEST_P(FullStoreTest, ThreadsMayRemoveAtOnce) {
  fill();
  constexpr uint64_t kThreads = 4;
  const uint64_t all = count();
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      Session own;
      ASSERT_TRUE(own.open(*store));
      for (uint64_t i = thread; i < all; i += kThreads) {
        auto done = own.remove("key" + std::to_string(i));
        ASSERT_TRUE(done) << done.error().message;
      }
      own.close();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(put("key", "value"), Outcome::kDone);
}

TEST_P(FullStoreTest, HasRoomWhenAllHasExpired) {
  uint64_t life_ms = 400;
  int full = 0;  // again, before anything had expired
  for (int i = 0; i < 3 || full == 0; ++i) {
    const uint64_t expires_ms = now_ms() + life_ms;
    const uint64_t taken = fill({.expires_ms = expires_ms});
    if (now_ms() < expires_ms) {
      EXPECT_GT(taken, kBytes / 2) << i;
      full += i > 0;
    } else {  // a busy machine
      life_ms *= 2;
      ASSERT_LT(life_ms, 300'000u);
    }
    while (now_ms() <= expires_ms + 10) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, FullStoreTest,
                         testing::Values(Shape{500, 3000, 10}, Shape{131'000, 131'000, 10},
                                         Shape{1000, 1'000'000, 10}, Shape{200'000, 200'000, 10},
                                         Shape{270'000, 270'000, 20}, Shape{131'000, 131'000, 0},
                                         Shape{250'000, 900'000, 0}));

}  // namespace
}  // namespace kv
