#include "storage/decorators/trace.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "storage/decorators/trace_reader.h"
#include "storage/decorators/trace_replay.h"
#include "storage/opening/open.h"
#include "storage/testing/test_process.h"
#include "storage/testing/test_queue.h"

namespace storage {
namespace {

class TraceTest : public QueueTest {
 protected:
  void SetUp() override {
    directory = testing::TempDir() + "spillway-traces-" + std::to_string(getpid());
    std::filesystem::create_directory(directory);
    path = directory + "/trace";
  }
  void TearDown() override {
    close();
    reader.close();
    std::filesystem::remove_all(directory);
  }
  void open(const std::string& inner) { open_queue_of("trace:file=" + path + ":[" + inner + "]"); }
  const std::vector<TraceRecord> records() {
    reader.close();
    auto read = reader.open(path);
    EXPECT_TRUE(read.has_value()) << read.error().message;
    return {reader.trace().records.begin(), reader.trace().records.end()};
  }
  std::string refusal() {
    auto opened = open_device("trace:file=" + path + ":[memory:1M]", {});
    if (!opened) return opened.error().message;
    (*opened)->close();
    return "opened";
  }

  std::string directory, path;
  TraceReader reader;
};

TEST_F(TraceTest, RecordsWhatWasAskedAndHowItWent) {
  open("fault:read_eio=@2,read_short=@3,write_delay_us=@1x3000:[memory:1M]");
  run(Operation::kWrite, 2 * kBlock, 3 * kBlock);
  run(Operation::kRead, 0, kBlock);
  run(Operation::kRead, kBlock, kBlock);
  run(Operation::kRead, 4 * kBlock, 2 * kBlock);
  run(Operation::kDiscard, 8 * kBlock, kBlock);
  run(Operation::kFlush, 0, 0);
  Queue* second = device->open_queue(2).value();
  TestIo last(Operation::kRead, 9 * kBlock, {kBlock});
  second->run(last.io);
  device->close_queue(second);
  close();
  const auto all = records();
  EXPECT_EQ(reader.trace().header.capacity_bytes, uint64_t{1} << 20);
  ASSERT_EQ(all.size(), 7u);
  struct Expected {
    Operation operation;
    uint64_t offset, length, transferred;
    int error;
    uint32_t queue;
  };
  const Expected expected[] = {
      {Operation::kWrite, 2, 3, 3, 0, 0},   {Operation::kRead, 0, 1, 1, 0, 0},
      {Operation::kRead, 1, 1, 0, EIO, 0},  {Operation::kRead, 4, 2, 1, 0, 0},
      {Operation::kDiscard, 8, 1, 1, 0, 0}, {Operation::kFlush, 0, 0, 0, 0, 0},
      {Operation::kRead, 9, 1, 1, 0, 1},
  };
  for (size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(all[i].operation, static_cast<int>(expected[i].operation) + 1) << i;
    EXPECT_EQ(all[i].offset_bytes, expected[i].offset * kBlock) << i;
    EXPECT_EQ(all[i].length_bytes, expected[i].length * kBlock) << i;
    EXPECT_EQ(all[i].transferred_bytes, expected[i].transferred * kBlock) << i;
    EXPECT_EQ(all[i].error, expected[i].error) << i;
    EXPECT_EQ(all[i].queue, expected[i].queue) << i;
    if (i > 0) EXPECT_GE(all[i].start_ns, all[i - 1].start_ns + all[i - 1].latency_ns);
  }
  EXPECT_GE(all[0].latency_ns, 3'000'000u);
}

TEST_F(TraceTest, ManyOfSeveralThreads) {
  open("memory:1M");
  for (int i = 0; i < 2500; ++i) run(Operation::kRead, 0, kBlock);
  Queue* second = device->open_queue(8).value();
  EXPECT_TRUE(use(*second, 0));
  device->close_queue(second);
  EXPECT_EQ(std::filesystem::file_size(path), 32u + 48 * (2048 + 16))
      << "1,024 at a time, and the rest at the end";
  close();
  EXPECT_EQ(records().size(), 2516u);
}

TEST_F(TraceTest, OtherFilesAreLeftAlone) {
  for (const char* content : {"precious", "x"}) {
    std::ofstream(path) << content;
    EXPECT_NE(refusal().find("is not a trace"), std::string::npos);
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    EXPECT_EQ(text.str(), content);
  }
  unlink(path.c_str());
  open("memory:1M");
  EXPECT_NE(refusal().find("another trace is being written"), std::string::npos);
  close();
  EXPECT_EQ(refusal(), "opened");
  path = directory + "/no/such";
  EXPECT_NE(refusal().find("no such file"), std::string::npos);
  path = directory;
  EXPECT_NE(refusal(), "opened");
}

// What it cannot write it says once; requests go on.
TEST_F(TraceTest, WithoutRoomTracingEnds) {
  open("memory:1M");
  rlimit old_limit;
  getrlimit(RLIMIT_FSIZE, &old_limit);
  rlimit limit = {60000, old_limit.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  testing::internal::CaptureStderr();
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(run(Operation::kRead, 0, kBlock)->io.whole());
  const std::string said = testing::internal::GetCapturedStderr();
  setrlimit(RLIMIT_FSIZE, &old_limit);
  EXPECT_EQ(count_of(said, "\n"), 1u) << said;
  EXPECT_NE(said.find("file too large; tracing ends"), std::string::npos) << said;
  close();
  EXPECT_EQ(records().size(), 1024u);
}

#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)  // they need calls of their own
TEST_F(TraceTest, AFullDiskEndsTracingOnly) {
  EXPECT_EQ(in_child([&] {
              open("memory:1M");
              if (!fail_call(SYS_pwrite64, ENOSPC)) return false;
              testing::internal::CaptureStderr();
              bool good = true;
              for (int i = 0; i < 3000; ++i) good = good && run(Operation::kRead, 0, kBlock)->io.whole();
              const std::string said = testing::internal::GetCapturedStderr();
              close();
              return good && count_of(said, "\n") == 1 && said.find("no space left") != std::string::npos;
            }),
            0);
}
#endif

TEST_F(TraceTest, AChildIsNotRecorded) {
  open("memory:1M");
  run(Operation::kRead, 0, kBlock);
  EXPECT_EQ(in_child([&] {
              run(Operation::kRead, kBlock, kBlock);
              device->close_queue(queue);
              Queue* own = device->open_queue(4).value();
              const bool good = static_cast<bool>(use(*own, 0));
              device->close_queue(own);
              return good;
            }),
            0);
  close();
  EXPECT_EQ(records().size(), 1u);
}

std::string with_header(const TraceHeader& header, std::vector<TraceRecord> records,
                        const std::string& more = "") {
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes.append(reinterpret_cast<const char*>(records.data()), records.size() * sizeof(TraceRecord));
  return bytes + more;
}

TraceRecord a_record(uint64_t start_ns, uint64_t offset_bytes, Operation operation) {
  TraceRecord record = {};
  record.start_ns = start_ns;
  record.offset_bytes = offset_bytes;
  record.length_bytes = 512;
  record.operation = static_cast<uint8_t>(static_cast<uint8_t>(operation) + 1);
  return record;
}

TraceHeader a_header() {
  TraceHeader header = {{}, kTraceVersion, sizeof(TraceRecord), 1 << 20, 512, 0};
  memcpy(header.magic, kTraceMagic, sizeof kTraceMagic);
  return header;
}

// What parse_trace says of these bytes: the starts of the records, or the error.
std::string parsed(std::string bytes) {
  std::vector<uint64_t> aligned(bytes.size() / 8 + 1);
  memcpy(aligned.data(), bytes.data(), bytes.size());
  auto trace = parse_trace({reinterpret_cast<char*>(aligned.data()), bytes.size()});
  if (!trace) return trace.error().message;
  std::string starts;
  for (const TraceRecord& record : trace->records) starts += std::to_string(record.start_ns) + " ";
  return starts;
}

TEST(TraceReader, PutsThemInOrder) {
  const TraceRecord one = a_record(1, 512, Operation::kRead), two = a_record(2, 0, Operation::kWrite),
                    three = a_record(3, 512, Operation::kRead);
  EXPECT_EQ(parsed(with_header(a_header(), {})), "");
  EXPECT_EQ(parsed(with_header(a_header(), {three, TraceRecord{}, one, TraceRecord{}, two},
                               "the rest of a record")),
            "1 2 3 ");
}

TEST(TraceReader, RefusesWhatIsNone) {
  const TraceRecord good = a_record(1, 512, Operation::kRead);
  EXPECT_NE(parsed("").find("too short"), std::string::npos);
  EXPECT_NE(parsed(with_header(a_header(), {}).substr(0, 31)).find("too short"), std::string::npos);
  TraceHeader header = a_header();
  header.magic[3] = 'x';
  EXPECT_NE(parsed(with_header(header, {good})).find("does not begin with"), std::string::npos);
  header = a_header();
  header.version = 2;
  EXPECT_NE(parsed(with_header(header, {good})).find("version 2"), std::string::npos);
  header = a_header();
  header.record_bytes = 40;
  EXPECT_NE(parsed(with_header(header, {good})).find("40 bytes"), std::string::npos);
  for (uint32_t block : {0u, 3u, 8192u}) {
    header = a_header();
    header.block_bytes = block;
    EXPECT_NE(parsed(with_header(header, {good})).find("there are none"), std::string::npos);
  }
  auto refused = [&](auto change) {
    TraceRecord record = good;
    change(record);
    const std::string said = parsed(with_header(a_header(), {good, record}));
    return said.starts_with("storage: record 1 of the trace: ");
  };
  EXPECT_TRUE(refused([](TraceRecord& r) { r.operation = 0; }));
  EXPECT_TRUE(refused([](TraceRecord& r) { r.operation = 5; }));
  EXPECT_TRUE(refused([](TraceRecord& r) { r.operation = 4; })) << "a flush has no place";
  EXPECT_TRUE(refused([](TraceRecord& r) { r.length_bytes = 0; }));
  EXPECT_TRUE(refused([](TraceRecord& r) { r.length_bytes = 100; }));
  EXPECT_TRUE(refused([](TraceRecord& r) { r.offset_bytes = 1 << 20; }));
  EXPECT_TRUE(refused([](TraceRecord& r) { r.offset_bytes = ~uint64_t{511}; }));
  EXPECT_TRUE(refused([](TraceRecord& r) { r.length_bytes = ~uint64_t{511}; }));
  EXPECT_TRUE(refused([](TraceRecord& r) { r.transferred_bytes = 513; }));
}

// A trace of a replay of a trace is that trace again, but for the times.
TEST_F(TraceTest, ReplaysTheSame) {
  open("memory:256M");
  std::vector<std::unique_ptr<TestIo>> ios;
  std::vector<Io*> batch;
  for (uint64_t i = 0; i < 200; ++i) {
    // Many touch the same bytes as others before them.
    ios.push_back(std::make_unique<TestIo>(i % 3 == 0 ? Operation::kWrite : Operation::kRead, i % 40 * kBlock,
                                           std::vector{(1 + i % 4) * kBlock}));
  }
  for (auto& io : ios) queue->run(io->io);
  run(Operation::kFlush, 0, 0);
  run(Operation::kDiscard, kBlock, 4 * kBlock);
  run(Operation::kWrite, 0, 100 << 20);  // more than one Io of a replay can be
  close();
  const auto before = records();
  ASSERT_EQ(before.size(), 203u);

  TraceReader first;
  ASSERT_TRUE(first.open(path).has_value());
  path = directory + "/again";
  open("fault:any_delay_polls=1/2x3:[memory:256M]");
  auto result = replay_trace(first.trace(), *device, {.timed = false, .depth = 16});
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_EQ(result->request_count, 203u);
  EXPECT_EQ(result->error_count, 0u);
  first.close();
  close();
  const auto after = records();
  ASSERT_EQ(after.size(), 204u);
  for (size_t i = 0; i < 202; ++i) {
    EXPECT_EQ(after[i].operation, before[i].operation) << i;
    EXPECT_EQ(after[i].offset_bytes, before[i].offset_bytes) << i;
    EXPECT_EQ(after[i].length_bytes, before[i].length_bytes) << i;
  }
  EXPECT_EQ(after[202].length_bytes + after[203].length_bytes, uint64_t{100} << 20);
  // What may not be under way at a time was not.
  for (size_t i = 0; i < after.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const bool apart = after[i].offset_bytes + after[i].length_bytes <= after[j].offset_bytes ||
                         after[j].offset_bytes + after[j].length_bytes <= after[i].offset_bytes;
      const bool both_read = after[i].operation == 1 && after[j].operation == 1;
      if (apart || both_read) continue;
      EXPECT_LE(after[j].start_ns + after[j].latency_ns, after[i].start_ns) << j << " and " << i;
    }
  }
}

TEST_F(TraceTest, ReplaysInTime) {
  TraceRecord records[3];
  for (uint64_t i = 0; i < 3; ++i)
    records[i] = a_record(7'000'000 + i * 20'000'000, i * 512, Operation::kWrite);
  const Trace trace = {a_header(), records};
  Device* memory = open_device("fault:write_eio=@2,write_short=@3:[memory:1M]", {}).value();
  auto result = replay_trace(trace, *memory, {.timed = true, .depth = 4});
  ASSERT_TRUE(result.has_value());
  EXPECT_GE(result->duration_ns, 40'000'000u);
  EXPECT_EQ(result->request_count, 3u);
  EXPECT_EQ(result->error_count, 2u) << "short ones too";
  memory->close();
  Device* small = open_device("memory:512K", {}).value();
  EXPECT_EQ(replay_trace(trace, *small, {}).error().number, EINVAL);
  small->close();
}

// All are due at once, and touch the same bytes: the last is late, by what the first takes, if anybody looks at the time.
TEST_F(TraceTest, ReplaysAsFastAsItCan) {
  TraceRecord records[3];
  for (TraceRecord& record : records) record = a_record(7'000'000, 0, Operation::kWrite);
  const Trace trace = {a_header(), records};
  Device* slow = open_device("latency:us=5000:[memory:1M]", {}).value();
  auto result = replay_trace(trace, *slow, {.timed = true, .depth = 4});
  ASSERT_TRUE(result.has_value());
  EXPECT_GE(result->late_count, 1u);
  result = replay_trace(trace, *slow, {.timed = false, .depth = 4});
  ASSERT_TRUE(result.has_value());
  EXPECT_GE(result->duration_ns, 15'000'000u) << "one after the other";
  EXPECT_EQ(result->late_count, 0u);
  slow->close();
}

}  // namespace
}  // namespace storage
