#include "kv_dump.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace tools {
namespace {

using Event = DumpReader::Event;

struct Record {
  std::string key, value;
  uint32_t flags = 0;
  uint64_t expires_ms = 0;
  bool operator==(const Record&) const = default;
};

struct Reading {
  std::vector<Record> records;
  int void_count = 0;
  bool is_whole = false;
  std::string problem;
  uint64_t offset = 0;
};

// Reads a dump that comes in pieces of so many bytes.
Reading read(const std::string& text, size_t piece_bytes = 1 << 20) {
  DumpReader reader;
  Reading reading;
  Record record;
  bool is_malformed = false;
  for (size_t at = 0; at < text.size() && !is_malformed; at += piece_bytes) {
    std::string_view piece = std::string_view(text).substr(at, piece_bytes);
    for (Event event = reader.next(piece); event != Event::kMore; event = reader.next(piece)) {
      if (event == Event::kRecord)
        record = {reader.record().key, "", reader.record().flags, reader.record().expires_ms};
      if (event == Event::kValue) record.value += reader.value();
      if (event == Event::kEndOfRecord) reading.records.push_back(record);
      if (event == Event::kVoidRecord) ++reading.void_count;
      is_malformed = event == Event::kMalformed;
      if (is_malformed) break;
    }
    EXPECT_TRUE(piece.empty() || is_malformed);
  }
  reading.is_whole = !is_malformed && reader.ended();
  reading.problem = reader.problem();
  reading.offset = reader.offset();
  EXPECT_EQ(reader.record_count(), reading.records.size());
  return reading;
}

std::string write(const std::vector<Record>& records) {
  std::string text(kDumpFirstLine);
  for (const Record& record : records) {
    text += dump_record_begin({record.key, record.value.size(), record.flags, record.expires_ms});
    text += record.value;
    text += kDumpRecordEnd;
  }
  return text + dump_last_line(records.size());
}

TEST(KvDump, IsWrittenAsTheDocumentationShows) {
  EXPECT_EQ(write({{"one", "first", 0, 0}, {"two\n2", "a\nbc", 7, 1767225600000}}),
            "spillway-dump 1\n+3,5,0,0:one->first\n+5,4,7,1767225600000:two\n2->a\nbc\n.2\n");
  EXPECT_EQ(write({}), "spillway-dump 1\n.0\n");
}

TEST(KvDump, IsReadAsItWasWrittenHoweverItComes) {
  std::string all_bytes;
  for (int c = 0; c < 256; ++c) all_bytes += static_cast<char>(c);
  const std::vector<Record> records = {{"one", "first", 0, 0},
                                       {"empty", "", 0, 0},
                                       {all_bytes, all_bytes + all_bytes, ~0u, (uint64_t{1} << 48) - 1},
                                       {"->", "\n.1\n", 1, 1},
                                       {std::string(64 << 10, 'k'), std::string(200'000, 'v'), 0, 0}};
  const std::string text = write(records);
  for (size_t piece_bytes : {size_t{1}, size_t{2}, size_t{7}, size_t{4096}, text.size()}) {
    const Reading reading = read(text, piece_bytes);
    EXPECT_TRUE(reading.is_whole) << piece_bytes << ": " << reading.problem;
    EXPECT_EQ(reading.records, records) << piece_bytes;
    EXPECT_EQ(reading.offset, text.size());
  }
}

TEST(KvDump, AVoidRecordDoesNotCount) {
  const std::string void_record = dump_record_begin({"three", 2, 0, 0}) + std::string(2, '\0') + "!\n";
  EXPECT_EQ(void_record.substr(void_record.size() - kDumpRecordVoid.size()), kDumpRecordVoid);
  std::string text = write({{"one", "first", 0, 0}, {"two", "", 7, 9}});
  text.insert(text.find("+3,0"), void_record);
  for (size_t piece_bytes : {size_t{1}, text.size()}) {
    const Reading reading = read(text, piece_bytes);
    EXPECT_TRUE(reading.is_whole) << reading.problem;
    EXPECT_EQ(reading.records, (std::vector<Record>{{"one", "first", 0, 0}, {"two", "", 7, 9}}));
    EXPECT_EQ(reading.void_count, 1u);
  }
}

TEST(KvDump, WhatWasCutShortIsNotWhole) {
  const std::string text = write({{"one", "first", 0, 0}, {"two", "", 7, 9}});
  ASSERT_TRUE(read(text).is_whole);
  for (size_t bytes = 0; bytes < text.size(); ++bytes) {
    const Reading reading = read(text.substr(0, bytes));
    EXPECT_FALSE(reading.is_whole) << bytes;
    EXPECT_EQ(reading.offset, bytes);
    EXPECT_EQ(reading.records.size(), (bytes >= 36 ? 1u : 0u) + (bytes >= text.size() - 3 ? 1u : 0u))
        << bytes;
    EXPECT_NE(reading.problem, "");
  }
}

TEST(KvDump, WhatIsMalformedIsRefusedWhereItIs) {
  const std::string first(kDumpFirstLine);
  const std::string record = "+3,1,0,0:one->x\n";
  const struct {
    std::string text;
    size_t offset;
    const char* says;
  } kCases[] = {
      {"+3,1,0,0:one->x\n", 0, "not a dump"},
      {"spillway-dump 2\n", 14, "newer version"},
      {"spillway-dump 1\r\n", 15, "not a dump"},
      {"spillway-dump 1x\n", 15, "not a dump"},
      {first + "\n", 16, "not '\\x0a'"},
      {first + record + "3,1,0,0:one->x\n", 32, "not '3'"},
      {first + "+,1,0,0:->x\n", 17, "bytes of a key"},
      {first + "+0,1,0,0:->x\n", 18, "less than 1"},
      {first + "+03,1,0,0:one->x\n", 18, "begins with a 0"},
      {first + "+65537,1,0,0:", 21, "more than 65536"},
      {first + "+-3,1,0,0:one->x\n", 17, "not '-'"},
      {first + "+ 3,1,0,0:one->x\n", 17, "not ' '"},
      {first + "+3,4294967297,0,0:one->x\n", 28, "bytes of a value is more"},
      {first + "+3,1,4294967296,0:one->x\n", 30, "flags is more"},
      {first + "+3,1,0,281474976710656:one->x\n", 37, "expiry is more"},
      {first + "+3,1,0:one->x\n", 22, "not ':'"},
      {first + "+3,1,0,0,one->x\n", 24, "not ','"},
      {first + "+2,1,0,0:one->x\n", 27, "'->'"},
      {first + "+4,1,0,0:one->x\n", 29, "'->'"},
      {first + "+3,1,0,0:one-x\n", 29, "'->'"},
      {first + "+3,2,0,0:one->x\n.1\n", 32, "not '.'"},
      {first + "+3,0,0,0:one->x\n", 30, "not 'x'"},
      {first + "+3,1,0,0:one->x!!\n.1\n", 32, "after '!', not '!'"},
      {first + "+3,1,0,0:one->x!\n.1\n", 35, "counts 1 records, but there are 0"},
      {first + record + ".2\n", 34, "counts 2 records, but there are 1"},
      {first + record + ".01\n", 34, "begins with a 0"},
      {first + record + ".\n", 33, "count of records"},
      {first + record + ".18446744073709551616\n", 52, "more than"},
      {first + record + ".1\n\n", 35, "after the last line"},
      {first + record + ".1\n" + record, 35, "after the last line"},
  };
  for (const auto& [text, offset, says] : kCases) {
    for (size_t piece_bytes : {size_t{1}, text.size()}) {
      const Reading reading = read(text, piece_bytes);
      EXPECT_FALSE(reading.is_whole) << text;
      EXPECT_EQ(reading.offset, offset) << text;
      EXPECT_NE(reading.problem.find(says), std::string::npos) << text << reading.problem;
    }
  }
}

TEST(KvDump, WhatIsMalformedStaysSo) {
  DumpReader reader;
  std::string_view input = "nonsense";
  EXPECT_EQ(reader.next(input), Event::kMalformed);
  input = kDumpFirstLine;
  EXPECT_EQ(reader.next(input), Event::kMalformed);
  EXPECT_FALSE(reader.ended());
  EXPECT_NE(reader.problem().find("not a dump"), std::string::npos);
}

}  // namespace
}  // namespace tools
