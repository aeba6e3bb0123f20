// The cache under several threads: shared counters to which all add, private bytes that each compares with its own model,
// discards, pins, loads that are begun and finished by any thread, background eviction, broken and slow storage.
//
//   SPILLWAY_TEST_SECONDS=60  how long each case runs (default 2; 1 under a sanitizer)
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "cache/testing/test_world.h"

namespace cache {
namespace {

using Clock = std::chrono::steady_clock;

struct Case {
  const char* name;
  size_t page_bytes;
  uint32_t frame_count;
  uint32_t partition_count;
  uint64_t stride;  // between the pages that are used
  uint32_t read_ahead_pages;
  bool chaos;
  bool faults;
  uint32_t delay_us_max;
  bool tight_budget;  // so small that tables and metadata displace frames
  uint32_t server_count = 0;
  bool servers_always = false;
  base::PolicyKind policy = base::PolicyKind::kClock;
};

constexpr uint32_t kThreads = 4;
constexpr uint64_t kSharedPages = 96;
constexpr uint64_t kPrivatePages = 96;
constexpr uint64_t kWordsPerPage = 8;  // counters in a shared page, spread over it

class Shared {
 public:
  explicit Shared(const Case& c) : config(c), world(parameters(c)) {
    world.device->delay_us_max = c.delay_us_max;
    if (c.faults) set_faults(50'000);
    CHECK(world.cache->prepare_cleaning().has_value());
    world.device->allow_discards();
    if (c.server_count > 0)
      serving = std::make_unique<Serving>(*world.cache, c.server_count, c.servers_always);
  }
  static TestParameters parameters(const Case& c) {
    TestParameters p = {.page_bytes = c.page_bytes,
                        .frame_count = c.frame_count,
                        .range_pages = (kSharedPages + kThreads * kPrivatePages) * c.stride,
                        .storage_pages = 4096,
                        .partition_count = c.partition_count,
                        .read_ahead_pages = c.read_ahead_pages,
                        .chaos_seed = c.chaos ? uint64_t{77} : 0,
                        .policy = c.policy};
    if (c.tight_budget) p.memory_bytes = c.frame_count * (c.page_bytes + 64);
    return p;
  }
  void set_faults(uint32_t per_million) {
    world.device->read_errors_per_million = per_million;
    world.device->write_errors_per_million = per_million;
    world.device->short_reads_per_million = per_million;
    world.device->short_writes_per_million = per_million;
  }
  uint64_t page(uint64_t i) const { return i * config.stride; }
  uint64_t counter_address(uint64_t i) const {
    // Some at the very ends of a page.
    const uint64_t offset = (i % kWordsPerPage) * ((config.page_bytes - 8) / (kWordsPerPage - 1)) / 8 * 8;
    return world.address(page(i / kWordsPerPage), offset);
  }
  uint64_t private_address(uint32_t thread, uint64_t offset) const {
    const uint64_t page_index = kSharedPages + thread * kPrivatePages + offset / config.page_bytes;
    return world.address(page(page_index), offset % config.page_bytes);
  }

  Case config;
  TestWorld world;
  std::unique_ptr<Serving> serving;
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> steps{0};
};

class ThreadsTest : public testing::TestWithParam<Case> {};

class User {
 public:
  User(Shared& shared, uint32_t number)
      : shared_(shared),
        number_(number),
        thread_(shared.world, number),
        random_(number * 1000 + 1),
        added_(kSharedPages * kWordsPerPage),
        bytes_(kPrivatePages * shared.config.page_bytes) {}

  void run() {
    while (!shared_.stop && !failed_) {
      step();
      ++steps_;
    }
    shared_.steps += steps_;
    close_loads();
    thread_.release_all();
  }
  // After all have stopped: every private byte.
  void check_all() {
    for (uint64_t page = 0; page < kPrivatePages && !failed_; ++page)
      check(page * shared_.config.page_bytes, shared_.config.page_bytes);
    thread_.release_all();
  }
  uint64_t added(uint64_t i) const { return added_[i]; }
  uint64_t begun_count() const { return begun_count_; }
  bool failed() const { return failed_; }

 private:
  void step() {
    switch (random_.below(17)) {
      case 0: return discard();
      case 1: return pinned_add();
      case 16: return begin_loads();
      case 2:
      case 3:
      case 4: return check(random_offset(), 1 + random_.below(200));
      case 5:
      case 6:
      case 7: return write(random_offset(), 1 + random_.below(200));
      case 8: return write(random_offset(), shared_.config.page_bytes);
      case 9: return sweep();
      default: return add(random_.below(added_.size()), 2 + static_cast<uint32_t>(random_.below(2)));
    }
  }
  uint64_t random_offset() { return random_.below(bytes_.size()); }

