// A store on a device that loses power, again and again: it always opens, nothing that was acknowledged is lost, nothing torn is read.
//
// Longer: SPILLWAY_CUTS=20000. A seed that fails: SPILLWAY_SEED=n SPILLWAY_CUTS=1.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "kv/clock.h"
#include "kv/cut_device.h"
#include "kv/store.h"

namespace kv {
namespace {

constexpr uint64_t kDeviceBytes = 17 << 20;
constexpr int kThreads = 3, kKeysOfThread = 40;

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* const text = getenv(name);
  return text != nullptr ? strtoull(text, nullptr, 10) : otherwise;
}

// What a key may be after the power has come back; "" is not there.
struct Expected {
  std::string acknowledged;
  std::set<std::string> possible;  // put, and not known to have been done; without kSync all since the start
};
using Model = std::map<std::string, Expected>;

std::string value_of(const std::string& key, uint64_t number, std::mt19937_64& random) {
  std::string value = key + "#" + std::to_string(number) + "#";
  // Some in pieces, of 256 KiB here.
  const size_t bytes = random() % 100 == 0 ? random() % 800'000
                       : random() % 5 == 0 ? random() % 60'000
                                           : random() % 3000;
  while (value.size() < bytes) value += std::to_string(number) + ",";
  return value;
}

class CrashTest : public testing::TestWithParam<Durability> {
 protected:
  // So many changes, or until the power goes off or the store is full. Returns whether all were made.
  bool work(Store& store, int thread, uint64_t seed, uint64_t count, Model& model) const {
    Session session;
    EXPECT_TRUE(session.open(store));
    std::mt19937_64 random(seed * kThreads + static_cast<uint64_t>(thread));
    uint64_t number = 0;
    for (; number < count; ++number) {
      const std::string key = "key" + std::to_string(thread) + "." + std::to_string(random() % kKeysOfThread);
      Expected& expected = model[key];
      const bool is_remove = random() % 4 == 0;
      const std::string value = is_remove ? "" : value_of(key, number, random);
      expected.possible.insert(value);
      // Soon it is as if it were removed, and older values do not come back.
      const bool expires = !is_remove && random() % 8 == 0;
      if (expires) expected.possible.insert("");
      const PutOptions options = {.expires_ms = expires ? now_ms() + random() % 8 : 0};
      const auto done =
          is_remove ? session.remove(key) : session.put(key, std::as_bytes(std::span(value)), options);
      if (!done) break;
      // What was there before is possible no more.
      if (GetParam() == Durability::kSync)
        expected.possible.clear();
      else
        expected.possible.insert(expected.acknowledged);
      expected.acknowledged = value;
      if (expires) expected.possible.insert("");
    }
    session.close();
    return number == count;
  }

  // Reads all keys, until the power goes off; what is there is what is expected from now on.
  void check(Store& store, CutDevice& device, Model& model) const {
    Session session;
    ASSERT_TRUE(session.open(store));
    for (auto& [key, expected] : model) {
      auto found = session.get(key);
      if (!found && device.is_off()) break;
      ASSERT_TRUE(found) << found.error().message;
      std::string value(found->found() ? found->value_bytes() : 0, '\0');
      if (!value.empty()) {
        const auto read = session.read_value(*found, 0, std::as_writable_bytes(std::span(value)));
        if (!read && device.is_off()) break;
        ASSERT_TRUE(read) << key << ": " << read.error().message;
      }
      ASSERT_TRUE(value == expected.acknowledged || expected.possible.contains(value))
          << key << " is \"" << value.substr(0, 40) << "\" of " << value.size()
          << " bytes; acknowledged was \"" << expected.acknowledged.substr(0, 40) << "\" of "
          << expected.acknowledged.size();
      // What had not expired may since.
      const bool may_expire = expected.possible.contains("");
      expected = {.acknowledged = value, .possible = {}};
      if (may_expire) expected.possible.insert("");
    }
    session.close();
  }
};

TEST_P(CrashTest, NothingIsLostThatWasPromised) {
  const uint64_t first = setting("SPILLWAY_SEED", 1), cuts = setting("SPILLWAY_CUTS", 150);
  CutDevice* device = nullptr;
  Model model;
  uint64_t segments_scanned = 0, turns = 0, victims = 0;
  for (uint64_t seed = first; seed < first + cuts; ++seed) {
    SCOPED_TRACE("SPILLWAY_SEED=" + std::to_string(seed));
    std::mt19937_64 random(seed);
    // Also while it is being opened.
    const uint64_t ends_at = 1 + random() % (seed % 3 == 0 ? 8 : 600);
    if (device == nullptr) {
      device = new CutDevice(std::vector<std::byte>(kDeviceBytes), 0);
      ASSERT_TRUE(Store::make(*device, {.segment_bytes = 1 << 20}));
      model.clear();
    }
    device->start_again(ends_at);
    auto opened = Store::open(*device, {.durability = GetParam(), .batch_ns = 1'000'000, .stream_count = 2});
    bool is_full = false;
    if (opened) {
      segments_scanned += (*opened)->recovery().scanned_segments;
      ASSERT_EQ((*opened)->recovery().lost_segments, 0u);
      check(**opened, *device, model);
      if (HasFatalFailure()) return;
      std::vector<Model> models(kThreads);
      for (const auto& [key, expected] : model) models[key[3] - '0'][key] = expected;
      std::vector<std::thread> threads;
      const uint64_t count = random() % 200;
      std::atomic<bool> has_room{true};
      for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
          if (!work(**opened, t, seed, count, models[t]) && !device->is_off()) has_room = false;
        });
      for (auto& thread : threads) thread.join();
      for (const Model& part : models)
        for (const auto& [key, expected] : part) model[key] = expected;
      ++turns;
      is_full = !has_room;
      victims += (*opened)->counts().collected.victims;
      // A store that was closed has all, whatever its durability.
      if ((*opened)->close())
        for (auto& [key, expected] : model)
          std::erase_if(expected.possible, [](const std::string& value) { return !value.empty(); });
      else
        EXPECT_TRUE(device->is_off());
    } else {
      ASSERT_TRUE(device->is_off()) << opened.error().message;
    }
    if (is_full) {
      device->close();
      device = nullptr;
    } else if (random() % 3 != 0) {
      // Else only the process has ended.
      const unsigned kept[] = {0, 50, 90, 100};
      auto* const next = new CutDevice(device->medium(seed, kept[random() % 4]), 0);
      device->close();
      device = next;
    }
  }
  if (device != nullptr) device->close();
  if (cuts >= 100) {
    EXPECT_GT(segments_scanned, cuts / 4) << "of open segments";
    EXPECT_GT(turns, cuts / 2);
    EXPECT_GT(victims, cuts / 2);
  }
}

