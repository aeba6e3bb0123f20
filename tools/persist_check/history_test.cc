#include "history.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "persist/check/recorder.h"
#include "sites.h"
#include "test_history.h"

namespace persist_check {
namespace {

constexpr uint64_t kAddress = 0x10000;

TEST(HistoryTest, IsWhatTheLogSays) {
  LogBuilder log;
  std::vector<uint64_t> content(16);
  content[9] = 5;
  log.map(1, kAddress, content, "file", 128, 1000);
  log.store(3, 11, kAddress + 56, {7, 8});
  log.flush(3, 12, kAddress, 2, true);
  log.marker("there");
  log.fence(4, 13);
  log.module(100, 50, 4096, "/lib");
  log.unmap(1);
  log.exit();
  const History history = log.history();
  EXPECT_EQ(history.process, 77u);
  EXPECT_TRUE(history.is_ended);
  EXPECT_EQ(history.damage, "");
  ASSERT_EQ(history.files.size(), 1u);
  EXPECT_EQ(history.files[0].path, "file");
  EXPECT_EQ(history.files[0].image_bytes, 1000u);
  ASSERT_EQ(history.files[0].initial.size(), 4u);
  EXPECT_EQ(history.files[0].initial[3][1], 5u);
  ASSERT_EQ(history.events.size(), 6u);
  const auto pieces = history.pieces_of(history.events[1]);
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].line, line_id(0, 2));
  EXPECT_EQ(pieces[0].units, 0x80);
  EXPECT_EQ(pieces[0].content[7], 7u);
  EXPECT_EQ(pieces[1].line, line_id(0, 3));
  EXPECT_EQ(pieces[1].units, 1);
  EXPECT_EQ(pieces[1].changed, 1);
  EXPECT_EQ(history.events[2].first_line, 2u);
  EXPECT_EQ(history.events[2].line_count, 2u);
  EXPECT_EQ(history.events[2].flags, persist::kOrdered);
  EXPECT_EQ(history.markers, std::vector<std::string>{"there"});
  EXPECT_EQ(history.events[4].thread, 4u);
  EXPECT_EQ(history.events[5].kind, RecordKind::kUnmap);
  ASSERT_EQ(history.modules.size(), 1u);
  EXPECT_EQ(history.modules[0].end, 150u);
  EXPECT_EQ(history.modules[0].offset, 4096u);
}

TEST(HistoryTest, KnowsUnitsThatDidNotChange) {
  LogBuilder log;
  log.map(1, kAddress, std::vector<uint64_t>(8));
  log.store(1, 1, kAddress, {0, 2});
  log.store(1, 1, kAddress, {3, 2});
  const History history = log.history();
  EXPECT_EQ(history.pieces[0].changed, 2);
  EXPECT_EQ(history.pieces[0].units, 3);
  EXPECT_EQ(history.pieces[1].changed, 1);
}

TEST(HistoryTest, AFileThatIsMappedAgainIsTheSame) {
  LogBuilder log;
  log.map(1, kAddress, std::vector<uint64_t>(8));
  log.store(1, 1, kAddress, {1});
  log.unmap(1);
  std::vector<uint64_t> content(16);
  content[0] = 1;
  content[8] = 2;
  log.map(2, kAddress * 2, content);
  log.unmap(2);
  content[8] = 3;  // not by a store that was recorded
  log.map(3, kAddress * 3, content);
  const History history = log.history();
  ASSERT_EQ(history.files.size(), 1u);
  EXPECT_EQ(history.files[0].initial[0][0], 0u);
  EXPECT_EQ(history.files[0].initial[1][0], 2u);
  ASSERT_EQ(history.pieces.size(), 2u);
  EXPECT_TRUE(history.pieces[1].is_outside);
  EXPECT_EQ(history.pieces[1].content[0], 3u);
}

TEST(HistoryTest, MemoryWithoutAFileIsItsOwn) {
  LogBuilder log;
  log.map(1, kAddress, std::vector<uint64_t>(8), "");
  log.map(2, kAddress * 2, std::vector<uint64_t>(8), "");
  const History history = log.history();
  ASSERT_EQ(history.files.size(), 2u);
  EXPECT_EQ(history.files[1].image_bytes, 64u);
}

// Of a device, and of a file that was removed, no length is recorded.
TEST(HistoryTest, AnImageWithoutALengthEndsWithWhatWasMapped) {
  LogBuilder log;
  log.map(1, kAddress, std::vector<uint64_t>(16));
  const persist::MapPayload map = {.file_offset = 64, .file_bytes = 0};
  std::string payload(reinterpret_cast<const char*>(&map), sizeof map);
  log.unmap(1);
  log.add({.kind = RecordKind::kMap, .number = 1, .address = kAddress, .length = 128},
          payload + "/dev/dax0.0");
  const History history = log.history();
  EXPECT_EQ(history.damage, "");
  ASSERT_EQ(history.files.size(), 2u);
  EXPECT_EQ(history.files[1].path, "/dev/dax0.0");
  EXPECT_EQ(history.files[1].image_bytes, 192u);
}