  char* translate(uint64_t address, uint32_t slot) {
    for (int tries = 0; tries < 500; ++tries) {
      char* at = thread_.translate(address, slot);
      if (at != nullptr) return at;
      if (!shared_.config.faults || tries == 100) {
        ADD_FAILURE() << thread_.error.message;
        failed_ = true;
      }
    }
    CHECK(false);
  }
  // Adds to a counter in the shared pages; the last few translations stay held.
  void add(uint64_t i, uint32_t slot) {
    char* at = translate(shared_.counter_address(i), slot);
    if (random_.one_in(64)) std::this_thread::yield();
    std::atomic_ref(*reinterpret_cast<uint64_t*>(at)).fetch_add(1, std::memory_order_relaxed);
    ++added_[i];
  }
  void pinned_add() {
    const uint64_t i = random_.below(added_.size());
    const PageId page = shared_.world.cache->page_of(shared_.counter_address(i));
    auto pinned = shared_.world.cache->pin(page, *thread_.workspace);
    if (!pinned) return;  // faults
    char* at = *pinned + (shared_.counter_address(i) - kRangeBegin) % shared_.config.page_bytes;
    if (random_.one_in(4)) std::this_thread::yield();
    std::atomic_ref(*reinterpret_cast<uint64_t*>(at)).fetch_add(1, std::memory_order_relaxed);
    ++added_[i];
    shared_.world.cache->unpin(page);
  }
  // Begins loads of pages that others use, too; which thread finishes them is left to chance.
  void begin_loads() {
    if (loads_ == nullptr) {
      auto opened = shared_.world.cache->open_loads();
      ASSERT_TRUE(opened.has_value());
      loads_ = *opened;
    }
    for (uint64_t n = random_.below(20); n > 0; --n) {
      const uint64_t page = shared_.page(random_.below(kSharedPages + kThreads * kPrivatePages));
      const auto begun = shared_.world.cache->begin_load(
          PageId{page}, *thread_.workspace, stream_, *loads_,
          [](void* count) { static_cast<std::atomic<uint64_t>*>(count)->fetch_add(1); }, &ended_count_);
      if (begun && *begun == Partition::Begun::kUnderWay) ++begun_count_;
    }
    if (random_.one_in(2)) loads_->poll();
    if (random_.one_in(32)) close_loads();
  }
  void close_loads() {
    if (loads_ == nullptr) return;
    while (ended_count_ < begun_count_) shared_.world.cache->poll_loads();
    EXPECT_EQ(ended_count_, begun_count_);
    shared_.world.cache->close_loads(*loads_);
    loads_ = nullptr;
  }
  template <class Use>
  void for_pieces(uint64_t offset, uint64_t n, Use use) {
    const uint64_t end = std::min<uint64_t>(offset + n, bytes_.size());
    while (offset < end && !failed_) {
      const uint64_t piece = std::min(end - offset, base::kOsPageBytes - offset % base::kOsPageBytes);
      use(translate(shared_.private_address(number_, offset), 0), offset, piece);
      offset += piece;
    }
  }
  void check(uint64_t first, uint64_t n) {
    for_pieces(first, n, [&](const char* at, uint64_t offset, uint64_t piece) {
      if (memcmp(at, &bytes_[offset], piece) == 0) return;
      uint64_t i = 0;
      while (i < piece && at[i] == bytes_[offset + i]) ++i;
      ADD_FAILURE() << "thread " << number_ << " page " << (offset + i) / shared_.config.page_bytes
                    << " byte " << (offset + i) % shared_.config.page_bytes << " is " << int{at[i]}
                    << ", not " << int{bytes_[offset + i]};
      failed_ = true;
    });
  }
  void write(uint64_t first, uint64_t n) {
    for_pieces(first, n, [&](char* at, uint64_t offset, uint64_t piece) {
      const auto value = static_cast<char>(random_.one_in(4) ? 0 : random_.next());
      memset(at, value, piece);
      memset(&bytes_[offset], value, piece);
    });
  }
  // Reads all pages in order, so that read-ahead works.
  void sweep() {
    if (!random_.one_in(20)) return;
    for (uint64_t page = 0; page < kPrivatePages; ++page) check(page * shared_.config.page_bytes, 10);
  }
  void discard() {
    const uint64_t first = random_.below(kPrivatePages);
    const uint64_t count = shared_.config.stride == 1 ? std::min(random_.below(6), kPrivatePages - first) : 1;
    const uint64_t page = shared_.page(kSharedPages + number_ * kPrivatePages + first);
    shared_.world.cache->discard(PageId{page}, count, *thread_.workspace);
    memset(bytes_.data() + first * shared_.config.page_bytes, 0, count * shared_.config.page_bytes);
  }

