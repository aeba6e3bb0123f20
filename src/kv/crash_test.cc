// A store on a device that loses power, again and again: it always opens, nothing that was acknowledged is lost, nothing torn is read.
//
// Longer: SPILLWAY_TEST_CUTS=20000. A seed that fails: SPILLWAY_TEST_SEED=n SPILLWAY_TEST_CUTS=1.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "kv/media/clock.h"
#include "kv/multi_get.h"
#include "kv/multi_put.h"
#include "kv/store.h"
#include "kv/testing/crash_model.h"
#include "kv/testing/medium_device.h"
#include "kv/testing/test_effort.h"
#include "storage/testing/test_cut_device.h"

namespace kv {
namespace {

constexpr uint64_t kDeviceBytes = 17 << 20;
constexpr int kThreads = 3;

std::string value_of(const std::string& key, uint64_t number, std::mt19937_64& random) {
  std::string value = key + "#" + std::to_string(number) + "#";
  // Some are large values, with pieces of 256 KiB here.
  const size_t bytes = random() % 100 == 0 ? random() % 800'000
                       : random() % 5 == 0 ? random() % 60'000
                                           : random() % 3000;
  while (value.size() < bytes) value += std::to_string(number) + ",";
  return value;
}

class CrashTest : public testing::TestWithParam<Durability> {
 protected:
  // Makes `count` changes, unless power fails or the store is full. Returns whether all were made.
  bool work(Store& store, int thread, uint64_t seed, uint64_t count, CrashModel& model) const {
    Session session;
    EXPECT_TRUE(session.open(store));
    std::mt19937_64 random(seed * kThreads + static_cast<uint64_t>(thread));
    uint64_t number = 0;
    for (; number < count; ++number) {
      const std::string key =
          "key" + std::to_string(thread) + "." + std::to_string(random() % keys_of_thread_);
      if (random() % 60 == 0) abandon(session, key);
      if (random() % 16 == 0) {
        if (!put_many(session, thread, number, random, model)) break;
        continue;
      }
      const bool is_remove = random() % 4 == 0;
      const std::string value = is_remove ? "" : value_of(key, number, random);
      // Soon the key is as if it were removed, and older values do not come back.
      const bool expires = !is_remove && random() % 8 == 0;
      model.begin(key, value, expires);
      const PutOptions options = {.expires_ms = expires ? now_ms() + random() % 8 : 0};
      const auto done = is_remove ? session.remove(key) : session.put(key, bytes_of(value), options);
      if (!done) break;
      model.acknowledge(key);
    }
    session.close();
    return number == count;
  }

  // Puts some of a thread's keys together, each once. False: not all were put.
  bool put_many(Session& session, int thread, uint64_t number, std::mt19937_64& random,
                CrashModel& model) const {
    std::vector<std::string> keys, values;
    for (uint64_t i = random() % 3; i < keys_of_thread_ && keys.size() < 20; i += 1 + random() % 5) {
      keys.push_back("key" + std::to_string(thread) + "." + std::to_string(i));
      values.push_back(value_of(keys.back(), number, random));
      model.begin(keys.back(), values.back(), false);
    }
    std::vector<MultiPut::Put> puts;
    for (size_t i = 0; i < keys.size(); ++i) puts.push_back({.key = keys[i], .value = bytes_of(values[i])});
    std::vector<base::Expected<Changed>> results(puts.size());
    MultiPut::put(session, puts, results);
    for (size_t i = 0; i < keys.size(); ++i)
      if (results[i]) model.acknowledge(keys[i]);
    return std::ranges::all_of(results, [](const auto& result) { return result.has_value(); });
  }

