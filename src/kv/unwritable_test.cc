// Stores on a medium that does not accept writes to one place: that affects only one segment. Puts go on, what is there can be read, the
// store can be closed and opened, and once the place accepts writes, the segment is like any other.
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <thread>

#include "kv/testing/store_image.h"
#include "kv/testing/test_store.h"
#include "storage/testing/test_cut_device.h"

namespace kv {
namespace {

constexpr uint64_t kSegmentBytes = 1 << 20;
constexpr uint64_t kBytes = 25 << 20;

void come_and_go(Session& session, int count) {
  for (int i = 0; i < count; ++i) {
    const std::string key = "queue" + std::to_string(i);
    auto done = session.put(key, bytes_of("v"));
    if (done) done = session.remove(key);
    ASSERT_TRUE(done) << i << ": " << done.error().message;
  }
}

class UnwritableTest : public testing::Test, protected StoreInUse {
 protected:
  ~UnwritableTest() override {
    if (store != nullptr) close();
    device->close();
  }
  void SetUp() override {
    ASSERT_TRUE(Store::make(*device, {.segment_bytes = kSegmentBytes}));
    open();
    put("stays", "here");
    put("goes", "away");
  }
  void open() { StoreInUse::open(*device, {.durability = Durability::kNone, .stream_count = 1}); }
  void put(const std::string& key, const std::string& value) {
    auto done = session.put(key, bytes_of(value));
    ASSERT_TRUE(done) << done.error().message;
    expected[key] = value;
  }
  void remove(const std::string& key) {
    auto done = session.remove(key);
    ASSERT_TRUE(done) << done.error().message;
    expected[key] = "";
  }
  // Puts several times what there is room for.
  void work() {
    for (int i = 0; i < 30'000; ++i)
      ASSERT_NO_FATAL_FAILURE(
          put("key" + std::to_string(i % 100), std::to_string(i) + std::string(3000, 'v')))
          << i;
  }
  void expect_all() {
    for (const auto& [key, value] : expected) {
      auto found = session.get(key);
      ASSERT_TRUE(found) << key << ": " << found.error().message;
      ASSERT_EQ(found->found() ? text_of(found->value()) : "", value) << key;
    }
  }
  void close_and_open() {
    close();
    open();
    ASSERT_NE(store, nullptr);
    expect_all();
  }
  uint64_t offset_of(uint64_t segment) const { return kSegmentsOffset + segment * kSegmentBytes; }
  uint64_t segment_of(const std::string& key) {
    return StoreImage(device->medium(1, 100)).newest(key)->segment;
  }
  // The store goes on although this place accepts no writes.
  void expect_goes_on(uint64_t offset, uint64_t put_off) {
    device->fail_writes(offset, 512);
    remove("goes");
    ASSERT_NO_FATAL_FAILURE(work());
    expect_all();
    EXPECT_LE(store->counts().log.put_off_segments, 1u);
    EXPECT_GE(store->counts().log.put_off_segments, put_off);
    EXPECT_GT(store->counts().collected.victims, 50u);
    EXPECT_EQ(store->counts().collected.damaged_records, 0u);
    EXPECT_LT(device->refused_writes(), 20u) << "is tried now and then only";
    store->verify();
    for (int life = 0; life < 3; ++life) {
      ASSERT_NO_FATAL_FAILURE(close_and_open());
      EXPECT_EQ(store->recovery().damaged_segments, 0u);
      if (life < 2) ASSERT_NO_FATAL_FAILURE(work());
    }
  }
  void expect_is_good() {
    device->fail_writes(0, 0);
    ASSERT_NO_FATAL_FAILURE(close_and_open());
    EXPECT_EQ(store->recovery().unsealed_segments, 0u);
    ASSERT_NO_FATAL_FAILURE(work());
    EXPECT_TRUE(store->compact());
    ASSERT_NO_FATAL_FAILURE(close_and_open());
    store->verify();
    EXPECT_EQ(store->counts().log.put_off_segments, 0u);
  }

  storage::CutDevice* device = new storage::CutDevice(std::vector<std::byte>(kBytes), 0);
  std::map<std::string, std::string> expected;
};

// The segment is collected like others, and used again.
TEST_F(UnwritableTest, ASummary) {
  const uint64_t segment = segment_of("stays");
  expect_goes_on(offset_of(segment + 1) - 512, 0);
  EXPECT_NE(segment_of("stays"), segment);
  expect_is_good();
}

// A start finds the segment without a summary, and knows what it holds.
TEST_F(UnwritableTest, ASummaryAtAStart) {
  const uint64_t segment = segment_of("stays");
  device->fail_writes(offset_of(segment + 1) - 512, 512);
  remove("goes");
  ASSERT_NO_FATAL_FAILURE(close_and_open());
  EXPECT_EQ(store->recovery().scanned_segments, 1u);
  EXPECT_EQ(store->recovery().unsealed_segments, 1u);
  EXPECT_EQ(store->counts().log.put_off_segments, 1u);
  ASSERT_NO_FATAL_FAILURE(work());
  EXPECT_TRUE(store->compact());
  EXPECT_NE(segment_of("stays"), segment) << "is collected";
  expect_all();
  store->verify();
  expect_is_good();
}

// The place accepted the header when the segment was opened, but does not when it is given back.
TEST_F(UnwritableTest, TheHeaderOfAnEmptiedSegment) {
  expect_goes_on(offset_of(segment_of("stays")), 1);
  expect_is_good();
}

TEST_F(UnwritableTest, TheHeaderOfAFreeSegment) {
  expect_goes_on(offset_of(12), 0);
  expect_is_good();
}

// More keys come and go than there is room for their tombstones: these end, whichever place does not accept writes.
TEST_F(UnwritableTest, KeysComeAndGo) {
  const uint64_t segment = segment_of("stays");
  for (const uint64_t offset : {offset_of(segment + 1) - 512, offset_of(segment), offset_of(12)}) {
    SCOPED_TRACE(offset);
    device->fail_writes(offset, 512);
    ASSERT_NO_FATAL_FAILURE(come_and_go(session, 60'000));
    EXPECT_GT(device->refused_writes(), 0u);
    ASSERT_NO_FATAL_FAILURE(close_and_open());
    ASSERT_NO_FATAL_FAILURE(come_and_go(session, 60'000));
    device->fail_writes(0, 0);
    ASSERT_NO_FATAL_FAILURE(close_and_open());
  }
}

// The segment of another session is the oldest of all, and does not fill up as long as that session writes nothing.
TEST(IdleStreamTest, KeysComeAndGo) {
  auto* const device = new storage::CutDevice(std::vector<std::byte>(kBytes + (8 << 20)), 0);
  ASSERT_TRUE(Store::make(*device, {.segment_bytes = kSegmentBytes}));
  Store* const store = *Store::open(*device, {.durability = Durability::kNone, .stream_count = 2});
  Session idle, session;
  ASSERT_TRUE(idle.open(*store));
  ASSERT_TRUE(session.open(*store));
  ASSERT_TRUE(idle.put("stays", bytes_of("here")));
  ASSERT_NO_FATAL_FAILURE(come_and_go(session, 100'000));
  EXPECT_GT(store->counts().collected.ended_tombstones, 50'000u);
  idle.close();
  session.close();
  ASSERT_TRUE(store->close());
  device->close();
}

// Tombstones cannot end, since what cannot be read may hold anything: the store becomes full, and says so, rather than move everything again and
// again.
TEST_F(UnwritableTest, ThatIsFullOfTombstonesSaysSo) {
  for (int i = 0; i < 2000; ++i) put("old" + std::to_string(i), std::string(300, 'o'));
  const uint64_t segment = segment_of("old1000");
  ASSERT_NO_FATAL_FAILURE(close_and_open());
  device->fail_reads(offset_of(segment) + kSegmentBytes / 2, 512);
  for (int i = 0; i < 2000; i += 2) remove("old" + std::to_string(i));
  base::Expected<Changed> done;
  for (int i = 0; i < 200'000 && done; ++i) {
    done = session.put("queue" + std::to_string(i), bytes_of("v"));
    if (done) done = session.remove("queue" + std::to_string(i));
  }
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().number, ENOSPC) << done.error().message;
  device->fail_reads(0, 0);
  ASSERT_NO_FATAL_FAILURE(close_and_open());
  ASSERT_NO_FATAL_FAILURE(come_and_go(session, 100));
}

// Even by a store that has nothing else to do.
TEST_F(UnwritableTest, ASummaryIsTriedAgain) {
  device->fail_writes(offset_of(segment_of("stays") + 1) - 512, 512);
  remove("goes");
  ASSERT_NO_FATAL_FAILURE(close_and_open());
  EXPECT_EQ(store->counts().log.put_off_segments, 1u);
  device->fail_writes(0, 0);
  for (int i = 0; store->counts().log.put_off_segments != 0; ++i) {
    ASSERT_LT(i, 3000) << "ten milliseconds each";
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(store->counts().log.sealed_segments, 1u);
  expect_all();
  store->verify();
}

// The segment that is dropped first does not accept the floor: another one does.
TEST(UnwritableCacheTest, TakesEverything) {
  auto* const device = new storage::CutDevice(std::vector<std::byte>(kBytes), 0);
  ASSERT_TRUE(Store::make(*device, {.segment_bytes = kSegmentBytes, .is_cache = true}));
  const StoreOptions options = {.durability = Durability::kNone, .stream_count = 1};
  Store* store = *Store::open(*device, options);
  Session session;
  ASSERT_TRUE(session.open(*store));
  ASSERT_TRUE(session.put("first", bytes_of("value")));
  const uint64_t segment = StoreImage(device->medium(1, 100)).newest("first")->segment;
  device->fail_writes(kSegmentsOffset + segment * kSegmentBytes, 512);
  for (int i = 0; i < 20'000; ++i) {
    const auto done = session.put("key" + std::to_string(i), bytes_of(std::string(3000, 'v')));
    ASSERT_TRUE(done) << i << ": " << done.error().message;
  }
  EXPECT_GT(device->refused_writes(), 0u);
  EXPECT_GT(store->counts().collected.dropped_records, 5000u);
  session.close();
  ASSERT_TRUE(store->close());
  store = *Store::open(*device, options);
  ASSERT_TRUE(session.open(*store));
  EXPECT_FALSE(session.get("first")->found());
  EXPECT_FALSE(session.get("key0")->found());
  EXPECT_TRUE(session.get("key19999")->found());
  session.close();
  ASSERT_TRUE(store->close());
  device->close();
}

// The bad place is where a checkpoint begins, in a segment that is free again after each try: the next try begins elsewhere.
TEST(UnwritableCheckpointTest, IsTakenElsewhere) {
  auto* const device = new storage::CutDevice(std::vector<std::byte>(kBytes), 0);
  ASSERT_TRUE(Store::make(*device, {.segment_bytes = kSegmentBytes}));
  Store* const store =
      *Store::open(*device, {.durability = Durability::kNone, .stream_count = 1, .checkpoint_records = 20});
  Session session;
  ASSERT_TRUE(session.open(*store));
  ASSERT_TRUE(session.put("key", bytes_of("value")));
  // One segment is written to, and two are ready.
  for (int i = 0; StoreImage(device->medium(1, 100)).first(SegmentState::kFree) != 3u; ++i) {
    ASSERT_LT(i, 3000) << "ten milliseconds each";
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  device->fail_writes(kSegmentsOffset + 3 * kSegmentBytes + 1024, 512);
  // So few changes that they do not need the segment.
  for (int tries = 0; store->counts().collected.checkpoints == 0; ++tries) {
    ASSERT_LT(tries, 20);
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(session.put("key" + std::to_string(i), bytes_of("value")));
    EXPECT_TRUE(store->compact());  // takes a checkpoint, if one is due
  }
  EXPECT_GT(device->refused_writes(), 0u);
  session.close();
  ASSERT_TRUE(store->close());
  device->close();
}

// Without a restart in between.
TEST_F(UnwritableTest, WhatIsPutOffIsTriedAgain) {
  const uint64_t segment = segment_of("stays");
  for (const uint64_t offset : {offset_of(12), offset_of(segment + 1) - 512}) {
    device->fail_writes(offset, 512);
    ASSERT_NO_FATAL_FAILURE(work());
    EXPECT_EQ(store->counts().log.put_off_segments, 1u);
    device->fail_writes(0, 0);
    for (int i = 0; store->counts().log.put_off_segments != 0; ++i) {
      ASSERT_LT(i, 3000) << "some ten milliseconds each";
      for (int k = 0; k < 100; ++k) put("other", std::string(3000, 'o'));
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  expect_all();
  store->verify();
}

// Reads that fail and then work say nothing about later ones, however often that happens.
TEST_F(UnwritableTest, ReadsThatFailNowAndThenAreNoDamage) {
  for (int i = 0; i < 200; ++i) put("old" + std::to_string(i), std::string(3000, 'o'));
  ASSERT_NO_FATAL_FAILURE(close_and_open());
  const uint64_t begin = offset_of(segment_of("old100"));
  for (int i = 0; i < 200; ++i)
    if (i % 4 != 0) remove("old" + std::to_string(i));
  const std::pair<uint64_t, uint64_t> places[] = {{begin + 512, kSegmentBytes / 2},
                                                  {begin + kSegmentBytes - 512, 512}};
  for (int turn = 0; turn < 10; ++turn) {
    const auto [offset, bytes] = places[turn % 2];
    device->fail_writes(kSegmentsOffset, kBytes);
    device->fail_reads(offset, bytes, 1);
    EXPECT_FALSE(store->compact()) << turn;
  }
  device->fail_writes(0, 0);
  device->fail_reads(0, 0);
  const uint64_t victims = store->counts().collected.victims;
  EXPECT_TRUE(store->compact());
  EXPECT_GT(store->counts().collected.victims, victims);
  EXPECT_EQ(store->counts().collected.damaged_records, 0u);
  expect_all();
}

}  // namespace
}  // namespace kv