  Shared& shared_;
  uint32_t number_;
  TestThread thread_;
  Random random_;
  std::vector<uint64_t> added_;
  std::vector<char> bytes_;
  LoadQueue* loads_ = nullptr;
  Stream stream_;
  std::atomic<uint64_t> ended_count_{0};
  uint64_t begun_count_ = 0;
  uint64_t steps_ = 0;
  bool failed_ = false;
};

constexpr uint64_t kDefaultSeconds =
    __has_feature(thread_sanitizer) || __has_feature(address_sanitizer) ? 1 : 2;

TEST_P(ThreadsTest, NothingIsLost) {
  Shared shared(GetParam());
  std::vector<std::unique_ptr<User>> users;
  for (uint32_t i = 0; i < kThreads; ++i) users.push_back(std::make_unique<User>(shared, i));
  std::vector<std::thread> threads;
  for (auto& user : users) threads.emplace_back([&user] { user->run(); });
  threads.emplace_back([&shared] {
    TestThread evictor(shared.world, kThreads);
    Random random(9);
    while (!shared.stop) {
      if (random.one_in(8)) shared.world.cache->evict(*evictor.workspace);
      if (random.one_in(2)) shared.world.cache->idle_step(*evictor.workspace);
      if (shared.world.cache->background_step(*evictor.workspace) == 0) std::this_thread::yield();
      if (random.one_in(64)) shared.world.cache->verify();
    }
  });
  const auto end = Clock::now() + std::chrono::seconds(environment("SPILLWAY_TEST_SECONDS", kDefaultSeconds));
  while (Clock::now() < end && !HasFailure()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  shared.stop = true;
  for (std::thread& thread : threads) thread.join();
  if (HasFailure()) return;

  shared.set_faults(0);
  shared.world.cache->verify();
  TestThread reader(shared.world, kThreads);
  for (uint64_t i = 0; i < kSharedPages * kWordsPerPage; ++i) {
    uint64_t expected = 0;
    for (auto& user : users) expected += user->added(i);
    uint64_t counted = 0;
    ASSERT_TRUE(reader.read(shared.counter_address(i), &counted, sizeof counted)) << reader.error.message;
    ASSERT_EQ(counted, expected) << "counter " << i << " of page " << shared.page(i / kWordsPerPage);
  }
  reader.release_all();
  for (auto& user : users) user->check_all();
  shared.world.cache->verify();
  if (GetParam().tight_budget) {
    EXPECT_LE(shared.world.cache->budget().used_bytes(),
              shared.world.cache->budget().limit_bytes() + 64 * 1024);
  }
  RecordProperty("steps", static_cast<int>(shared.steps));
  EXPECT_GT(shared.steps, 100u);
  for (auto& user : users) EXPECT_GT(user->begun_count(), 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Cache, ThreadsTest,
    testing::Values(
        Case{"small_pages", 4 << 10, 64, 1, 1, 0, false, false, 0, false},
        Case{"partitions_sparse_tight", 4 << 10, 256, 4, 61, 0, false, false, 0, true},
        Case{"large_pages_read_ahead", 16 << 10, 128, 1, 1, 4, false, false, 20, false},
        Case{"chaos", 8 << 10, 64, 1, 1, 2, true, false, 0, false},
        Case{"faults_and_delays", 4 << 10, 64, 2, 7, 2, false, true, 100, false},
        Case{"server", 4 << 10, 64, 1, 1, 0, false, false, 20, false, 1},
        Case{"servers_chaos", 8 << 10, 64, 2, 7, 2, true, false, 0, false, 2},
        Case{"servers_always", 4 << 10, 64, 2, 7, 2, false, true, 100, false, 2, true},
        Case{"two_queues", 4 << 10, 64, 2, 7, 2, false, true, 20, false, 0, false,
             base::PolicyKind::kTwoQueues},
        Case{"s3fifo", 4 << 10, 256, 4, 61, 2, false, false, 0, true, 0, false, base::PolicyKind::kS3fifo},
        Case{"nrlfu", 8 << 10, 64, 1, 1, 2, true, false, 0, false, 1, false, base::PolicyKind::kNrlfu}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace cache
