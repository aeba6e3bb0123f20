// Stores on a medium that cannot be read in part: they open, count what cannot be read, have all that is elsewhere, and go on; and once it can be
// read again, nothing in it is lost, and nothing that was changed meanwhile comes back.
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <random>
#include <thread>

#include "kv/multi_get.h"
#include "kv/snapshot.h"
#include "kv/testing/store_image.h"
#include "kv/testing/test_store.h"
#include "storage/testing/test_cut_device.h"

namespace kv {
namespace {

constexpr uint64_t kBytes = 25 << 20;
constexpr int kKeys = 900;

using Texts = std::map<std::string, std::string>;

std::string key_of(int i) { return "key" + std::to_string(i); }

// Without, and with, a checkpoint that knows everything.
class UnreadableTest : public testing::TestWithParam<bool>, protected StoreInUse {
 protected:
  ~UnreadableTest() override {
    if (store != nullptr) close();
    device->close();
  }
  void open(const std::string& expected_error = "") {
    const StoreOptions options = {.durability = Durability::kNone,
                                  .stream_count = 1,
                                  .checkpoint_records = GetParam() ? 1'000'000u : 0};
    if (expected_error.empty()) {
      StoreInUse::open(*device, options);
      return;
    }
    auto opened = Store::open(*device, options);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().message, expected_error);
  }
  void put(int i, const std::string& value) {
    auto done = session.put(key_of(i), bytes_of(value));
    ASSERT_TRUE(done) << done.error().message;
    expected[key_of(i)] = value;
  }
  void remove(int i) {
    auto done = session.remove(key_of(i));
    ASSERT_TRUE(done) << done.error().message;
    expected.erase(key_of(i));
  }
  // Puts keys into several sealed segments.
  void fill() {
    ASSERT_TRUE(Store::make(*device, {.segment_bytes = 1 << 20}));
    open();
    for (int i = 0; i < kKeys; ++i) put(i, "first " + std::string(4000 + i, 'f'));
    for (int i = 0; i < kKeys; i += 3) put(i, "second " + std::string(2000 + i, 's'));
    for (int i = 0; i < kKeys; i += 10) remove(i);
    close();
    image.emplace(device->medium(1, 100));
    for (const auto& [key, value] : expected) where[key] = image->newest(key)->segment;
    victim = where.at("key502");
  }
  void make_unreadable(uint64_t offset, uint64_t bytes) { device->fail_reads(offset, bytes); }
  // Keys elsewhere are there. Returns how many of those in `victim` have known values, have errors, and are missing.
  std::array<int, 3> expect_others() {
    std::array<int, 3> counts = {};
    for (int i = 0; i < kKeys; ++i) {
      const std::string key = key_of(i);
      auto found = session.get(key);
      if (where.contains(key) && where[key] == victim && !changed.contains(key)) {
        if (!found) EXPECT_EQ(found.error().number, EIO);
        ++counts[!found ? 1 : found->found() ? 0 : 2];
        continue;
      }
      EXPECT_TRUE(found) << key << ": " << found.error().message;
      if (!found) continue;
      EXPECT_EQ(found->found(), expected.contains(key)) << key;
      if (found->found() && expected.contains(key))
        EXPECT_TRUE(text_of(found->value()) == expected[key]) << key;
    }
    return counts;
  }
  void expect_all() {
    victim = Log::kNone;
    expect_others();
  }
  void change(int i, const std::string& value) {
    changed[key_of(i)] = value;
    if (value.empty())
      remove(i);
    else
      put(i, value);
  }