  // A value that is begun in parts, and never committed.
  static void abandon(Session& session, const std::string& key) {
    ValueWriter writer;
    if (!writer.open(session, key)) return;
    const std::string part(600'000, 'a');
    static_cast<void>(writer.append(bytes_of(part)));
  }

  // Reads all keys, many at a time, until power fails; what is found is what is expected from now on.
  void check(Store& store, storage::CutDevice& device, CrashModel& model) const {
    Session session;
    ASSERT_TRUE(session.open(store));
    const std::vector<std::string> keys = model.keys();
    const std::vector<std::string_view> views(keys.begin(), keys.end());
    std::vector<base::Expected<Found>> all(keys.size());
    MultiGet::get(session, views, all);
    for (size_t i = 0; i < keys.size(); ++i) {
      auto& found = all[i];
      if (!found && device.is_off()) continue;
      ASSERT_TRUE(found) << keys[i] << ": " << found.error().message;
      std::string value(found->value_bytes(), '\0');
      if (!value.empty()) {
        const auto read = session.read_value(*found, 0, std::as_writable_bytes(std::span(value)));
        if (!read && (device.is_off() || read.error().number == ESTALE)) continue;
        ASSERT_TRUE(read) << keys[i] << ": " << read.error().message;
      }
      const std::string text = model.text(keys[i]);
      ASSERT_TRUE(model.found(keys[i], value, GetParam(), is_cache_))
          << keys[i] << " is \"" << value.substr(0, 40) << "\" of " << value.size() << " bytes, and was"
          << text;
    }
    all.clear();
    session.close();
    if (!device.is_off()) model.start_again();
  }

  void live_again_and_again();

  // A cache may have dropped anything, and is given more than it has room for.
  bool is_cache_ = false;
  uint64_t device_bytes_ = kDeviceBytes;
  uint64_t keys_of_thread_ = 40, changes_most_ = 200;
};

void CrashTest::live_again_and_again() {
  const uint64_t first = setting("SPILLWAY_TEST_SEED", 1),
                 cuts = setting("SPILLWAY_TEST_CUTS", 150 / kEffortParts);
  storage::CutDevice* device = nullptr;
  CrashModel model;
  uint64_t segments_scanned = 0, turns = 0, victims = 0, dropped = 0, checkpoints_used = 0,
           tombstones_ended = 0;
  uint64_t failed_flushes = 0;
  for (uint64_t seed = first; seed < first + cuts; ++seed) {
    SCOPED_TRACE("SPILLWAY_TEST_SEED=" + std::to_string(seed));
    std::mt19937_64 random(seed);
    // Maybe while it is being opened.
    const uint64_t ends_at = 1 + random() % (seed % 3 == 0 ? 8 : 600);
    if (device == nullptr) {
      device = new storage::CutDevice(std::vector<std::byte>(device_bytes_), 0);
      ASSERT_TRUE(Store::make(*device, {.segment_bytes = 1 << 20, .is_cache = is_cache_}));
      model = {};
    }
    device->start_again(ends_at);
    if (seed % 4 == 0) device->fail_flush(random() % 60);
    // Half of the lives have checkpoints.
    const uint64_t checkpoint_records = seed % 2 == 0 ? 0 : 20 + random() % 200;
    auto opened = Store::open(*device, {.durability = GetParam(),
                                        .batch_ns = 1'000'000,
                                        .stream_count = 2,
                                        .checkpoint_records = checkpoint_records,
                                        .memory_bytes = random() % 2 == 0 ? 0 : uint64_t{4} << 20});
    bool is_full = false;
    if (opened) {
      segments_scanned += (*opened)->recovery().scanned_segments;
      checkpoints_used += (*opened)->recovery().checkpoint != 0 && (*opened)->recovery().replayed_records > 0;
      ASSERT_EQ((*opened)->recovery().lost_segments, 0u);
      check(**opened, *device, model);
      if (HasFatalFailure()) return;
      std::vector<CrashModel> models;
      for (int t = 0; t < kThreads; ++t)
        models.push_back(model.part([t](const std::string& key) { return key[3] - '0' == t; }));
      std::vector<std::thread> threads;
      const uint64_t count = random() % changes_most_;
      std::atomic<bool> has_room{true};
      for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
          if (!work(**opened, t, seed, count, models[t]) && !device->is_off() && !device->has_failed_flush())
            has_room = false;
        });
      for (auto& thread : threads) thread.join();
      for (const CrashModel& part : models) model.take(part);
      ++turns;
      is_full = !has_room;
      if (is_cache_) ASSERT_FALSE(is_full) << "a cache takes everything";
      victims += (*opened)->counts().collected.victims;
      dropped += (*opened)->counts().collected.dropped_records;
      tombstones_ended += (*opened)->counts().collected.ended_tombstones;
      // A store that was closed has everything on the medium: its last flush is after all changes.
      if (!(*opened)->close()) EXPECT_TRUE(device->is_off() || device->has_failed_flush());
    } else {
      ASSERT_TRUE(device->is_off() || device->has_failed_flush()) << opened.error().message;
    }
    // What a failed flush has lost shows only after power has failed.
    const bool is_cut = device->has_failed_flush() || random() % 3 != 0;
    failed_flushes += device->has_failed_flush();
    if (is_full) {
      device->close();
      device = nullptr;
    } else if (is_cut) {
      // If not, only the process has ended.
      model.has_lost_power(device->flushed_ns());
      const unsigned kept[] = {0, 50, 90, 100};
      auto* const next = new storage::CutDevice(device->medium(seed, kept[random() % 4]), 0);
      device->close();
      device = next;
    }
  }
  if (device != nullptr) device->close();
  if (cuts >= 50) {
    EXPECT_GT(segments_scanned, cuts / 4) << "of open segments";
    EXPECT_GT(turns, cuts / 2);
    EXPECT_GT(victims, cuts / 2);
    EXPECT_GT(checkpoints_used, cuts / 4);
    EXPECT_GT(tombstones_ended, cuts);
    if (is_cache_) EXPECT_GT(dropped, cuts);
    EXPECT_GT(failed_flushes, cuts / 20);
  }
}

TEST_P(CrashTest, NothingIsLostThatWasPromised) { live_again_and_again(); }

TEST_P(CrashTest, ACacheHasNothingOld) {
  is_cache_ = true;
  device_bytes_ = 34 << 20;  // so that two segments are filled at a time
  keys_of_thread_ = 800;
  changes_most_ = 1000;
  live_again_and_again();
}

// At each write and each flush, from its opening to its end.
TEST_P(CrashTest, ACutAtEveryWriteOfAShortLife) {
  auto* made = new storage::CutDevice(std::vector<std::byte>(9 << 20), 0);
  ASSERT_TRUE(Store::make(*made, {.segment_bytes = 1 << 20}));
  const std::vector<std::byte> empty = made->medium(0, 0);
  made->close();
  const std::string value(2000, 'v');
  bool ended_well = false;
  for (uint64_t ends_at = 1; !ended_well; ++ends_at) {
    ASSERT_LT(ends_at, 100u);
    auto* const device = new storage::CutDevice(empty, ends_at);
    int acknowledged_count = 0;
    if (auto opened = Store::open(*device, {.durability = GetParam(), .stream_count = 1})) {
      Session session;
      ASSERT_TRUE(session.open(**opened));
      while (acknowledged_count < 8 &&
             session.put("key" + std::to_string(acknowledged_count), bytes_of(value)))
        ++acknowledged_count;
      session.close();
      ended_well = (*opened)->close().has_value();
    }
    for (uint64_t seed = 0; seed < 8 / kEffortParts; ++seed) {
      SCOPED_TRACE("cut at " + std::to_string(ends_at) + ", seed " + std::to_string(seed));
      auto* const again = new storage::CutDevice(device->medium(seed, 50), 0);
      auto opened = Store::open(*again, {});
      ASSERT_TRUE(opened) << opened.error().message;
      Session session;
      ASSERT_TRUE(session.open(**opened));
      for (int i = 0; i < 8; ++i) {
        const auto found = session.get("key" + std::to_string(i));
        ASSERT_TRUE(found) << found.error().message;
        if (ended_well || (GetParam() == Durability::kSync && i < acknowledged_count))
          EXPECT_TRUE(found->found());
        if (found->found()) EXPECT_EQ(text_of(found->value()), value);
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
  auto* const device = new storage::CutDevice(std::vector<std::byte>(9 << 20), 0);
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
  // The store's threads may be late.
  uint64_t count = 0;
  for (int tries = 0; count != device->count(); ++tries) {
    ASSERT_LT(tries, 600) << "fifty milliseconds each";
    count = device->count();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  session.close();
  EXPECT_TRUE(store->close());
  device->close();
}

// A file with holes: giving a segment room, in eight writes, takes a while.
class HolesDevice final : public MediumDevice {
 public:
  HolesDevice() : MediumDevice(std::vector<std::byte>(17 << 20)) {}
  std::atomic<uint64_t> fills{0}, flushes{0};
  std::atomic<uint64_t> fills_at_flush{0};  // at the last one

 private:
  bool do_has_room_at(uint64_t, uint64_t) const override { return false; }
  int before(const storage::Io& io) override {
    if (io.operation == storage::Operation::kFlush) {
      fills_at_flush = fills.load();
      ++flushes;
    }
    if (io.operation != storage::Operation::kWrite || io.length_bytes <= 65536) return 0;
    ++fills;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return 0;
  }
};

// The keeper both flushes batches and prepares segments.
TEST(Batch, WhatWasPutIsFlushedWhileASegmentIsGivenRoom) {
  auto* const device = new HolesDevice;
  ASSERT_TRUE(Store::make(*device, {.segment_bytes = 1 << 20}));
  Store* const store =
      *Store::open(*device, {.durability = Durability::kBatch, .batch_ns = 1'000'000, .stream_count = 1});
  Session session;
  ASSERT_TRUE(session.open(*store));
  // Again if the put's flush came before the put was seen to end.
  uint64_t fills = 0;
  bool is_flushed = false;
  for (int puts = 0; !is_flushed; ++puts) {
    ASSERT_LT(puts, 10);
    ASSERT_TRUE(session.put("key", {}));
    fills = device->fills;
    const uint64_t flushes = device->flushes;
    for (int tries = 0; !is_flushed && tries < 3000; ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      is_flushed = device->flushes != flushes;
    }
  }
  EXPECT_LT(device->fills_at_flush, fills + 6);
  session.close();
  EXPECT_TRUE(store->close());
  device->close();
}

// A client that knows a version which a power cut has taken never finds something else under it.
TEST(PowerCut, NoVersionIsGivenOutAgain) {
  auto* device = new storage::CutDevice(std::vector<std::byte>(9 << 20), 0);
  ASSERT_TRUE(Store::make(*device, {.segment_bytes = 1 << 20}));
  uint64_t last = 0;
  for (uint64_t life = 0; life < 3; ++life) {
    Store* const store = *Store::open(*device, {.durability = Durability::kNone, .stream_count = 1});
    Session session;
    ASSERT_TRUE(session.open(*store));
    // Until there is something for the power cut to take.
    for (int i = 0; i < 20 || device->unflushed_sectors() == 0; ++i) {
      ASSERT_LT(i, 10'000);
      const auto done = session.put("key" + std::to_string(i), {});
      ASSERT_TRUE(done) << done.error().message;
      ASSERT_GT(done->version, last) << life;
      last = done->version;
      // Waits until the next segment has been prepared, which flushes.
      if (i == 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    auto* const next = new storage::CutDevice(device->medium(life, 0), 0);
    session.close();
    EXPECT_TRUE(store->close());
    device->close();
    device = next;
  }
  device->close();
}

INSTANTIATE_TEST_SUITE_P(Durabilities, CrashTest,
                         testing::Values(Durability::kSync, Durability::kBatch, Durability::kNone),
                         durability_name);

}  // namespace
}  // namespace kv