// From its opening to its end, at each write and each flush.
TEST_P(CrashTest, ACutAtEveryWriteOfAShortLife) {
  auto* made = new CutDevice(std::vector<std::byte>(9 << 20), 0);
  ASSERT_TRUE(Store::make(*made, {.segment_bytes = 1 << 20}));
  const std::vector<std::byte> empty = made->medium(0, 0);
  made->close();
  const std::string value(2000, 'v');
  bool ended_well = false;
  for (uint64_t ends_at = 1; !ended_well; ++ends_at) {
    ASSERT_LT(ends_at, 100u);
    auto* const device = new CutDevice(empty, ends_at);
    int acknowledged_count = 0;
    if (auto opened = Store::open(*device, {.durability = GetParam(), .stream_count = 1})) {
      Session session;
      ASSERT_TRUE(session.open(**opened));
      while (acknowledged_count < 8 &&
             session.put("key" + std::to_string(acknowledged_count), std::as_bytes(std::span(value))))
        ++acknowledged_count;
      session.close();
      ended_well = (*opened)->close().has_value();
    }
    for (uint64_t seed = 0; seed < 8; ++seed) {
      SCOPED_TRACE("cut at " + std::to_string(ends_at) + ", seed " + std::to_string(seed));
      auto* const again = new CutDevice(device->medium(seed, 50), 0);
      auto opened = Store::open(*again, {});
      ASSERT_TRUE(opened) << opened.error().message;
      Session session;
      ASSERT_TRUE(session.open(**opened));
      for (int i = 0; i < 8; ++i) {
        const auto found = session.get("key" + std::to_string(i));
        ASSERT_TRUE(found) << found.error().message;
        if (ended_well || (GetParam() == Durability::kSync && i < acknowledged_count))
          EXPECT_TRUE(found->found());
        if (found->found())
          EXPECT_EQ(std::string(reinterpret_cast<const char*>(found->value().data()), found->value().size()),
                    value);
      }
      session.close();
      EXPECT_TRUE((*opened)->close());
      again->close();
    }
    device->close();
  }
}

// At kBatch nothing stays unflushed, and a store that nobody writes to does nothing.
TEST(Batch, WhatWasPutIsFlushedSoon) {
  auto* const device = new CutDevice(std::vector<std::byte>(9 << 20), 0);
  ASSERT_TRUE(Store::make(*device, {.segment_bytes = 1 << 20}));
  Store* const store =
      *Store::open(*device, {.durability = Durability::kBatch, .batch_ns = 1'000'000, .stream_count = 1});
  Session session;
  ASSERT_TRUE(session.open(*store));
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(session.put("key", {}));
    for (int tries = 0; device->unflushed_sectors() > 0; ++tries) {
      ASSERT_LT(tries, 30'000) << "a millisecond each";
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const uint64_t count = device->count();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(device->count(), count);
  session.close();
  EXPECT_TRUE(store->close());
  device->close();
}

INSTANTIATE_TEST_SUITE_P(Durabilities, CrashTest,
                         testing::Values(Durability::kSync, Durability::kBatch, Durability::kNone),
                         [](const auto& durability) {
                           return durability.param == Durability::kSync    ? "Sync"
                                  : durability.param == Durability::kBatch ? "Batch"
                                                                           : "None";
                         });

}  // namespace
}  // namespace kv
