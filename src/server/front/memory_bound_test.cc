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

// Memory of other parts of the process.
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
  // Sets the bound `more` bytes above what is resident now plus the device, and fills the store with values.
  void begin(uint64_t more) {
    most = sys::resident_bytes() + kDeviceBytes + more;
    open_with(most);
    ASSERT_TRUE(bound.open(*store, most));
    fill();
  }
  // Waits for it a while: the thread looks every kStepNs.
  template <class Condition>
  static bool comes_true(const Condition& condition) {
    for (int tries = 0; tries < 1000; ++tries) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  void fill() {
    for (uint64_t i = 0; i < kValues; ++i) put("key" + std::to_string(i), std::string(1000, 'v'));
  }
  void TearDown() override { bound.close(); }

  uint64_t most = 0;
  MemoryBound bound;
};

// A sanitizer's own memory is resident too, a multiple of ours.
#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
TEST_F(MemoryBoundTest, WhatIsLeftIsForRecords) {
  begin(40 * kMiB);
  EXPECT_TRUE(
      comes_true([&] { return store->memory_in_use() > 20 * kMiB && sys::resident_bytes() <= most; }));
}

TEST_F(MemoryBoundTest, RecordsGiveWay) {
  begin(100 * kMiB);
  const uint64_t before = store->memory_in_use();
  ASSERT_GT(before, 20 * kMiB);
  const Others some(60 * kMiB);
  EXPECT_TRUE(comes_true([&] {
    const uint64_t now = store->memory_in_use();
    return now < before && now > 0 && sys::resident_bytes() <= most;
  }));
  {
    const Others more_than_there_is(160 * kMiB);
    EXPECT_TRUE(comes_true([&] { return store->memory_in_use() == 0; }));
  }
  EXPECT_TRUE(comes_true([&] {
    put("key", "value");
    return store->memory_in_use() > 0;
  }));
}

#endif

TEST_F(MemoryBoundTest, TooLittleIsRefused) {
  open_with(kMiB);
  auto opened = bound.open(*store, kMiB);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().number, EINVAL);
  EXPECT_TRUE(std::string(opened.error().message).contains("give at least")) << opened.error().message;
}

}  // namespace
}  // namespace server
