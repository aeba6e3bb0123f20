// A store with memory for records that are in use (tier/memory_tier.h): what it has in memory needs no I/O, and is never older than what the
// device has.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <thread>
#include <vector>

#include "kv/multi_get.h"
#include "kv/multi_put.h"
#include "kv/testing/test_store.h"

namespace kv {
namespace {

constexpr uint64_t kMemory = 8 << 20;

class TierStoreTest : public StoreTest {
 protected:
  explicit TierStoreTest(uint64_t device_bytes = 128 << 20) : StoreTest(device_bytes) {}
  void SetUp() override {
    auto made = Store::make(*device, {.segment_bytes = 1 << 20});
    ASSERT_TRUE(made) << made.error().message;
    reopen();
  }
  void reopen() {
    if (store != nullptr) close();
    open({.durability = Durability::kNone, .stream_count = 2, .memory_bytes = kMemory});
  }
  uint64_t reads_of_gets() { return store->counts().use.io_for(IoFor::kGets).reads; }
  uint64_t reads_of_changes() { return store->counts().use.io_for(IoFor::kChanges).reads; }
  uint64_t from_memory() { return store->counts().use.from_memory; }
};

TEST_F(TierStoreTest, WhatWasWrittenNeedsNoRead) {
  put("key", "value");
  EXPECT_EQ(get("key"), "value");
  EXPECT_EQ(reads_of_gets(), 0u);
  EXPECT_EQ(from_memory(), 1u);
  put("key", "another");
  EXPECT_EQ(get("key"), "another");
  remove("key");
  EXPECT_EQ(get("key"), "(none)");
  EXPECT_EQ(reads_of_gets(), 0u);
  EXPECT_EQ(reads_of_changes(), 0u);  // what is replaced was there too
}

TEST_F(TierStoreTest, WhatWasReadIsNotReadAgain) {
  put("key", "value");
  put("long", std::string(MemoryTier::kMaxRecordBytes, 'l'));
  reopen();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(get("key"), "value");
  EXPECT_EQ(reads_of_gets(), 1u);
  EXPECT_EQ(from_memory(), 2u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(get("long").size(), MemoryTier::kMaxRecordBytes);
  EXPECT_EQ(reads_of_gets(), 4u);
}

TEST_F(TierStoreTest, ManyAtOnce) {
  std::vector<std::string> keys;
  for (int i = 0; i < 100; ++i) keys.push_back("key" + std::to_string(i));
  for (const std::string& key : keys) put(key, "value of " + key);
  reopen();
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  for (const uint64_t reads : {100, 100}) {
    std::vector<base::Expected<Found>> found(keys.size());
    MultiGet::get(session, views, found);
    for (size_t i = 0; i < keys.size(); ++i) {
      ASSERT_TRUE(found[i]);
      EXPECT_EQ(text_of(found[i]->value()), "value of " + keys[i]);
    }
    EXPECT_EQ(reads_of_gets(), reads);
  }
  EXPECT_EQ(from_memory(), 100u);
}

TEST_F(TierStoreTest, LargeValuesAndWhatHasExpired) {
  const std::string large(1 << 20, 'x');
  put("large", large);
  EXPECT_EQ(get("large"), large);
  put("large", "small");
  EXPECT_EQ(get("large"), "small");
  const uint64_t ends_ms = now_ms() + 50;
  put("brief", "value", {.expires_ms = ends_ms});
  while (now_ms() <= ends_ms) std::this_thread::yield();
  EXPECT_EQ(get("brief"), "(none)");
  EXPECT_GT(from_memory(), 0u);
}

TEST_F(TierStoreTest, MemoryMayBeGivenBack) {
  for (int i = 0; i < 10'000; ++i) put("key" + std::to_string(i), std::string(1000, 'v'));
  EXPECT_GT(store->counts().tier.used_bytes, kMemory / 2);
  store->set_memory(0);
  EXPECT_EQ(store->counts().tier.used_bytes, 0u);
  EXPECT_EQ(get("key9999").size(), 1000u);
  EXPECT_EQ(get("key9999").size(), 1000u);
  EXPECT_EQ(reads_of_gets(), 2u);
  store->set_memory(kMemory);
  EXPECT_EQ(get("key9999").size(), 1000u);
  EXPECT_EQ(get("key9999").size(), 1000u);
  EXPECT_EQ(reads_of_gets(), 3u);
  store->verify();
}

// Segments are written again and again: records in memory from their earlier lives are never taken for present ones.
class TierChurnTest : public TierStoreTest {
 protected:
  TierChurnTest() : TierStoreTest(14 << 20) {}
};

TEST_F(TierChurnTest, EarlierLivesOfSegmentsAreNotTaken) {
  std::mt19937_64 random(3);
  std::map<std::string, std::string> model;
  for (int step = 0; step < 60'000; ++step) {
    const std::string key = "key" + std::to_string(random() % (1 + random() % 4000));
    if (random() % 2 == 0) {
      const auto known = model.find(key);
      ASSERT_EQ(get(key), known == model.end() ? "(none)" : known->second) << step;
    } else if (random() % 8 == 0) {
      remove(key);
      model.erase(key);
    } else {
      const std::string value = std::to_string(step) + std::string(random() % 1500, 'v');
      ASSERT_EQ(put(key, value), Outcome::kDone);
      model[key] = value;
    }
  }
  const StoreCounts counts = store->counts();
  EXPECT_GT(counts.collected.victims, 20u);
  EXPECT_GT(counts.use.from_memory, 5000u);
  EXPECT_GT(counts.use.io_for(IoFor::kGets).reads, 100u);
  store->verify();
}

}  // namespace
}  // namespace kv