  storage::CutDevice* device = new storage::CutDevice(std::vector<std::byte>(kBytes), 0);
  Texts expected, changed;
  std::map<std::string, uint32_t> where;
  std::optional<StoreImage> image;
  uint32_t victim = Log::kNone;
};

TEST_P(UnreadableTest, AWholeSegment) {
  fill();
  make_unreadable(image->begin_of(victim), 1 << 20);
  open();
  EXPECT_EQ(store->recovery().unreadable_segments, 1u);
  EXPECT_EQ(store->recovery().lost_segments, 0u);
  EXPECT_EQ(store->recovery().checkpoint != 0, GetParam());
  const auto [values, errors, none] = expect_others();
  EXPECT_GT(values + errors + none, 100);
  // A checkpoint knows that they are there; everything else that knows it cannot be read.
  if (GetParam())
    EXPECT_EQ(values + none, 0);
  else
    EXPECT_EQ(errors, 0);
  // The store is used, and collected, like any other.
  std::mt19937_64 random(3);
  for (int turn = 0; turn < 15'000; ++turn) {
    const int i = static_cast<int>(random() % (kKeys / 2)) * 2;
    change(i, random() % 4 == 0 ? "" : std::to_string(turn) + std::string(random() % 5000, 'n'));
  }
  EXPECT_GT(store->counts().collected.victims, 5u);
  EXPECT_EQ(store->counts().collected.checkpoints, 0u);
  store->compact();
  expect_others();
  store->verify();
  close();
  open();
  EXPECT_EQ(store->recovery().unreadable_segments, 1u);
  expect_others();
  close();
  make_unreadable(0, 0);
  open();
  EXPECT_EQ(store->recovery().unreadable_segments, 0u);
  expect_all();
  store->compact();
  expect_all();
  store->verify();
  close();
  open();
  expect_all();
}

// One grain, wherever it is.
TEST_P(UnreadableTest, AGrain) {
  fill();
  const auto record = image->newest("key502");
  ASSERT_TRUE(record);
  const std::pair<const char*, uint64_t> places[] = {{"header", image->begin_of(victim)},
                                                     {"footer", image->last_grain_of(victim)},
                                                     {"summary", *image->summary_of(victim)},
                                                     {"record", record->offset},
                                                     {"value", record->offset + 4096 / 512 * 512}};
  for (const auto& [name, offset] : places) {
    SCOPED_TRACE(name);
    device->close();
    device = new storage::CutDevice(image->bytes, 0);
    make_unreadable(offset, 512);
    open();
    EXPECT_EQ(store->recovery().unreadable_segments, 0u);
    const bool is_record = std::string(name) == "record" || std::string(name) == "value";
    if (!is_record) {
      const uint32_t all = std::exchange(victim, Log::kNone);
      expect_others();
      victim = all;
    } else {
      auto found = session.get("key502");
      ASSERT_FALSE(found);
      EXPECT_EQ(found.error().number, EIO);
      EXPECT_EQ(session.get("key503").has_value(), true);
      // It can be replaced.
      auto done = session.put("key502", bytes_of("new"));
      ASSERT_TRUE(done) << done.error().message;
      EXPECT_EQ(text_of(session.get("key502")->value()), "new");
    }
    close();
    make_unreadable(0, 0);
    open();
    for (const auto& [key, value] : expected) {
      auto found = session.get(key);
      ASSERT_TRUE(found && found->found()) << key;
      EXPECT_TRUE(text_of(found->value()) == (is_record && key == "key502" ? "new" : value)) << key;
    }
    close();
  }
}

// All of a segment but its first header; and some of its keys were changed after the checkpoint, which knows them.
TEST_P(UnreadableTest, ASegmentWhoseKeysWereChanged) {
  fill();
  ASSERT_EQ(where.at("key503"), victim);
  open();
  change(502, "new");
  change(503, "");
  image.emplace(device->medium(1, 100));
  close();
  device->close();
  device = new storage::CutDevice(image->bytes, 0);
  make_unreadable(image->begin_of(victim) + 512, (1 << 20) - 512);
  open();
  EXPECT_EQ(store->recovery().checkpoint != 0, GetParam());
  EXPECT_EQ(store->recovery().unreadable_segments, 0u);
  EXPECT_GT(store->recovery().unreadable_grains, 1000u);
  expect_others();
  make_unreadable(0, 0);
  expect_others();
  close();
  open();
  expect_all();
}

// The index rounds the size of a record up, so what lies after it is read, too: if that cannot be read, it must not matter for the record.
TEST_P(UnreadableTest, AGrainBehindARecord) {
  ASSERT_TRUE(Store::make(*device, {.segment_bytes = 1 << 20}));
  open();
  const std::string value(8400, 'v');  // with header and key 17 grains, which are counted as 18
  put(1, value);
  put(2, value);
  image.emplace(device->medium(1, 100));
  const auto place = image->newest(key_of(1)), behind = image->newest(key_of(2));
  ASSERT_TRUE(place && behind);
  ASSERT_EQ(behind->offset, place->offset + uint64_t{17 * 512});
  make_unreadable(behind->offset, 512);
  const std::string keys[] = {key_of(1), key_of(2)};
  const std::string_view views[] = {keys[0], keys[1]};
  base::Expected<Found> many[2];
  MultiGet::get(session, views, many);
  ASSERT_TRUE(many[0]) << many[0].error().message;
  EXPECT_TRUE(text_of(many[0]->value()) == value);
  ASSERT_FALSE(many[1]);
  EXPECT_EQ(many[1].error().number, EIO);
  auto found = session.get(keys[0]);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_TRUE(text_of(found->value()) == value);
  EXPECT_FALSE(session.get(keys[1]));
  Snapshot snapshot;
  ASSERT_TRUE(snapshot.open(session));
  int errors = 0;
  std::string seen;
  for (int i = 0; i < 2; ++i) {
    Snapshot::Entry entry;
    const auto next = snapshot.next(entry);
    if (!next) ++errors;
    if (next && *next)
      seen += std::string(entry.key) + (text_of(entry.value) == value ? "" : ", another value");
  }
  snapshot.close();
  EXPECT_EQ(errors, 1);
  EXPECT_EQ(seen, keys[0]);
  // This depends on the whole record.
  const auto done = session.put(keys[0], bytes_of("new"), {.when = When::kIfPresent});
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->outcome, Changed::Outcome::kDone);
  make_unreadable(0, 0);
}

