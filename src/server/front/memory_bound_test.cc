#include "server/front/memory_bound.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "kv/testing/test_store.h"
#include "sys/memory.h"

namespace server {
namespace {

constexpr uint64_t kMiB = 1 << 20;

// The test's device is in memory, too.
constexpr uint64_t kValues = 40'000, kDeviceBytes = 64 * kMiB;

// Somebody else's memory.
class Others {
 public:
  explicit Others(uint64_t bytes) : bytes_(bytes), memory_(*sys::map_anonymous(bytes, "a test")) {
    memset(memory_, 'x', bytes);
  }
  ~Others() { sys::unmap(memory_, bytes_); }
  Others(const Others&) = delete;
  Others& operator=(const Others&) = delete;

 private:
  uint64_t bytes_;
  char* memory_;
};

class MemoryBoundTest : public kv::StoreTest {
 protected:
  void open_with(uint64_t bytes) {
    ASSERT_TRUE(kv::Store::make(*device, {}));
    open({.durability = kv::Durability::kNone, .stream_count = 1, .memory_bytes = bytes});
  }
  // For some steps.
  static void wait() { std::this_thread::sleep_for(std::chrono::nanoseconds(5 * MemoryBound::kStepNs)); }
  void fill() {
    for (uint64_t i = 0; i < kValues; ++i) put("key" + std::to_string(i), std::string(1000, 'v'));
  }
};

// A sanitizer's own memory is resident too, a multiple of ours.
#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
TEST_F(MemoryBoundTest, WhatIsLeftIsForRecords) {
  const uint64_t most = sys::resident_bytes() + kDeviceBytes + 40 * kMiB;
  open_with(most);
  MemoryBound bound;
  ASSERT_TRUE(bound.open(*store, most));
  fill();
  wait();
  EXPECT_GT(store->memory_in_use(), 20 * kMiB);
  EXPECT_LE(sys::resident_bytes(), most);
}

TEST_F(MemoryBoundTest, RecordsGiveWay) {
  const uint64_t most = sys::resident_bytes() + kDeviceBytes + 100 * kMiB;
  open_with(most);
  MemoryBound bound;
  ASSERT_TRUE(bound.open(*store, most));
  fill();
  const uint64_t before = store->memory_in_use();
  ASSERT_GT(before, 20 * kMiB);
  const Others some(60 * kMiB);
  wait();
  EXPECT_LT(store->memory_in_use(), before);
  EXPECT_GT(store->memory_in_use(), 0u);
  EXPECT_LE(sys::resident_bytes(), most);
  {
    const Others more_than_there_is(160 * kMiB);
    wait();
    EXPECT_EQ(store->memory_in_use(), 0u);
  }
  wait();
  put("key", "value");
  EXPECT_GT(store->memory_in_use(), 0u);
}

#endif

TEST_F(MemoryBoundTest, TooLittleIsRefused) {
  open_with(kMiB);
  MemoryBound bound;
  auto opened = bound.open(*store, kMiB);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().number, EINVAL);
  EXPECT_TRUE(std::string(opened.error().message).contains("give at least")) << opened.error().message;
}

}  // namespace
}  // namespace server
