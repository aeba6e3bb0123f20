// What check takes for live: large values and their pieces, what has expired, what was moved, what a power cut has left.
#include <thread>

#include "kv/media/clock.h"
#include "kv/testing/test_check.h"
#include "kv/testing/test_effort.h"
#include "storage/testing/test_cut_device.h"

namespace kv {
namespace {

// 5 pieces of 256 KiB.
std::string large_value(const std::string& text) {
  std::string value = "begin of " + text;
  while (value.size() < 600'000) value += text + ".";
  value += "middle of " + text;
  while (value.size() < 1'200'000) value += text + ".";
  return value;
}

class CheckLifeTest : public CheckTest {
 protected:
  static void put(Session& session, const std::string& key, const std::string& value,
                  const PutOptions& options = {}) {
    auto done = session.put(key, bytes_of(value), options);
    ASSERT_TRUE(done) << done.error().message;
  }
  // The store's medium after this, when it is closed.
  std::vector<std::byte> after(const std::function<void(Store&, Session&)>& change) {
    Store* const store = *Store::open(*device, {.durability = Durability::kNone, .stream_count = 1});
    Session session;
    EXPECT_TRUE(session.open(*store));
    change(*store, session);
    session.close();
    EXPECT_TRUE(store->close());
    return image();
  }
  void expect_clean(uint64_t live_records) {
    const CheckReport report = run();
    EXPECT_TRUE(report.is_clean()) << all_findings();
    EXPECT_EQ(report.live_records, live_records);
    EXPECT_EQ(report.entries, live_records);
  }
  // Changes the summary entry of the record with this byte, in a sealed segment, and corrects the summary's checks.
  void change_entry(size_t at, const std::function<void(SummaryEntry&)>& change) {
    const Identity identity = *read_superblock({memory(), kSuperblockBytes}, kCapacity);
    const size_t segment = at / kSegment * kSegment, summary = summary_of(segment);
    const std::span to(memory() + summary, segment + kSegment - summary);
    SegmentFooter footer;
    memcpy(&footer, to.last(sizeof footer).data(), sizeof footer);
    for (SummaryEntry& entry : std::span(reinterpret_cast<SummaryEntry*>(to.data()), footer.entry_count))
      if (const size_t grain = (at - segment) / 512;
          entry.grain <= grain && grain < entry.grain + entry.grains)
        change(entry);
    write_summary(identity, footer, to);
  }
};

TEST_F(CheckLifeTest, LargeValuesAreClean) {
  for (const bool closed : {true, false}) {
    const uint64_t entries = make(closed, [](Session& session) {
      for (int i = 0; i < 12; ++i)
        put(session, "key" + std::to_string(i % 5), large_value("value" + std::to_string(i)));
      put(session, "key0", "small");
      ASSERT_TRUE(session.remove("key1"));
      put(session, "key2", large_value("forever"), {.expires_ms = uint64_t{1} << 47});
    });
    // What was replaced is released by the collector, at the latest when the store is closed.
    if (!closed) EXPECT_EQ(entries, 1 + 3 * 6u);
    expect_clean(1 + 3 * 6u);
  }
}

TEST_F(CheckLifeTest, AValueThatLacksAPieceIsFound) {
  const uint64_t entries =
      make(true, [](Session& session) { put(session, "the key", large_value("value")); });
  const std::vector<std::byte> whole = image();
  for (const char* text : {"begin of value", "middle of value"}) {
    set_image(whole);
    expect_clean(entries);
    change_entry(find(text), [](SummaryEntry& entry) {
      entry.sequence_and_kind = with_kind(entry.sequence(), RecordKind::kVoid);
    });
    const CheckReport report = run();
    EXPECT_EQ(report.damaged_records, 1u) << text << all_findings();
    EXPECT_EQ(report.wrong_entries + report.wrong_counters, 0u) << all_findings();
    ASSERT_EQ(findings.size(), 1u) << all_findings();
    EXPECT_NE(findings[0].find("lacks 1 of its 5 pieces"), std::string::npos) << findings[0];
    EXPECT_NE(findings[0].find("(byte " + std::to_string(find("the key") / 512 * 512) + ")"),
              std::string::npos);
  }
}

// What a damaged head names, or which head names a damaged piece, is not known: recovery keeps all of it, and nothing else is reported.
TEST_F(CheckLifeTest, DamagedHeadsAndPiecesAreFoundAndNothingElse) {
  make(true, [](Session& session) {
    put(session, "the key", large_value("value"));
    put(session, "other", large_value("other"));
    put(session, "gone", large_value("gone"));
    ASSERT_TRUE(session.remove("gone"));
  });
  const size_t gone = find("begin of gone");
  for (const size_t at : {find("the key"), find("begin of value"), find("middle of value"), gone}) {
    flip(at);
    const CheckReport report = run();
    EXPECT_EQ(report.damaged_records, 1u) << at << "\n" << all_findings();
    EXPECT_EQ(findings.size(), 1u) << at << "\n" << all_findings();
    flip(at);
  }
  EXPECT_TRUE(run().is_clean()) << all_findings();
}

TEST_F(CheckLifeTest, PiecesThatAreInTheIndexForNoValueAreFound) {
  make(true, [](Session& session) { put(session, "key", large_value("value")); });
  const std::vector<std::byte> before = image();
  const auto removed = after([](Store&, Session& session) { ASSERT_TRUE(session.remove("key")); });
  set_image(before);
  const auto replaced = after([](Store&, Session& session) { put(session, "key", "small"); });
  const struct {
    const std::vector<std::byte>& checked;
    const std::vector<std::byte>& recovered;
    uint64_t live, wrong;
    const char* says;
  } kCases[] = {
      {before, before, 6, 0, ""},
      {removed, removed, 0, 0, ""},
      {replaced, replaced, 1, 0, ""},
      {removed, before, 0, 6, "is of no live record"},
      {replaced, before, 1, 7, "is of no live record"},
      {before, removed, 6, 6, "is missing"},
  };
  for (const auto& [checked, recovered, live, wrong, says] : kCases) {
    set_image(checked);
    before_index = [&] { set_image(recovered); };
    const CheckReport report = run();
    EXPECT_EQ(report.live_records, live);
    EXPECT_EQ(report.wrong_entries, wrong) << all_findings();
    EXPECT_NE(all_findings().find(says), std::string::npos) << all_findings();
  }
}

// What has expired becomes a tombstone with the same sequence; a power cut may leave both.
TEST_F(CheckLifeTest, WhatHasExpiredAndWasCollectedIsClean) {
  make(true, [](Session& session) {
    for (int i = 0; i < 300; ++i)
      put(session, "short" + std::to_string(i), std::string(5000, 's'), {.expires_ms = now_ms() + 1});
    put(session, "the key", large_value("value"), {.expires_ms = now_ms() + 1});
    for (int i = 0; i < 300; ++i) put(session, "long" + std::to_string(i), std::string(500, 'l'));
  });
  const std::vector<std::byte> before = image();
  const size_t segment = find("the key") / kSegment * kSegment;
  for (const uint64_t begun = now_ms(); now_ms() < begun + 10;) std::this_thread::yield();
  const auto collected = after([](Store& store, Session& session) {
    for (int i = 0; i < 300; ++i) ASSERT_TRUE(session.remove("long" + std::to_string(i)));
    for (int i = 0; i < 300; ++i) put(session, "long" + std::to_string(i), std::string(500, 'm'));
    store.compact();
    EXPECT_GT(store.counts().collected.expired_records, 0u);
  });
  EXPECT_TRUE(run().is_clean()) << all_findings();
  // One of the collected segments is as if its new header had not reached the medium.
  bool was_either = false;
  for (size_t at = kSegmentsOffset; at + kSegment <= kCapacity; at += kSegment) {
    set_image(collected);
    if (memcmp(memory() + at, before.data() + at, 512) == 0) continue;
    memcpy(memory() + at, before.data() + at, kSegment);
    for (int turn = 0; turn < 5; ++turn) {
      const CheckReport report = run();
      EXPECT_TRUE(report.is_clean()) << all_findings();
      was_either = was_either || at == segment;
    }
  }
  EXPECT_TRUE(was_either);
}

TEST_F(CheckLifeTest, WhatWasMovedIsClean) {
  const uint64_t entries = make(false, [](Session& session) {
    std::mt19937_64 random(1);
    for (int i = 0; i < 30'000; ++i) {
      const std::string key = "key" + std::to_string(random() % 2000);
      if (random() % 6 == 0)
        ASSERT_TRUE(session.remove(key));
      else if (random() % 500 == 0)
        put(session, key, large_value(key));
      else
        put(session, key, std::string(random() % 5000, 'v'));
    }
  });
  expect_clean(entries);
}

TEST_F(CheckLifeTest, EitherHeaderIsEnoughAndEachIsLookedAt) {
  make(false, [](Session& session) { put(session, "the key", "value"); });
  const size_t open = find("the key") / kSegment * kSegment;
  const size_t free = kCapacity - kSegment;
  const size_t last = kSegment - 512;
  for (const size_t at : {open, open + last, free, free + last}) {
    flip(at + 16);
    const CheckReport report = run();
    EXPECT_EQ(report.damaged_segments, 1u) << all_findings();
    ASSERT_EQ(findings.size(), 1u) << all_findings();
    EXPECT_NE(findings[0].find(at % kSegment == 0 ? "the header is damaged" : "second header, is damaged"),
              std::string::npos)
        << findings[0];
    EXPECT_EQ(report.live_records, 1u);
    flip(at + 16);
  }
  // Both headers: recovery then knows nothing about the segment.
  for (const size_t segment : {open, free}) {
    for (const size_t at : {segment, segment + last}) flip(at + 16);
    const CheckReport report = run();
    EXPECT_EQ(report.damaged_segments, 2u) << all_findings();
    EXPECT_EQ(findings.size(), 2u) << all_findings();
    EXPECT_EQ(report.live_records, segment == open ? 0u : 1u);
    for (const size_t at : {segment, segment + last}) flip(at + 16);
  }
  // A power cut while a segment is being prepared may leave one of its two new headers.
  const Identity identity = *read_superblock({memory(), kSuperblockBytes}, kCapacity);
  for (const size_t at : {free, free + last}) {
    const std::vector<std::byte> whole = image();
    write_segment_header(identity, {.generation = uint64_t{1} << 41, .state = SegmentState::kUsed},
                         {memory() + at, 512});
    EXPECT_TRUE(run().is_clean()) << all_findings();
    set_image(whole);
  }
  // And while one is given back: with either header, nothing that it held counts.
  for (const size_t at : {open, open + last}) {
    const std::vector<std::byte> whole = image();
    write_segment_header(identity, {.generation = uint64_t{1} << 41, .state = SegmentState::kFree},
                         {memory() + at, 512});
    const CheckReport report = run();
    EXPECT_TRUE(report.is_clean()) << all_findings();
    EXPECT_EQ(report.live_records, 0u);
    set_image(whole);
  }
}

// Even the first one of a segment, on a medium that still has records of an older store.
TEST_F(CheckLifeTest, ADamagedRecordThatIsAloneIsFound) {
  make();
  make(false, [](Session& session) { put(session, "the key", "value"); });
  EXPECT_TRUE(run().is_clean()) << all_findings();
  flip(find("the key"));
  EXPECT_EQ(run().damaged_records, 1u) << all_findings();
}

TEST_F(CheckLifeTest, ACheckpointsSegmentsAreNotTheLogs) {
  const uint64_t entries = make();
  const CheckReport before = run();
  const Identity identity = *read_superblock({memory(), kSuperblockBytes}, kCapacity);
  const size_t segment = kCapacity - kSegment;
  memset(memory() + segment, 0xab, kSegment);
  write_segment_header(identity, {.generation = uint64_t{1} << 41, .state = SegmentState::kCheckpoint},
                       {memory() + segment, 512});
  expect_clean(entries);
  EXPECT_EQ(run().segments, before.segments);
}

// The device after power has come back; `medium` is what it has.
storage::CutDevice* after_the_cut(storage::CutDevice* device, uint64_t seed, std::vector<std::byte>& medium) {
  medium = device->medium(seed, seed % 3 == 0 ? 0 : 60);
  device->close();
  return new storage::CutDevice(medium, 0);
}

// Whatever a power cut leaves, recovery's result is what the records say; and after the store has been opened once, nothing is wrong any more.
// Longer: SPILLWAY_TEST_CUTS=2000.
TEST(CheckCutTest, WhatRecoveryMakesIsWhatTheRecordsSay) {
  uint64_t unclean = 0, unsealed = 0;
  std::vector<std::byte> medium(17 << 20);
  {
    auto* const device = new storage::CutDevice(medium, 0);
    ASSERT_TRUE(Store::make(*device, {.segment_bytes = 1 << 20}));
    medium = device->medium(0, 0);
    device->close();
  }
  const auto check_now = [](storage::Device& device, std::string& findings) {
    return check_of(device, findings);
  };
  const uint64_t cuts = setting("SPILLWAY_TEST_CUTS", 40 / kEffortParts);
  for (uint64_t seed = 1; seed <= cuts; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    auto* device = new storage::CutDevice(medium, 1 + random() % 900);
    if (auto opened =
            Store::open(*device, {.durability = seed % 2 == 0 ? Durability::kSync : Durability::kNone,
                                  .stream_count = 1,
                                  .checkpoint_records = seed % 4 < 2 ? 20u : 0})) {
      Session session;
      ASSERT_TRUE(session.open(**opened));
      for (bool goes_on = true; goes_on && !device->is_off();) {
        const std::string key = "key" + std::to_string(random() % 60);
        const std::string value =
            random() % 60 == 0 ? large_value(key).substr(0, 800'000) : std::string(random() % 40'000, 'v');
        const PutOptions options = {.expires_ms = random() % 4 == 0 ? now_ms() + random() % 5 : 0};
        goes_on = random() % 4 == 0 ? session.remove(key).has_value()
                                    : session.put(key, bytes_of(value), options).has_value();
      }
      session.close();
      static_cast<void>((*opened)->close());
    }
    device = after_the_cut(device, seed, medium);
    std::string findings;
    CheckReport report = check_now(*device, findings);
    EXPECT_EQ(report.wrong_entries + report.wrong_counters, 0u) << findings;
    unclean += !report.is_clean();
    unsealed += report.unsealed_segments;
    auto opened = Store::open(*device, {});
    ASSERT_TRUE(opened) << opened.error().message;
    ASSERT_TRUE((*opened)->close());
    findings.clear();
    EXPECT_TRUE(check_now(*device, findings).is_clean()) << findings;
    medium = device->medium(0, 0);
    device->close();
  }
  if (cuts >= 40) EXPECT_GT(unclean, cuts / 20) << "records that were being written";
  EXPECT_GT(unsealed, cuts);
}

// While checkpoints are written, count and are given back. Longer: SPILLWAY_TEST_CUTS=2000.
TEST(CheckCutTest, WhatACutLeavesOfCheckpointsIsNotDamaged) {
  std::vector<std::byte> medium(17 << 20);
  uint64_t found = 0;
  const uint64_t cuts = setting("SPILLWAY_TEST_CUTS", 40 / kEffortParts);
  for (uint64_t seed = 1; seed <= cuts; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    auto* device = new storage::CutDevice(medium, seed == 1 ? 0 : 1 + random() % 300);
    if (seed == 1) ASSERT_TRUE(Store::make(*device, {.segment_bytes = 1 << 20}));
    if (auto opened = Store::open(*device, {.stream_count = 1, .checkpoint_records = 10})) {
      Session session;
      ASSERT_TRUE(session.open(**opened));
      for (int i = 0; i < 200 && !device->is_off(); ++i)
        static_cast<void>(session.put("key" + std::to_string(random() % 60),
                                      bytes_of(std::string(random() % 10'000, 'v'))));
      session.close();
      static_cast<void>((*opened)->close());
    }
    device = after_the_cut(device, seed, medium);
    std::string findings;
    EXPECT_EQ(check_of(*device, findings).damaged_checkpoints, 0u) << findings;
    found += text_of(medium).contains("spkv ckp");
    device->close();
  }
  EXPECT_GT(found, cuts / 2);
}

}  // namespace
}  // namespace kv