// The segment was being written when the process ended.
TEST_P(UnreadableTest, AGrainOfASegmentWithoutSummary) {
  fill();
  open();
  for (int i = 0; i < 100; ++i) put(i, "third " + std::string(1000, 't'));
  image.emplace(device->medium(1, 100));
  close();
  device->close();
  device = new storage::CutDevice(image->bytes, 0);
  const auto record = image->newest("key52");
  ASSERT_TRUE(record && !image->summary_of(record->segment));
  make_unreadable(record->offset, 512);
  for (int turn = 0; turn < 2; ++turn) {
    open();
    EXPECT_EQ(store->recovery().unreadable_segments, 0u);
    EXPECT_EQ(store->recovery().unreadable_grains, 1u);
    for (const auto& [key, value] : expected) {
      if (key == "key52") continue;
      auto found = session.get(key);
      ASSERT_TRUE(found && found->found()) << key;
      EXPECT_TRUE(text_of(found->value()) == value) << key;
    }
    store->compact();
    close();
  }
  make_unreadable(0, 0);
  open();
  EXPECT_EQ(text_of(session.get("key52")->value()), expected["key52"])
      << "what can be read again is not lost";
  expect_all();
}

class UnreadableCheckpointTest : public UnreadableTest {};

TEST_P(UnreadableCheckpointTest, ACheckpoint) {
  fill();
  const auto segment = image->first(SegmentState::kCheckpoint);
  ASSERT_TRUE(segment);
  for (const uint64_t bytes : {512, 1 << 20}) {
    make_unreadable(image->begin_of(*segment) + (bytes == 512 ? 512 : 0), bytes);
    open();
    EXPECT_EQ(store->recovery().checkpoint, 0u);
    expect_all();
    close();
    device->close();
    device = new storage::CutDevice(image->bytes, 0);
  }
}

// Then it is not a store that has lost a part, but a device that has failed.
TEST_P(UnreadableTest, MostOfTheDevice) {
  fill();
  make_unreadable(kSegmentsOffset, 13 << 20);
  open("store: cannot read 13 of 24 segments");
  make_unreadable(0, 0);
  open();
  expect_all();
}

