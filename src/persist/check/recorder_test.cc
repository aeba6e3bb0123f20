#include "persist/check/recorder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include "sys/test_interrupted_calls.h"

namespace persist {
namespace {

constexpr RecordKind kMap = RecordKind::kMap, kUnmap = RecordKind::kUnmap, kStore = RecordKind::kStore,
                     kFlush = RecordKind::kFlush, kFence = RecordKind::kFence, kMarker = RecordKind::kMarker,
                     kModule = RecordKind::kModule, kFull = RecordKind::kFull, kExit = RecordKind::kExit;

struct Read {
  Record record;
  std::string payload;
};

class RecorderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "recorder_test.XXXXXX";
    folder_ = mkdtemp(name.data());
    memset(memory_, 0, sizeof memory_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void start(RecorderOptions options = {}) {
    options.path = path_storage().c_str();
    const auto started = recorder_->start(options);
    ASSERT_TRUE(started) << started.error().message;
    ASSERT_TRUE(recorder_->map(memory_, sizeof memory_, "/some/file", 128, 5000));
  }
  const std::string& path_storage() {
    path_ = folder_ + "/log";
    return path_;
  }
  std::vector<Read> read(bool with_modules = false) {
    std::ifstream file(folder_ + "/log", std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    std::vector<Read> all;
    for (uint64_t at = kWindowBytes; at + sizeof(Record) <= bytes.size();) {
      Record record;
      memcpy(&record, bytes.data() + at, sizeof record);
      if (record.bytes == 0) break;
      EXPECT_EQ(record.check, check_of(record, at));
      if (record.kind != RecordKind::kPad && (with_modules || record.kind != kModule))
        all.push_back({record, bytes.substr(at + sizeof record, record.bytes - sizeof record)});
      at += record.bytes;
    }
    return all;
  }
  std::vector<RecordKind> kinds() {
    std::vector<RecordKind> kinds;
    for (const Read& read : read()) kinds.push_back(read.record.kind);
    return kinds;
  }
  uint64_t address(uint64_t offset) const { return reinterpret_cast<uint64_t>(memory_) + offset; }

  std::string folder_, path_;
  std::unique_ptr<Recorder> recorder_ = std::make_unique<Recorder>();
  alignas(64) char memory_[8192];
};

using Kinds = std::vector<RecordKind>;

TEST_F(RecorderTest, WritesWhatItIsTold) {
  memory_[300] = 7;
  start();
  memory_[70] = 1;
  memory_[72] = 2;
  recorder_->store(memory_ + 70, 3, &folder_);
  recorder_->flush(memory_ + 70, 60, false, &folder_);
  recorder_->fence(&folder_);
  recorder_->marker("so far");
  recorder_->flush(memory_, 1, true, nullptr);
  recorder_->finish();
  const auto all = read();
  ASSERT_EQ(kinds(), (Kinds{kMap, kStore, kFlush, kFence, kMarker, kFlush, kUnmap, kExit}));
  EXPECT_EQ(all[0].record.address, address(0));
  EXPECT_EQ(all[0].record.length, sizeof memory_);
  MapPayload map;
  memcpy(&map, all[0].payload.data(), sizeof map);
  EXPECT_EQ(map.file_offset, 128u);
  EXPECT_EQ(map.file_bytes, 5000u);
  EXPECT_STREQ(all[0].payload.data() + sizeof map, "/some/file");
  EXPECT_EQ(all[1].record.address, address(64));
  EXPECT_EQ(all[1].record.length, 16u);
  EXPECT_EQ(all[1].payload, std::string(memory_ + 64, 16));
  EXPECT_EQ(all[1].record.site, reinterpret_cast<uint64_t>(&folder_));
  EXPECT_EQ(all[1].record.flags, 0);
  EXPECT_EQ(all[2].record.address, address(64));
  EXPECT_EQ(all[2].record.length, 128u);
  EXPECT_EQ(all[2].record.flags, 0);
  EXPECT_EQ(all[5].record.flags, kOrdered);
  std::ifstream copy(folder_ + "/log.1", std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(copy), {}};
  ASSERT_EQ(content.size(), sizeof memory_);
  EXPECT_EQ(content[300], 7);
  content[300] = 0;
  EXPECT_EQ(content.find_first_not_of('\0'), std::string::npos);
}

TEST_F(RecorderTest, FindsWhatNobodyTold) {
  start();
  memory_[8] = 1;     // flushed
  memory_[4096] = 2;  // not flushed, before the fence
  recorder_->flush(memory_, 8, false, nullptr);
  recorder_->fence(nullptr);
  memory_[5000] = 3;  // after the fence
  recorder_->finish();
  ASSERT_EQ(kinds(), (Kinds{kMap, kStore, kFlush, kStore, kFence, kStore, kUnmap, kExit}));
  const auto all = read();
  for (const int i : {1, 3, 5}) EXPECT_EQ(all[i].record.flags, kFound);
  EXPECT_EQ(all[1].record.address, address(8));
  EXPECT_EQ(all[1].record.length, 8u);
  EXPECT_EQ(all[3].record.address, address(4096));
  EXPECT_EQ(all[5].record.address, address(5000));
}

TEST_F(RecorderTest, ComparesAtTheEndAloneWhereStoresAreTold) {
  start({.are_stores_told = true});
  memory_[4096] = 2;
  recorder_->fence(nullptr);
  recorder_->unmap(memory_, 1);
  recorder_->finish();
  EXPECT_EQ(kinds(), (Kinds{kMap, kFence, kStore, kUnmap, kExit}));
}

TEST_F(RecorderTest, ComparesNoLargeDomainAtFences) {
  start({.compare_bytes_max = 4096});
  memory_[4096] = 2;
  recorder_->fence(nullptr);
  recorder_->finish();
  EXPECT_EQ(kinds(), (Kinds{kMap, kFence, kStore, kUnmap, kExit}));
}

TEST_F(RecorderTest, LeavesOutWhatLiesElsewhere) {
  start();
  char elsewhere[64];
  recorder_->store(elsewhere, 8, nullptr);
  recorder_->flush(elsewhere, 64, false, nullptr);
  recorder_->store(memory_ + sizeof memory_ - 8, 100, nullptr);
  recorder_->store(memory_, 0, nullptr);
  recorder_->finish();
  ASSERT_EQ(kinds(), (Kinds{kMap, kStore, kUnmap, kExit}));
  EXPECT_EQ(read()[1].record.length, 8u);
}

TEST_F(RecorderTest, RefusesDomainsThatAreNone) {
  start();
  EXPECT_EQ(recorder_->map(memory_ + 64, 64, "", 0, 0).error().number, EINVAL);
  EXPECT_EQ(recorder_->map(memory_ + 3, 64, "", 0, 0).error().number, EINVAL);
  Recorder other;
  EXPECT_EQ(other.start({.path = path_.c_str()}).error().number, EEXIST);
  EXPECT_FALSE(other.is_started());
  recorder_->unmap(memory_, sizeof memory_);
  EXPECT_TRUE(recorder_->map(memory_ + 64, 64, "", 0, 0));
  recorder_->finish();
  EXPECT_EQ(kinds(), (Kinds{kMap, kUnmap, kMap, kUnmap, kExit}));
}

TEST_F(RecorderTest, ADomainOfWhichAPartEndsIsNotLookedAtAnyMore) {
  start();
  memory_[8] = 1;
  recorder_->unmap(memory_ + 4096, 4096);
  memory_[16] = 1;
  recorder_->fence(nullptr);
  recorder_->finish();
  EXPECT_EQ(kinds(), (Kinds{kMap, kStore, kUnmap, kFence, kExit}));
}

// Whether that is reported afterwards, or never.
TEST_F(RecorderTest, ADomainThatIsUnmappedIsNotLookedAt) {
  start();
  for (const bool is_told : {true, false}) {
    void* const mapped = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    ASSERT_TRUE(recorder_->map(mapped, 8192, "/other/file", 0, 8192));
    ASSERT_EQ(munmap(mapped, 4096), 0);
    recorder_->fence(nullptr);
    ASSERT_EQ(munmap(static_cast<char*>(mapped) + 4096, 4096), 0);
    if (is_told) recorder_->unmap(mapped, 8192);
  }
  recorder_->finish();
  EXPECT_EQ(kinds(), (Kinds{kMap, kMap, kFence, kUnmap, kMap, kFence, kUnmap, kUnmap, kExit}));
}

TEST_F(RecorderTest, RefusesMoreMappingsThanThereArePlacesFor) {
  start();
  alignas(64) static char lines[64 * 64];
  for (size_t i = 1; i < 64; ++i) ASSERT_TRUE(recorder_->map(lines + 64 * i, 64, "", 0, 0)) << i;
  const auto refused = recorder_->map(lines, 64, "", 0, 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().number, ENFILE);
  EXPECT_NE(strstr(refused.error().message, "there are 64 mappings already"), nullptr);
  recorder_->unmap(lines + 64, 64);
  EXPECT_TRUE(recorder_->map(lines, 64, "", 0, 0));
}

TEST_F(RecorderTest, WhatLiesBehindAFileIsNotLookedAt) {
  start();
  const int file = open((folder_ + "/file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(ftruncate(file, 4096), 0);
  auto* const mapped = static_cast<char*>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  const auto refused = recorder_->map(mapped, 8192, "/other/file", 0, 4096);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().number, EINVAL);
  // A file may become shorter, too.
  ASSERT_EQ(ftruncate(file, 8192), 0);
  ASSERT_TRUE(recorder_->map(mapped, 8192, "/other/file", 0, 8192));
  mapped[0] = 1;
  ASSERT_EQ(ftruncate(file, 4096), 0);
  recorder_->fence(nullptr);
  recorder_->finish();
  EXPECT_EQ(kinds(), (Kinds{kMap, kMap, kStore, kFence, kUnmap, kUnmap, kExit}));
  munmap(mapped, 8192);
  close(file);
}

TEST_F(RecorderTest, NamesTheCodeOfSites) {
  start();
  recorder_->fence(reinterpret_cast<const void*>(&strlen));
  recorder_->fence(__builtin_return_address(0));
  recorder_->fence(__builtin_return_address(0));
  recorder_->finish();
  const uint64_t site = reinterpret_cast<uint64_t>(__builtin_return_address(0));
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  size_t own_count = 0;
  for (const Read& read : read(true))
    if (read.record.kind == kModule && site - read.record.address < read.record.length) {
      EXPECT_EQ(read.payload.c_str(), self);
      ++own_count;
    }
  EXPECT_EQ(own_count, 1u);
}

TEST_F(RecorderTest, IsReadAfterAKill) {
  const pid_t child = fork();
  if (child == 0) {
    start();
    for (int i = 0; i < 100'000; ++i) {
      memory_[8] = static_cast<char>(i);
      recorder_->store(memory_ + 8, 1, nullptr);
    }
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  const auto all = read();
  ASSERT_EQ(all.size(), 100'001u);  // several windows
  EXPECT_EQ(all.back().payload[0], static_cast<char>(99'999));
}

TEST_F(RecorderTest, EndsWhenTheLogIsFull) {
  start({.log_bytes_max = 3 * kWindowBytes});
  for (int i = 0; i < 100'000; ++i) recorder_->store(memory_ + 8, 1, nullptr);
  recorder_->finish();
  const auto all = read();
  EXPECT_EQ(all.back().record.kind, kFull);
  EXPECT_GT(all.size(), 2 * kWindowBytes / (sizeof(Record) + 8) - 3);
  EXPECT_LE(std::filesystem::file_size(path_), 3 * kWindowBytes);
}

void limit_files(uint64_t bytes) {
  const rlimit limit = {bytes, bytes};
  setrlimit(RLIMIT_FSIZE, &limit);
}

// Does a child that runs this body end well?
template <class Body>
bool does_well_in_a_child(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  return status == 0;
}

TEST_F(RecorderTest, EndsWhenTheLogMayBecomeNoLarger) {
  ASSERT_TRUE(does_well_in_a_child([&] {
    limit_files(3 * kWindowBytes);
    start();
    for (int i = 0; i < 100'000; ++i) recorder_->store(memory_ + 8, 1, nullptr);
    recorder_->finish();
    return true;
  }));
  const auto all = read();
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.back().record.kind, kFull);
}

TEST_F(RecorderTest, RefusesADomainWhoseContentNoFileMayHave) {
  EXPECT_TRUE(does_well_in_a_child([&] {
    start();
    limit_files(4096);
    alignas(64) char more[8192] = {};
    return !recorder_->map(more, sizeof more, "/other/file", 0, 8192);
  }));
}

#if !__has_feature(thread_sanitizer) && \
    !__has_feature(address_sanitizer)  // they need system calls of their own
TEST_F(RecorderTest, SignalsDoNotEndTheLog) {
  ASSERT_TRUE(does_well_in_a_child([&] {
    if (!sys::interrupt_allocations()) return false;
    start();
    for (int i = 0; i < 100'000; ++i) recorder_->store(memory_ + 8, 1, nullptr);
    recorder_->finish();
    return true;
  }));
  const auto all = read();
  ASSERT_GT(all.size(), 100'000u);  // several windows
  EXPECT_EQ(all.back().record.kind, kExit);
}
#endif

TEST_F(RecorderTest, AChildOfForkRecordsNothing) {
  start();
  const pid_t child = fork();
  if (child == 0) {
    recorder_->store(memory_, 8, nullptr);
    recorder_->fence(nullptr);
    recorder_->finish();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  recorder_->fence(nullptr);
  recorder_->finish();
  EXPECT_EQ(kinds(), (Kinds{kMap, kFence, kUnmap, kExit}));
}

TEST_F(RecorderTest, ThreadsHaveOneOrder) {
  constexpr int kThreads = 4, kStores = 20'000;
  start();
  std::latch all_are_there(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      all_are_there.arrive_and_wait();
      for (int i = 0; i < kStores; ++i) {
        const uint64_t value = static_cast<uint64_t>(i) + 1;
        memcpy(memory_ + 64 * t, &value, sizeof value);
        recorder_->store(memory_ + 64 * t, 8, nullptr);
      }
    });
  for (std::thread& thread : threads) thread.join();
  recorder_->finish();
  std::vector<uint64_t> next(kThreads, 1), by(kThreads, 0);
  size_t count = 0;
  for (const Read& read : read()) {
    if (read.record.kind != kStore) continue;
    const uint64_t t = (read.record.address - address(0)) / 64;
    uint64_t value = 0;
    memcpy(&value, read.payload.data(), sizeof value);
    EXPECT_EQ(value, next[t]++);
    if (by[t] == 0) by[t] = read.record.thread;
    EXPECT_EQ(by[t], read.record.thread);
    ++count;
  }
  EXPECT_EQ(count, size_t{kThreads} * kStores);
  EXPECT_NE(by[0], by[1]);
}

}  // namespace
}  // namespace persist
