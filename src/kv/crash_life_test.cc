// Lives that are cut where a random cut seldom is: at every write while segments are collected, a checkpoint is written and a large value
// is replaced; several in a row before the first victim is emptied; and while an index grows and shrinks.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "kv/testing/crash_model.h"
#include "kv/testing/test_check.h"
#include "kv/testing/test_effort.h"
#include "kv/testing/test_store.h"
#include "storage/testing/test_cut_device.h"

namespace kv {
namespace {

class CrashLifeTest : public testing::TestWithParam<Durability> {
 protected:
  static constexpr int kKeys = 40;

  // A store that has something to collect, and no checkpoint.
  void prepare() {
    auto* const device = new storage::CutDevice(std::vector<std::byte>(17 << 20), 0);
    ASSERT_TRUE(Store::make(*device, {.segment_bytes = 1 << 20}));
    Store* const store = *Store::open(*device, {.durability = Durability::kNone, .stream_count = 1});
    Session session;
    ASSERT_TRUE(session.open(*store));
    std::mt19937_64 random(1);
    for (int i = 0; i < 1500; ++i) change(session, "key" + std::to_string(random() % kKeys), i, random);
    change(session, "large", 4, random);
    session.close();
    ASSERT_TRUE(store->close());
    medium_ = device->medium(1, 100);
    device->close();
  }
  // Returns whether the change was made.
  bool change(Session& session, const std::string& key, int number, std::mt19937_64& random) {
    const bool is_remove = number % 5 == 0;
    std::string value = is_remove ? "" : key + "#" + std::to_string(number) + "#";
    if (!is_remove)
      value.resize(key == "large" ? 700'000 : 10 + random() % 3000, static_cast<char>('a' + number % 26));
    model_.begin(key, value, false);
    const auto done = is_remove ? session.remove(key) : session.put(key, bytes_of(value));
    if (done) model_.acknowledge(key);
    return done.has_value();
  }
  // A life with everything in it, one after the other. Returns whether it came to its end.
  bool live(storage::CutDevice& device) {
    auto opened = Store::open(
        device,
        {.durability = GetParam(), .batch_ns = 1'000'000, .stream_count = 1, .checkpoint_records = 25});
    if (!opened) return false;
    Store& store = **opened;
    Session session;
    EXPECT_TRUE(session.open(store));
    std::mt19937_64 random(2);
    bool goes_on = true;
    for (int i = 0; i < 30 && goes_on; ++i) {
      goes_on = change(session, "key" + std::to_string(random() % kKeys), i, random);
      if (i % 10 == 9) store.compact();
      if (i % 15 == 7) goes_on = goes_on && change(session, "large", i == 7 ? 7 : 22, random);
    }
    if (goes_on) {
      EXPECT_GT(store.counts().collected.victims, 2u);
      EXPECT_GT(store.counts().collected.checkpoints, 0u);
    }
    session.close();
    return store.close().has_value() && goes_on;
  }
  // Only values that the model allows are found.
  void check(Store& store, CrashModel model) const {
    Session session;
    ASSERT_TRUE(session.open(store));
    for (const std::string& key : model.keys()) {
      auto found = session.get(key);
      ASSERT_TRUE(found) << key << ": " << found.error().message;
      const std::string value = found->found() ? whole_value(session, *found) : "";
      const std::string text = model.text(key);
      ASSERT_TRUE(model.found(key, value, GetParam()))
          << key << " is \"" << value.substr(0, 30) << "\" of " << value.size() << " bytes, and was" << text;
    }
    session.close();
    store.verify();
  }

  // Recovery makes of the medium what all its records say.
  static void expect_clean(storage::CutDevice& device) {
    std::string findings;
    EXPECT_TRUE(check_of(device, findings).is_clean()) << findings;
  }

  std::vector<std::byte> medium_;
  CrashModel model_;
};

TEST_P(CrashLifeTest, ACutAtEveryWrite) {
  prepare();
  const CrashModel before = model_;
  bool ended_well = false;
  uint64_t ends_at = 0, discarded_sectors = 0;
  for (uint64_t step = setting("SPILLWAY_TEST_CUTS", 0) != 0 ? 1 : 3 * kEffortParts; !ended_well;) {
    ends_at += step;
    ASSERT_LT(ends_at, 3000u);
    model_ = before;
    auto* const device = new storage::CutDevice(medium_, ends_at);
    ended_well = live(*device);
    discarded_sectors += device->discarded_sectors();
    model_.has_lost_power(device->flushed_ns());
    for (const unsigned kept : {0, 50, 100}) {
      SCOPED_TRACE("cut at " + std::to_string(ends_at) + ", kept " + std::to_string(kept));
      auto* const again = new storage::CutDevice(device->medium(ends_at, kept), 0);
      auto opened = Store::open(*again, {.durability = Durability::kNone, .stream_count = 1});
      ASSERT_TRUE(opened) << opened.error().message;
      EXPECT_EQ((*opened)->recovery().lost_segments, 0u);
      check(**opened, model_);
      if (HasFatalFailure()) return;
      ASSERT_TRUE((*opened)->close());
      again->close();
    }
    device->close();
  }
  EXPECT_GT(ends_at, 60u) << "writes and flushes";
  EXPECT_GT(discarded_sectors, 0u);
}

// The segment that a crash leaves half filled by the collector must not stay taken: in the end there would be none to begin with.
TEST_P(CrashLifeTest, LivesThatEndBeforeAVictimIsEmptiedTakeNoRoom) {
  constexpr int kMany = 1000;
  for (const bool has_checkpoints : {false, true}) {
    SCOPED_TRACE(has_checkpoints ? "with checkpoints" : "without");
    auto* const device = new storage::CutDevice(std::vector<std::byte>(17 << 20), 0);
    ASSERT_TRUE(Store::make(*device, {.segment_bytes = 1 << 20}));
    std::mt19937_64 random(1);
    std::vector<char> is_there(kMany);  // false: not known
    uint64_t moved_bytes = 0, victims = 0;
    const auto live = [&](uint64_t ends_at, int changes) {
      device->start_again(ends_at);
      auto opened = Store::open(*device, {.durability = GetParam(),
                                          .batch_ns = 1'000'000,
                                          .stream_count = 1,
                                          .checkpoint_records = has_checkpoints ? 500u : 0u});
      if (!opened) return 0;
      Session session;
      EXPECT_TRUE(session.open(**opened));
      int count = 0;
      for (; count < changes; ++count) {
        const uint64_t number = random() % kMany;
        const std::string key = "key" + std::to_string(number);
        const bool is_put = random() % 8 != 0;
        const auto done = is_put ? session.put(key, bytes_of(key + std::string(random() % 9000, 'v')))
                                 : session.remove(key);
        is_there[number] = done && is_put;
        if (!done) break;
      }
      session.close();
      moved_bytes += (*opened)->counts().collected.moved_bytes;
      victims += (*opened)->counts().collected.victims;
      static_cast<void>((*opened)->close());
      return count;
    };
    ASSERT_EQ(live(0, 6000), 6000);
    moved_bytes = victims = 0;
    for (uint64_t life = 0; life < 120; ++life) {
      live(1 + life % 40, 50);
      device->start_again(0);
      if (life % 4 == 0) expect_clean(*device);
    }
    EXPECT_GT(moved_bytes, 0u);
    const uint64_t victims_of_short_lives = victims;
    ASSERT_EQ(live(0, 3000), 3000) << "after " << victims_of_short_lives << " victims";
    device->start_again(0);
    auto opened = Store::open(*device, {.stream_count = 1});
    ASSERT_TRUE(opened);
    Session session;
    ASSERT_TRUE(session.open(**opened));
    for (int i = 0; i < kMany; ++i) {
      auto found = session.get("key" + std::to_string(i));
      ASSERT_TRUE(found);
      if (is_there[i]) EXPECT_TRUE(found->found()) << i;
    }
    session.close();
    (*opened)->verify();
    ASSERT_TRUE((*opened)->close());
    device->close();
  }
}

// More keys than a table has slots, and fewer again, with checkpoints of tables that are being split and merged.
TEST(CrashIndex, GrowsAndShrinks) {
  constexpr uint64_t kMany = 60'000;
  auto* device = new storage::CutDevice(std::vector<std::byte>(97 << 20), 0);
  ASSERT_TRUE(Store::make(*device, {.segment_bytes = 1 << 20}));
  std::mt19937_64 random(3);
  uint64_t tables_most = 0, checkpoints_used = 0;
  // The numbers that each key may have; 0: none.
  std::vector<std::vector<uint32_t>> possible(kMany, {0});
  for (uint64_t life = 0; life < setting("SPILLWAY_TEST_LIVES", 8); ++life) {
    SCOPED_TRACE("life " + std::to_string(life));
    device->start_again(0);
    auto opened = Store::open(
        *device,
        {.durability = Durability::kNone, .stream_count = 2, .checkpoint_records = 3000 + random() % 20'000});
    ASSERT_TRUE(opened) << opened.error().message;
    Store& store = **opened;
    checkpoints_used += store.recovery().checkpoint != 0;
    Session session;
    ASSERT_TRUE(session.open(store));
    for (uint64_t i = 0; i < kMany; ++i) {
      auto found = session.get("k" + std::to_string(i));
      ASSERT_TRUE(found) << found.error().message;
      uint32_t number = 0;
      if (found->found()) memcpy(&number, found->value().data(), sizeof number);
      ASSERT_TRUE(std::ranges::find(possible[i], number) != possible[i].end())
          << "k" << i << " is " << number;
      possible[i] = {number};
    }
    // The cut may be anywhere in the life.
    device->start_again(1 + random() % 120'000);
    const bool grows = life % 6 < 3;
    for (uint32_t turn = 0; turn < 45'000; ++turn) {
      const uint64_t i = random() % kMany;
      const uint32_t number = grows ? static_cast<uint32_t>(life) * 100'000 + turn + 1 : 0;
      const std::string key = "k" + std::to_string(i);
      possible[i].push_back(number);
      const auto done = grows ? session.put(key, std::as_bytes(std::span(&number, 1))) : session.remove(key);
      if (!done) break;
      possible[i] = {number};
    }
    tables_most = std::max(tables_most, store.counts().index.tables);
    session.close();
    static_cast<void>(store.close());
    // Only the process has ended: what was acknowledged is there.
  }
  EXPECT_GT(tables_most, 1u);
  EXPECT_GT(checkpoints_used, 2u);
  device->close();
}

INSTANTIATE_TEST_SUITE_P(Durabilities, CrashLifeTest,
                         testing::Values(Durability::kSync, Durability::kBatch, Durability::kNone),
                         durability_name);

}  // namespace
}  // namespace kv
