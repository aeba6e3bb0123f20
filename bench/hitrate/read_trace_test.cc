#include "hitrate/read_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

using hitrate::Format;

namespace {

std::string bytes_of(std::initializer_list<uint64_t> numbers, size_t bytes) {
  std::string content;
  for (const uint64_t number : numbers) content.append(reinterpret_cast<const char*>(&number), bytes);
  return content;
}
std::string oracle(std::initializer_list<uint64_t> ids) {
  std::string content;
  for (const uint64_t id : ids)
    content += bytes_of({1}, 4) + bytes_of({id}, 8) + bytes_of({4096}, 4) + bytes_of({~uint64_t{0}}, 8);
  return content;
}

void expect_accesses(Format format, std::string_view content, const std::vector<uint32_t>& accesses,
                     uint64_t most = 0) {
  hitrate::TraceBuilder builder(most);
  const auto read = hitrate::read_trace(format, content, "FILE", builder);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  const hitrate::Trace trace = builder.take();
  EXPECT_EQ(trace.accesses, accesses);
  EXPECT_EQ(trace.page_count, 1 + *std::max_element(accesses.begin(), accesses.end()));
}
void expect_error(Format format, std::string_view content, std::string_view message) {
  hitrate::TraceBuilder builder;
  const auto read = hitrate::read_trace(format, content, "FILE", builder);
  ASSERT_FALSE(read.has_value()) << content;
  EXPECT_EQ(read.error().number, EINVAL);
  EXPECT_EQ(std::string_view(read.error().message), message);
}

TEST(ReadTraceTest, Records) {
  const uint64_t large = uint64_t{7} << 40;
  expect_accesses(Format::kOracle, oracle({large, 5, large + 1, large}), {0, 1, 2, 0});
  expect_accesses(Format::kU32, bytes_of({9, 8, 9, 9}, 4), {0, 1, 0, 0});
  expect_accesses(Format::kU64, bytes_of({large, large + 1, large, 0}, 8), {0, 1, 0, 2});
}

TEST(ReadTraceTest, RecordsThatEndEarly) {
  expect_error(Format::kOracle, oracle({1, 2}).substr(0, 47),
               "FILE, offset 24: ends within a record of 24 bytes");
  expect_error(Format::kU32, bytes_of({1, 2}, 4).substr(0, 5),
               "FILE, offset 4: ends within a record of 4 bytes");
  expect_error(Format::kU64, bytes_of({1}, 4), "FILE, offset 0: ends within a record of 8 bytes");
}

TEST(ReadTraceTest, Csv) {
  expect_accesses(Format::kCsv, "1,7,4096\n2,8,512\n2,7,1\n", {0, 1, 0});
  expect_accesses(Format::kCsv, "7\r\n0xff\r\n\r\n255", {0, 1, 1});
  expect_accesses(Format::kCsv, "size, obj_id ,time\n1, 3 ,5\n1,4,3\n", {0, 1});
  expect_accesses(Format::kCsv, "id\n18446744073709551615\n", {0});
}

TEST(ReadTraceTest, WrongCsv) {
  expect_error(Format::kCsv, "1,7\n2,seven\n", "FILE, line 2: 'seven' in column 2 is no number");
  expect_error(Format::kCsv, "1,7\n\n2\n", "FILE, line 3: '' in column 2 is no number");
  expect_error(Format::kCsv, "time,object\n1,7\n",
               "FILE, line 1: no column is called id, obj_id, object_id, key, page or block, and 'object' is "
               "no number");
  expect_error(Format::kCsv, "1,7\n2,18446744073709551616\n",
               "FILE, line 2: '18446744073709551616' in column 2 is no number");
  expect_error(Format::kCsv, "1,7\n2,-1\n", "FILE, line 2: '-1' in column 2 is no number");
  expect_error(Format::kCsv, "1,7\n2,0x\n", "FILE, line 2: '0x' in column 2 is no number");
}

TEST(ReadTraceTest, SpcIsAskedForPages) {
  // 4 KiB at 0; 512 bytes at 7 * 512, the end of that page; 512 at 8 * 512, the next; 4 KiB across both; unit 1.
  expect_accesses(Format::kSpc,
                  "0,0,4096,r,0.1\n0,7,512,W,0.2\n0,8,512,w,0.3\n0,4,4096,R,0.4\n1,0,512,r,0.5,more\n",
                  {0, 0, 1, 0, 1, 2});
}

TEST(ReadTraceTest, WrongSpc) {
  expect_error(Format::kSpc, "0,0,512,r,1\n65536,0,512,r,1\n",
               "FILE, line 2: '65536' is no unit: a number up to 65535");
  expect_error(Format::kSpc, "0,281474976710656,512,r,1\n",
               "FILE, line 1: '281474976710656' is no block: a number below 2^48");
  expect_error(Format::kSpc, "0,0,0,r,1\n", "FILE, line 1: '0' is no number of bytes: from 1 to 64 G");
  expect_error(Format::kSpc, "0,0,512,x,1\n", "FILE, line 1: 'x' is neither r nor w");
  expect_error(Format::kSpc, "0,0,512,,1\n", "FILE, line 1: '' is neither r nor w");
  expect_error(Format::kSpc, "0,0,512,r\n", "FILE, line 1: there is no time");
}

TEST(ReadTraceTest, ArcCountsBlocks) {
  expect_accesses(Format::kArc, "10 3 0 0\n11  1 0 1\n\n\t12 2 0 2\n", {0, 1, 2, 1, 2, 3});
  expect_accesses(Format::kArc, "18446744073709551615 1 0 0\n", {0});
}

TEST(ReadTraceTest, WrongArc) {
  expect_error(Format::kArc, "10 1 0 0\n10 1 0\n",
               "FILE, line 2: four numbers are needed: block, count and two that are ignored");
  expect_error(Format::kArc, "10 1 0 a\n", "FILE, line 1: 'a' is no number");
  expect_error(Format::kArc, "10 0 0 0\n",
               "FILE, line 1: 0 is no count of blocks from 10 on: from 1 to 16777216");
  expect_error(Format::kArc, "10 16777217 0 0\n",
               "FILE, line 1: 16777217 is no count of blocks from 10 on: from 1 to 16777216");
  expect_error(Format::kArc, "18446744073709551615 2 0 0\n",
               "FILE, line 1: 2 is no count of blocks from 18446744073709551615 on: from 1 to 16777216");
}

TEST(ReadTraceTest, Lirs) {
  expect_accesses(Format::kLirs, "5\n6\n*\n5\n", {0, 1, 0});
  expect_error(Format::kLirs, "5\n6x\n", "FILE, line 2: '6x' is neither a block's number nor *");
  expect_error(Format::kLirs, "5\nsix\n", "FILE, line 2: 'six' is neither a block's number nor *");
}

TEST(ReadTraceTest, ContentWithoutAnAccess) {
  for (const Format format :
       {Format::kOracle, Format::kCsv, Format::kSpc, Format::kArc, Format::kLirs, Format::kU32, Format::kU64})
    expect_error(format, "", "FILE: there is no access in it");
  expect_error(Format::kCsv, "id\n", "FILE: there is no access in it");
  expect_error(Format::kLirs, "\n*\n", "FILE: there is no access in it");
}

TEST(ReadTraceTest, AccessesBehindTheMostAreDropped) {
  expect_accesses(Format::kArc, "10 3 0 0\nwrong\n", {0, 1}, 2);
  expect_accesses(Format::kU32, bytes_of({4, 5, 6}, 4), {0, 1}, 2);
  expect_accesses(Format::kCsv, "4\n5\n6\n", {0, 1}, 2);
}

TEST(ReadTraceTest, AMessageIsOneLineOfText) {
  expect_error(Format::kLirs, std::string_view("a\0b\rc\xff\n", 7),
               "FILE, line 1: 'a?b?c?' is neither a block's number nor *");
  expect_error(Format::kLirs, std::string(1000, 'x'),
               "FILE, line 1: '" + std::string(40, 'x') + "' is neither a block's number nor *");
}

TEST(ReadTraceTest, FilesThatCannotBeRead) {
  const auto missing = hitrate::read_trace_file(Format::kU32, "/nowhere/trace", 0);
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(std::string_view(missing.error().message), "/nowhere/trace: No such file or directory");
  const auto folder = hitrate::read_trace_file(Format::kU32, "/", 0);
  ASSERT_FALSE(folder.has_value());
  EXPECT_EQ(std::string_view(folder.error().message), "/: Is a directory");
}

TEST(ReadTraceTest, FormatsByName) {
  const char* const names[] = {"oracle", "csv", "spc", "arc", "lirs", "u32", "u64"};
  for (unsigned i = 0; i < std::size(names); ++i) {
    const auto format = hitrate::parse_format(names[i]);
    ASSERT_TRUE(format.has_value());
    EXPECT_EQ(*format, static_cast<Format>(i));
  }
  const auto wrong = hitrate::parse_format("tar");
  ASSERT_FALSE(wrong.has_value());
  for (const char* name : names)
    EXPECT_NE(std::string_view(wrong.error().message).find(name), std::string_view::npos);
}

}  // namespace
