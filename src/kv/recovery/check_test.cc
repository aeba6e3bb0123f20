#include "kv/recovery/check.h"

#include "kv/media/checkpoint_format.h"
#include "kv/testing/test_check.h"
#include "kv/testing/test_identity.h"
#include "storage/decorators/fault.h"
#include "storage/testing/test_cut_device.h"
#include "storage/testing/test_fail_device.h"

namespace kv {
namespace {

TEST_F(CheckTest, AStoreThatWasClosedIsClean) {
  const uint64_t keys = make();
  const CheckReport report = run();
  EXPECT_TRUE(report.is_clean()) << all_findings();
  EXPECT_TRUE(findings.empty());
  EXPECT_EQ(report.live_records, keys);
  EXPECT_EQ(report.entries, keys);
  EXPECT_GT(report.records, 2500u);
  EXPECT_GT(report.segments, 5u);
  EXPECT_GT(report.read_bytes, report.records * 512);
}

TEST_F(CheckTest, AStoreWhoseProcessWasKilledIsClean) {
  const uint64_t keys = make(false);
  const CheckReport report = run();
  EXPECT_TRUE(report.is_clean()) << all_findings();
  EXPECT_EQ(report.live_records, keys);
  EXPECT_GT(report.unsealed_segments, 0u);
}

TEST_F(CheckTest, AnEmptyStoreIsClean) {
  ASSERT_TRUE(Store::make(*device, {}));
  const CheckReport report = run();
  EXPECT_TRUE(report.is_clean()) << all_findings();
  EXPECT_EQ(report.segments, 0u);
}

TEST_F(CheckTest, ASegmentThatWasWrittenOverAnotherIsFound) {
  make();
  const size_t first = sealed_segment(), second = sealed_segment_after(first);
  const auto number_of = [](size_t at) { return std::to_string((at - kSegmentsOffset) / kSegment); };
  memcpy(memory() + second, memory() + first, kSegment);
  EXPECT_GE(run().damaged_segments, 1u);
  EXPECT_NE(all_findings().find("segment " + number_of(second) + " (byte " + std::to_string(second) +
                                "): it holds what segment " + number_of(first) + " does"),
            std::string::npos)
      << all_findings();
}

TEST_F(CheckTest, ASegmentThatIsUsedAgainIsClean) {
  make();
  make(false);  // the medium still has another store's footers and records
  EXPECT_TRUE(run().is_clean()) << all_findings();
}

// Power failed while a segment was being prepared, and only its second header has reached the medium. The segment is free, and a start gives the next
// segment that it prepares the same generation.
TEST_F(CheckTest, ASegmentOfWhichOnlyTheSecondHeaderWasPreparedIsFree) {
  make();
  const Identity identity = *read_superblock({memory(), kSuperblockBytes}, kCapacity);
  SegmentHeader used, other;
  ASSERT_TRUE(read_segment_header(identity, {memory() + sealed_segment(), 512}, used));
  size_t at = kSegmentsOffset;
  const auto is_older_and_free = [&] {
    return read_segment_header(identity, {memory() + at, 512}, other) && other.state == SegmentState::kFree &&
           other.generation < used.generation;
  };
  for (; !is_older_and_free(); at += kSegment) ASSERT_LT(at + kSegment, kCapacity);
  const uint64_t segments = run().segments;
  write_segment_header(identity, used, {memory() + at + kSegment - 512, 512});
  const CheckReport report = run();
  EXPECT_TRUE(report.is_clean()) << all_findings();
  EXPECT_EQ(report.segments, segments);
}

TEST_F(CheckTest, AFlippedByteIsFoundWhereItIs) {
  make(true, [](Session& session) {
    for (int i = 0; i < 3000; ++i)
      ASSERT_TRUE(session.put("the key " + std::to_string(i),
                              bytes_of("the value " + std::to_string(i) + std::string(500, 'v'))));
  });
  const size_t segment = sealed_segment();
  const size_t record = find("the value ", segment) / 512 * 512;
  const std::string place = "(byte " + std::to_string(record) + ")";
  const std::string segment_place = "(byte " + std::to_string(segment) + ")";
  const struct {
    const char* what;
    size_t at;
    uint64_t CheckReport::* count;
    std::string says;
  } kCases[] = {
      {"value", find("the value ", segment) + 3, &CheckReport::damaged_records,
       place + ": the record is damaged"},
      {"key", find("the key ", segment) + 3, &CheckReport::damaged_records, place},
      {"a record's check", record, &CheckReport::damaged_records, place},
      {"a record's generation", record + 8, &CheckReport::damaged_records, place},
      {"a record's kind", record + 16, &CheckReport::damaged_records, place},
      {"a record's sequence", record + 18, &CheckReport::damaged_records, place},
      {"a record's expiry", record + 30, &CheckReport::damaged_records, place},
      {"a record's flags", record + 38, &CheckReport::damaged_records, place},
      {"a header", segment + 18, &CheckReport::damaged_segments, segment_place + ": the header is damaged"},
      {"a header's magic", segment, &CheckReport::damaged_segments, segment_place},
      {"a header's state", segment + 24, &CheckReport::damaged_segments, segment_place},
      {"an entry", summary_of(segment) + 5, &CheckReport::damaged_segments,
       segment_place + ": the summary is damaged"},
      {"a footer", find("spkv end", segment) + 33, &CheckReport::damaged_segments,
       segment_place + ": the footer, or second header, is damaged"},
      {"a footer's magic", find("spkv end", segment), &CheckReport::damaged_segments, segment_place},
      {"a footer's store", find("spkv end", segment) + 9, &CheckReport::damaged_segments, segment_place},
      {"a footer's generation", find("spkv end", segment) + 16, &CheckReport::damaged_segments,
       segment_place},
      {"the first superblock", 100, &CheckReport::damaged_superblocks, "superblock (byte 0)"},
      {"the second superblock", (512 << 10) + 70, &CheckReport::damaged_superblocks,
       "superblock (byte 524288)"},
  };
  for (const auto& [what, at, count, says] : kCases) {
    flip(at);
    const CheckReport report = run();
    EXPECT_FALSE(report.is_clean()) << what;
    EXPECT_EQ(report.*count, 1u) << what << "\n" << all_findings();
    ASSERT_EQ(findings.size(), 1u) << what << "\n" << all_findings();
    EXPECT_NE(findings[0].find(says), std::string::npos) << what << ": " << findings[0];
    EXPECT_EQ(report.live_records, 3000u)
        << what << ": what the summary, or else the records, know is not lost";
    flip(at);
  }
  EXPECT_TRUE(run().is_clean());
}

// A right check does not mean that the content is right.
TEST_F(CheckTest, ASummaryThatIsNotItsRecordsIsFound) {
  constexpr uint64_t kExpires = uint64_t{1} << 47;
  make(true, [](Session& session) {
    for (int i = 0; i < 100; ++i)
      ASSERT_TRUE(session.put("key " + std::to_string(i), bytes_of("value"), {.expires_ms = kExpires + i}));
  });
  const Identity identity = *read_superblock({memory(), kSuperblockBytes}, kCapacity);
  const size_t segment = sealed_segment(), summary = summary_of(segment);
  const std::vector<std::byte> whole = image();
  const auto count_of = [&](const std::function<void(std::span<SummaryEntry>, SegmentFooter&)>& change,
                            const char* says) {
    set_image(whole);
    const std::span to(memory() + summary, segment + kSegment - summary);
    SegmentFooter footer;
    memcpy(&footer, to.last(sizeof footer).data(), sizeof footer);
    change({reinterpret_cast<SummaryEntry*>(to.data()), footer.entry_count}, footer);
    write_summary(identity, footer, to);
    const CheckReport report = run();
    EXPECT_NE(all_findings().find(says), std::string::npos) << says << "\n" << all_findings();
    return report.damaged_records + report.damaged_segments;
  };
  using Entries = std::span<SummaryEntry>;
  EXPECT_EQ(count_of([](Entries, SegmentFooter&) {}, ""), 0u);
  EXPECT_EQ(count_of([](Entries all, SegmentFooter&) { all[9].hash.high ^= 1; }, "key is another one"), 1u);
  EXPECT_EQ(count_of([](Entries all, SegmentFooter&) { all[9].hash.low ^= 1; }, "key is another one"), 1u);
  EXPECT_EQ(count_of([](Entries all, SegmentFooter&) { all[9].sequence_and_kind ^= 0x100; }, "has sequence"),
            1u);
  EXPECT_EQ(count_of([](Entries all, SegmentFooter&) { all[9].sequence_and_kind ^= 1; }, "and kind"), 1u);
  EXPECT_EQ(count_of(
                [](Entries all, SegmentFooter& footer) {
                  all.back().grains = 2;
                  footer.used_grains = all.back().grain + 2;
                },
                "has 1 grains, in the summary 2"),
            1u);
  EXPECT_EQ(count_of([](Entries, SegmentFooter& footer) { ++footer.last_sequence; }, "highest sequence"), 1u);
  EXPECT_EQ(count_of([](Entries, SegmentFooter& footer) { footer.sealed_generation = 0; },
                     "sealed at generation 0"),
            1u);
  EXPECT_EQ(count_of([](Entries, SegmentFooter& footer) { ++footer.first_expiry; }, "first expiry is"), 1u);
  EXPECT_EQ(count_of([](Entries, SegmentFooter& footer) { footer.first_expiry = 0; }, "first expiry is 0"),
            1u);
  EXPECT_EQ(count_of([](Entries, SegmentFooter& footer) { --footer.first_expiry; }, ""), 0u)
      << "that of one that could not be written";
}

TEST_F(CheckTest, SuperblocksOfTwoStoresAreFound) {
  make();
  const std::vector<std::byte> before = image();
  make();
  memcpy(memory() + kSuperblockOffsets[1], before.data() + kSuperblockOffsets[1], kSuperblockBytes);
  const CheckReport report = run();
  EXPECT_EQ(report.damaged_superblocks, 1u);
  EXPECT_EQ(findings.size(), 1u) << all_findings();
}

TEST_F(CheckTest, AFlippedByteInASegmentThatWasOpenIsFound) {
  make(false, [](Session& session) {
    for (int i = 0; i < 10; ++i)
      ASSERT_TRUE(session.put("the key " + std::to_string(i), bytes_of("the value")));
  });
  for (const char* text : {"the key 0", "the key 4", "the key 9", "the value"}) {
    const size_t at = find(text);
    flip(at);
    const CheckReport report = run();
    EXPECT_EQ(report.damaged_records, 1u) << text << "\n" << all_findings();
    EXPECT_EQ(report.live_records, 9u) << text;
    EXPECT_NE(all_findings().find("(byte " + std::to_string(at / 512 * 512) + ")"), std::string::npos)
        << all_findings();
    flip(at);
  }
  // A record that does not even begin like one, between others.
  const size_t generation = find("the key 4") / 512 * 512 + 8;
  flip(generation);
  EXPECT_EQ(run().damaged_records, 1u) << all_findings();
}

TEST_F(CheckTest, AnIndexThatIsNotAsTheRecordsAreIsFound) {
  const uint64_t keys = make();
  const std::vector<std::byte> whole = image();
  // Recovery sees another medium than the check did: one segment less,
  const size_t segment = sealed_segment();
  before_index = [&] {
    const Identity identity = *read_superblock({memory(), kSuperblockBytes}, kCapacity);
    free_segment(identity, (segment - kSegmentsOffset) / kSegment, 1, {memory(), kCapacity});
  };
  CheckReport report = run();
  EXPECT_EQ(report.damaged_records + report.damaged_segments, 0u);
  EXPECT_GT(report.wrong_entries, 0u);
  EXPECT_GT(report.wrong_counters, 0u);
  EXPECT_NE(all_findings().find("is missing"), std::string::npos);
  EXPECT_EQ(report.live_records, keys);
  // or one more, whose records the check has not seen.
  before_index = [&] { set_image(whole); };
  report = run();
  EXPECT_EQ(report.damaged_segments, 0u);
  EXPECT_GT(report.wrong_entries, 0u);
  EXPECT_GT(report.wrong_counters, 0u);
  EXPECT_GT(report.entries, report.live_records);
}

// Recovery sees the store as it was before its last change, or after another one.
TEST_F(CheckTest, AnEntryOfWhatIsNotTheNewestIsFound) {
  make(true, [](Session& session) { ASSERT_TRUE(session.put("key", bytes_of("value"))); });
  const std::vector<std::byte> before = image();
  const auto after = [&](const std::function<void(Session&)>& change) {
    set_image(before);
    Store* const store = *Store::open(*device, {.stream_count = 1});
    Session session;
    EXPECT_TRUE(session.open(*store));
    change(session);
    session.close();
    EXPECT_TRUE(store->close());
    return image();
  };
  const auto removed = after([](Session& session) { ASSERT_TRUE(session.remove("key")); });
  const auto changed = after([](Session& session) { ASSERT_TRUE(session.put("key", bytes_of("other"))); });
  const struct {
    const std::vector<std::byte>& checked;
    const std::vector<std::byte>& recovered;
    uint64_t live, wrong;
    std::vector<std::string> says;
  } kCases[] = {
      {removed, removed, 0, 0, {}},
      {changed, changed, 1, 0, {}},
      {removed, before, 0, 1, {"is of no live record"}},                // of the value that was removed
      {removed, changed, 0, 1, {"is of no live record"}},               // of the tombstone itself
      {changed, before, 1, 2, {"is of no live record", "is missing"}},  // of the earlier value
  };
  for (const auto& [checked, recovered, live, wrong, says] : kCases) {
    set_image(checked);
    before_index = [&] { set_image(recovered); };
    const CheckReport report = run();
    EXPECT_EQ(report.live_records, live);
    EXPECT_EQ(report.wrong_entries, wrong) << all_findings();
    for (const std::string& part : says)
      EXPECT_NE(all_findings().find(part), std::string::npos) << all_findings();
  }
}

TEST_F(CheckTest, WhatCannotBeReadIsAFinding) {
  make();
  storage::FaultSchedule faults;
  faults.add({.operations = storage::operation_bit(storage::Operation::kRead),
              .when = storage::FaultRule::When::kEvery,
              .error = EIO,
              .n = 20});
  storage::Device* const inner = *storage::make_memory_device(kCapacity);
  memcpy(const_cast<char*>(inner->whereabouts().memory), memory(), kCapacity);
  storage::Device* const faulty = *storage::make_fault_device(inner, faults);
  const CheckReport report = run(*faulty);
  EXPECT_GT(report.damaged_segments + report.damaged_records, 0u);
  EXPECT_NE(all_findings().find("cannot be read"), std::string::npos) << all_findings();
  faulty->close();
}

TEST_F(CheckTest, WhatIsNearWhatCannotBeReadIsRead) {
  make();
  for (uint64_t n = 3; n < 30; ++n) {
    storage::FaultSchedule faults;
    faults.add({.operations = storage::operation_bit(storage::Operation::kRead),
                .when = storage::FaultRule::When::kAt,
                .error = EIO,
                .n = n});
    storage::Device* const inner = *storage::make_memory_device(kCapacity);
    memcpy(const_cast<char*>(inner->whereabouts().memory), memory(), kCapacity);
    storage::Device* const faulty = *storage::make_fault_device(inner, faults);
    const CheckReport report = run(*faulty);
    EXPECT_EQ(report.damaged_records, 0u) << n << "\n" << all_findings();
    EXPECT_LE(findings.size(), 1u) << n << "\n" << all_findings();
    faulty->close();
  }
}

// With a checkpoint at the end.
class CheckpointCheckTest : public CheckTest {
 protected:
  CheckpointCheckTest() {
    checkpoint_records = 1'000'000;
    keys = make();
    identity = *read_superblock({memory(), kSuperblockBytes}, kCapacity);
    table_at = find("spkv ckp");
    segment = table_at / kSegment * kSegment;
    PieceHeader table;
    EXPECT_TRUE(read_piece_header(identity, {memory() + table_at, 512}, table));
    end_at = table_at + identity.geometry.grains(table.bytes) * 512;
    EXPECT_TRUE(read_piece_header(identity, {memory() + end_at, 512}, end));
    EXPECT_EQ(end.kind, PieceKind::kEnd);
    whole = image();
  }
  void expect_clean(const char* what) {
    const CheckReport report = run();
    EXPECT_TRUE(report.is_clean()) << what << "\n" << all_findings();
    EXPECT_EQ(report.entries, keys) << what;
    set_image(whole);
  }
  void expect_finding(const char* what, storage::Device& of) {
    const CheckReport report = run(of);
    EXPECT_FALSE(report.is_clean()) << what;
    EXPECT_EQ(report.damaged_checkpoints, 1u) << what;
    EXPECT_EQ(report.entries, keys) << what;
    EXPECT_EQ(report.live_records, keys) << what;
    ASSERT_EQ(findings.size(), 1u) << what << "\n" << all_findings();
    for (const std::string& says :
         {"(byte " + std::to_string(segment) + "): the checkpoint", std::string("no data is lost by that")})
      EXPECT_NE(findings[0].find(says), std::string::npos) << what << ": " << findings[0];
    set_image(whole);
  }

