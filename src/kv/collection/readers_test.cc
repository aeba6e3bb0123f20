#include "kv/collection/readers.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "kv/testing/gate_device.h"
#include "kv/testing/test_store.h"

namespace kv {
namespace {

// A read is slow after it has asked the index, while others write to the whole medium again and again, as far as they may.
TEST(ReadersTest, WhatASlowReaderReadsIsNotWrittenOver) {
  auto* const device = new GateDevice(17 << 20);
  ASSERT_TRUE(Store::make(*device, {.segment_bytes = 1 << 20}));
  Store* const store = *Store::open(*device, {.durability = Durability::kNone, .stream_count = 1});
  Session session;
  ASSERT_TRUE(session.open(*store));
  const std::string old(3000, 'o');
  ASSERT_TRUE(session.put("key", bytes_of(old)));

  std::thread reader([&] {
    Session own;
    ASSERT_TRUE(own.open(*store));
    device->hold_next_read();
    auto found = own.get("key");
    ASSERT_TRUE(found) << found.error().message;
    ASSERT_TRUE(found->found());
    EXPECT_EQ(text_of(found->value()), old);
    found = Found();
    own.close();
  });
  device->wait_until_held();
  std::atomic<uint64_t> put_count{0};
  std::atomic<bool> ends{false};
  std::thread writer([&] {
    Session own;
    ASSERT_TRUE(own.open(*store));
    const std::string value(30'000, 'n');
    for (int i = 0; i < 2000 && !ends; ++i, ++put_count)
      ASSERT_TRUE(own.put(i % 30 == 0 ? "key" : "other" + std::to_string(i % 30), bytes_of(value)));
    own.close();
  });
  // Waits until the writer has written everything, or is stuck waiting for room, which waits for the reader.
  int tries = 0;
  for (uint64_t seen = ~uint64_t{0};
       put_count != 2000 && (seen != put_count || put_count <= 100) && tries < 100; ++tries) {
    seen = put_count;
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
  EXPECT_GT(put_count, 100u);
  ends = true;
  device->let_through();
  reader.join();
  writer.join();
  session.close();
  EXPECT_TRUE(store->close());
  device->close();
}

// A large value is replaced, and its pieces are released, while its head is being read: the get finds the new value.
TEST(ReadersTest, AHeadThatWasReplacedMeanwhileIsNotBelieved) {
  auto* const device = new GateDevice(17 << 20);
  ASSERT_TRUE(Store::make(*device, {.segment_bytes = 1 << 20}));
  Store* const store = *Store::open(*device, {.durability = Durability::kNone, .stream_count = 1});
  Session session;
  ASSERT_TRUE(session.open(*store));
  ASSERT_TRUE(session.put("key", bytes_of(std::string(1'000'000, 'o'))));
  std::thread reader([&] {
    Session own;
    ASSERT_TRUE(own.open(*store));
    device->hold_next_read();
    auto found = own.get("key");
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(whole_value(own, *found), "new");
    found = Found();
    own.close();
  });
  device->wait_until_held();
  ASSERT_TRUE(session.put("key", bytes_of("new")));
  while (store->counts().index.entries > 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  device->let_through();
  reader.join();
  session.close();
  EXPECT_TRUE(store->close());
  device->close();
}

}  // namespace
}  // namespace kv