// Pieces are read before they are released. If they cannot be, the collector goes on.
TEST_P(UnreadableTest, PiecesThatAreReleased) {
  fill();
  open();
  const std::string large(700'000, 'l');
  ASSERT_TRUE(session.put("large", bytes_of(large)));
  close();
  image.emplace(device->medium(1, 100));
  std::optional<StoreImage::Place> piece;
  image->for_each_record([&](const StoreImage::Place& place) {
    if (place.record.header.kind() == RecordKind::kPiece) piece = place;
  });
  ASSERT_TRUE(piece);
  make_unreadable(piece->offset, 512);
  open();
  ASSERT_TRUE(session.remove("large"));
  for (int i = 0; i < 20'000; ++i) put(i % kKeys, std::string(2000, static_cast<char>('a' + i % 26)));
  EXPECT_GT(store->counts().collected.victims, 20u);
  expect_all();
}

// If the head cannot be read when it is removed, nobody knows its pieces: the next start finds them, whatever checkpoint there is.
TEST_P(UnreadableTest, PiecesWhoseHeadCouldNotBeRead) {
  ASSERT_TRUE(Store::make(*device, {.segment_bytes = 1 << 20}));
  open();
  ASSERT_TRUE(session.put("large", bytes_of(std::string(5'000'000, 'l'))));
  make_unreadable(0, kBytes);
  ASSERT_TRUE(session.remove("large"));
  make_unreadable(0, 0);
  close();
  open();
  EXPECT_EQ(store->counts().index.entries, 0u);
}

// They are released by the process that could not read them, or, if the store is closed before, by the next one.
TEST_P(UnreadableTest, PiecesThatCanBeReadAgain) {
  ASSERT_TRUE(Store::make(*device, {.segment_bytes = 1 << 20}));
  for (const bool closes : {false, true}) {
    open();
    ASSERT_TRUE(session.put("large", bytes_of(std::string(5'000'000, 'l'))));
    image.emplace(device->medium(1, 100));
    make_unreadable(0, image->begin_of(image->newest("large")->segment));
    ASSERT_TRUE(session.remove("large"));
    store->compact();
    EXPECT_GT(store->counts().index.entries, 10u);
    if (closes) close();
    make_unreadable(0, 0);
    if (closes) open();
    for (int i = 0; i < 3000 && store->counts().index.entries != 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(store->counts().index.entries, 0u) << closes;
    close();
  }
}

// A segment without a summary is not given back, even if none of its records can be read.
TEST_P(UnreadableTest, AllOfASegmentWithoutSummaryButItsHeaders) {
  ASSERT_TRUE(Store::make(*device, {.segment_bytes = 1 << 20}));
  open();
  put(1, "here");
  image.emplace(device->medium(1, 100));
  close();
  device->close();
  device = new storage::CutDevice(image->bytes, 0);
  const auto record = image->newest(key_of(1));
  ASSERT_TRUE(record && !image->summary_of(record->segment));
  make_unreadable(record->offset, 512);
  open();
  EXPECT_EQ(store->recovery().unreadable_grains, 1u);
  store->compact();
  store->verify();
  close();
  make_unreadable(0, 0);
  open();
  expect_all();
}

// For some seconds, in which the collector tries each segment. Afterwards there is room again.
TEST_P(UnreadableTest, AllOfTheDeviceForAWhile) {
  ASSERT_TRUE(Store::make(*device, {.segment_bytes = 1 << 20}));
  open();
  std::mt19937_64 random(1);
  const auto change_some = [&] {
    return session.put(key_of(static_cast<int>(random() % 3400)), bytes_of(std::string(4500, 'b')));
  };
  for (int i = 0; i < 10'000; ++i)
    put(static_cast<int>(i < 3400 ? i : random() % 3400), std::string(4500, 'b'));
  make_unreadable(0, kBytes);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(3);
  while (std::chrono::steady_clock::now() < until)
    if (!change_some()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  make_unreadable(0, 0);
  const uint64_t victims = store->counts().collected.victims;
  for (int i = 0; i < 3000 && !change_some(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  for (int i = 0; i < 10'000; ++i) {
    auto done = change_some();
    for (int tries = 0; !done && tries < 3000; ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      done = change_some();
    }
    ASSERT_TRUE(done) << i << ": " << done.error().message;
  }
  EXPECT_GT(store->counts().collected.victims, victims + 20);
  expect_all();
  store->verify();
}

std::string title(const testing::TestParamInfo<bool>& has) {
  return has.param ? "WithCheckpoint" : "Without";
}
INSTANTIATE_TEST_SUITE_P(Checkpoints, UnreadableTest, testing::Bool(), title);
INSTANTIATE_TEST_SUITE_P(Checkpoints, UnreadableCheckpointTest, testing::Values(true), title);

}  // namespace
}  // namespace kv