  uint64_t keys = 0;
  Identity identity;
  size_t segment = 0, table_at = 0, end_at = 0;
  PieceHeader end;
  std::vector<std::byte> whole;
};

TEST_F(CheckpointCheckTest, DamageIsFoundAndLosesNothing) {
  expect_clean("whole");
  for (const size_t offset : {size_t{40}, sizeof(PieceHeader) + 700, sizeof(PieceHeader) + 4096 + 90}) {
    flip(table_at + offset);
    expect_finding("a byte", *device);
  }
  std::mt19937_64 random(1);
  std::generate_n(memory() + table_at + 1024, 4096, [&] { return static_cast<std::byte>(random()); });
  expect_finding("4 KiB", *device);
}

TEST_F(CheckpointCheckTest, WhatCannotBeReadIsAFinding) {
  auto* const unreadable = new storage::CutDevice(whole, 0);
  unreadable->fail_reads(table_at, 512);
  expect_finding("unreadable", *unreadable);
  unreadable->close();
}

// A start does without it, and the next one gives its segments back.
TEST_F(CheckpointCheckTest, WhatNeverCountedIsClean) {
  const size_t end_bytes = identity.geometry.grains(end.bytes) * 512;
  memset(memory() + end_at, 0, end_bytes);
  expect_clean("without its end");
  memset(memory() + end_at + 512, 0, end_bytes - 512);
  expect_clean("with a torn end");
  memset(memory() + table_at, 0, end_at + end_bytes - table_at);
  expect_clean("without anything");
}

TEST_F(CheckpointCheckTest, WhatIsBeingGivenBackIsClean) {
  SegmentHeader header;
  ASSERT_TRUE(read_segment_header(identity, {memory() + segment, 512}, header));
  header.part = 1;  // the one before is free already
  for (const size_t at : {segment, segment + kSegment - 512})
    write_segment_header(identity, header, {memory() + at, 512});
  flip(table_at + sizeof(PieceHeader));
  expect_clean("without its first segment");
}

// It says nothing about the store, wherever it occurs.
TEST_F(CheckTest, WantOfMemoryIsNoFinding) {
  make();
  storage::Device* const inner = *storage::make_memory_device(kCapacity);
  memcpy(const_cast<char*>(inner->whereabouts().memory), memory(), kCapacity);
  auto* const failing = new storage::FailDevice(inner);
  uint64_t error_count = 0;
  for (uint64_t n = 1; n < 150; n += 1 + n / 8) {
    failing->fail(storage::FailDevice::Failing::kReads, ENOMEM, n, 1);
    std::string found;
    auto report = check(
        *failing, [](void* to, const char* line) { *static_cast<std::string*>(to) += line; },
        [](void*, uint64_t, uint64_t) {}, &found);
    EXPECT_EQ(found, "") << n;
    if (report) EXPECT_TRUE(report->is_clean()) << n;
    if (report) continue;
    ++error_count;
    EXPECT_EQ(report.error().number, ENOMEM) << n;
    const std::string says = report.error().message;
    EXPECT_TRUE(says.starts_with("the store was not checked: ")) << says;
    EXPECT_NE(says.find("more memory"), std::string::npos) << says;
  }
  EXPECT_GT(error_count, 10u);
  // Even as late as in recovery.
  failing->fail(storage::FailDevice::Failing::kNothing, 0);
  const auto late = check(
      *failing, [](void*, const char* line) { FAIL() << line; },
      [](void* device, uint64_t done, uint64_t all) {
        if (done == all)
          static_cast<storage::FailDevice*>(device)->fail(storage::FailDevice::Failing::kReads, ENOMEM);
      },
      failing);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().number, ENOMEM);
  failing->close();
}

TEST_F(CheckTest, WhatIsNoStoreIsAnErrorAsOnOpening) {
  const auto number_of = [&] {
    auto report = check(
        *device, [](void*, const char*) { FAIL() << "an error only"; }, [](void*, uint64_t, uint64_t) {},
        nullptr);
    EXPECT_FALSE(report);
    const auto opened = Store::open(*device, {});
    EXPECT_FALSE(opened);
    EXPECT_STREQ(report.error().message, opened.error().message);
    return report.error().number;
  };
  EXPECT_EQ(number_of(), EINVAL);
  make();
  for (uint64_t offset : kSuperblockOffsets) flip(offset + 100);
  EXPECT_EQ(number_of(), EBADMSG);
}

}  // namespace
}  // namespace kv