// What precedes the damage is read.
class DamageTest : public testing::Test {
 protected:
  void SetUp() override {
    log_.map(1, kAddress, std::vector<uint64_t>(16));
    log_.fence(1, 1);
  }
  void expect(const std::string& why) const {
    const History history = log_.history();
    EXPECT_EQ(history.events.size(), 2u);
    EXPECT_TRUE(history.damage.ends_with(": " + why)) << history.damage;
  }
  LogBuilder log_;
};

TEST_F(DamageTest, OfARecord) {
  log_.fence(1, 1);
  log_.log().back() ^= 1;
  expect("no record");
}
TEST_F(DamageTest, OfARecordsEnd) {
  log_.marker("text that is cut off");
  log_.log().resize(log_.log().size() - 8);
  expect("a record of an impossible length");
}
TEST_F(DamageTest, OfAKind) {
  log_.add({.kind = RecordKind{99}});
  expect("a record of no kind");
}
TEST_F(DamageTest, OfAStoreBeyondItsMapping) {
  log_.store(1, 1, kAddress + 120, {1, 2});
  expect("an access outside of all mappings");
}
TEST_F(DamageTest, OfAStoreWithoutItsContent) {
  log_.add({.kind = RecordKind::kStore, .address = kAddress, .length = 16}, "eight___");
  expect("a store that does not fit");
}
TEST_F(DamageTest, OfAFlush) {
  log_.flush(1, 1, kAddress + 8);
  expect("a flush that does not fit");
}
TEST_F(DamageTest, OfAMappingTwice) {
  log_.map(1, kAddress * 2, std::vector<uint64_t>(16));
  expect("a mapping that is there");
}
TEST_F(DamageTest, OfAMappingWithoutContent) {
  log_.add({.kind = RecordKind::kMap, .number = 9, .address = kAddress * 2, .length = 64},
           std::string(24, '\0'));
  expect("what was in a domain is not beside the log");
}
TEST_F(DamageTest, OfAMappingThatWouldTakeAllMemory) {
  log_.map(2, kAddress * 2, std::vector<uint64_t>(8), "g", uint64_t{1} << 39);
  expect("a mapping too far into its file");
}
TEST_F(DamageTest, OfAnEnd) {
  log_.unmap(7);
  expect("the end of no mapping");
}

TEST(HistoryTest, WhatIsNoLogIsRefused) {
  std::string why;
  const LoadContent none = [](uint32_t, uint64_t) { return std::nullopt; };
  EXPECT_FALSE(read_history(std::vector<char>(10), none, why));
  EXPECT_EQ(why, "is not a log of a recorded program");
  EXPECT_FALSE(read_history(std::vector<char>(1000), none, why));
  LogBuilder log;
  log.log()[8] = 2;
  EXPECT_FALSE(read_history(log.log(), none, why));
  EXPECT_EQ(why, "is a log of another version");
}

[[gnu::noinline]] const void* site_of_caller() { return __builtin_return_address(0); }

// As a program leaves it, and a check reads it later.
TEST(HistoryTest, ReadsWhatARecorderWrites) {
  std::string name = testing::TempDir() + "history_test.XXXXXX";
  const std::string folder = mkdtemp(name.data()), path = folder + "/log";
  alignas(64) static uint64_t memory[64];
  memory[60] = 4;
  const auto recorder = std::make_unique<persist::Recorder>();
  ASSERT_TRUE(recorder->start({.path = path.c_str()}));
  ASSERT_TRUE(recorder->map(memory, sizeof memory, "x", 0, sizeof memory));
  for (uint64_t i = 0; i < 40'000; ++i) {
    memory[i % 64] = i;
    recorder->store(&memory[i % 64], 8, __builtin_return_address(0));
  }
  const void* const site = site_of_caller();
  recorder->flush(memory, sizeof memory, false, site);
  recorder->fence(site);
  recorder->finish();
  const History history = read_history(path);
  std::filesystem::remove_all(folder);
  EXPECT_EQ(history.damage, "");
  EXPECT_TRUE(history.is_ended);
  EXPECT_EQ(history.events.size(), 40'004u);
  EXPECT_EQ(history.files[0].initial[7][4], 4u);
  EXPECT_EQ(history.pieces.back().content[63 % 8], 39'999u / 64 * 64 - 1 + 64 * (39'999 % 64 == 63));
  const uint64_t sites[] = {reinterpret_cast<uint64_t>(site)};
  EXPECT_NE(Sites(history, sites).name(sites[0]).find("history_test.cc:"), std::string::npos)
      << Sites(history, sites).name(sites[0]);
}

TEST(SitesTest, HaveNamesWithoutDebugInformation) {
  LogBuilder log;
  log.module(0x1000, 0x1000, 0x200, "/nowhere/libx.so");
  const History history = log.history();
  const uint64_t sites[] = {0, 0x1010, 0x5000};
  const Sites named(history, sites);
  EXPECT_EQ(named.name(0), "unknown code");
  EXPECT_EQ(named.name(0x1010), "libx.so+0x210");
  EXPECT_EQ(named.name(0x5000), "code at 0x5000");
  EXPECT_EQ(named.place(0x1010), "");
}

}  // namespace
}  // namespace persist_check
