// TestWorld: a cache with everything that its tests need around it: a device, holders with hazard
// slots like those of compiled code, a table, threads with workspaces, and the translation that compiled code does.
#pragma once
#include <gtest/gtest.h>
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cache/cache.h"
#include "cache/testing/test_device.h"
#include "sys/files.h"

namespace cache {

// The range itself is not mapped, except by tests of regions. It lies below anything that mmap returns, so
// that frame - page is positive, and where no sanitizer has its shadow.
#if __has_feature(address_sanitizer)
inline constexpr uint64_t kRangeBegin = uint64_t{1} << 45;
#else
inline constexpr uint64_t kRangeBegin = uint64_t{1} << 40;
#endif

inline uint64_t environment(const char* name, uint64_t otherwise) {
  const char* text = getenv(name);
  return text == nullptr ? otherwise : strtoull(text, nullptr, 0);
}

struct alignas(64) HazardSlots {
  static constexpr uint32_t kCount = 4;
  std::atomic<uint64_t> address[kCount];
};

// Hazard slots with spill's protocol: the holder stores the slot and loads the entry without a fence of
// its own; barrier() is a membarrier. Also checks that the cache calls it in the right order.
class TestHolders final : public Holders {
 public:
  static constexpr uint32_t kThreads = 8;

  explicit TestHolders() {
    CHECK_EQ(syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0), 0);
  }

  void barrier() override {
    CHECK_EQ(syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0), 0);
    ++barriers_before_scan();
    if (on_barrier) on_barrier();
  }

  void visit(void (*visit)(void* context, PageId page), void* context) override {
    const bool barrier_came_first = barriers_before_scan() > 0;
    CHECK(barrier_came_first);
    --barriers_before_scan();
    for (const HazardSlots& slots : threads) {
      for (const std::atomic<uint64_t>& slot : slots.address) {
        const uint64_t address = slot.load(std::memory_order_acquire);
        if (address != 0) visit(context, PageId{(address - kRangeBegin) / page_bytes});
      }
    }
    if (on_visited) on_visited();
  }

  size_t page_bytes = base::kOsPageBytes;
  HazardSlots threads[kThreads] = {};
  // What other threads do between the locking of entries and the scan, and after the scan. For tests with one thread.
  std::function<void()> on_barrier;
  std::function<void()> on_visited;

 private:
  static int& barriers_before_scan() {
    static thread_local int count = 0;
    return count;
  }
};

struct TestParameters {
  size_t page_bytes = base::kOsPageBytes;
  uint32_t frame_count = 8;
  uint64_t range_pages = 64;
  uint64_t storage_pages = 0;  // 0: enough
  uint32_t partition_count = 1;
  uint32_t read_ahead_pages = 0;
  uint64_t chaos_seed = 0;
  base::PolicyKind policy = base::PolicyKind::kClock;
  bool chooses_policy = false;
  PolicyChoice::Parameters policy_choice = {};
  uint64_t seed = 1;
  bool watch = true;
  Origins* origins = nullptr;
  Closed* closed = nullptr;
  uint64_t memory_bytes = 0;  // 0: for frame_count frames and all that comes with them
  uint64_t most_memory_bytes = 0;
};

class TestWorld;

// One thread's view: its workspace, its slots and its accesses.
class TestThread {
 public:
  TestThread(TestWorld& world, uint32_t number);
  ~TestThread() {
    release_all();
    workspace->destroy();
  }

  // What compiled code does to access `address`; the result is valid until the slot is used again.
  // Null: the load failed, see `error`.
  char* translate(uint64_t address, uint32_t slot = 0);
  // Byte by byte through translate, across any pages. False: a load failed.
  bool read(uint64_t address, void* to, uint64_t n);
  bool write(uint64_t address, const void* from, uint64_t n);
  void release(uint32_t slot) { slots.address[slot].store(0, std::memory_order_release); }
  void release_all() {
    for (uint32_t i = 0; i < HazardSlots::kCount; ++i) release(i);
  }

  TestWorld& world;
  HazardSlots& slots;
  Workspace* workspace = nullptr;
  base::Error error;
};

class TestWorld {
 public:
  explicit TestWorld(const TestParameters& with) : parameters(with) {
    static const bool once = [] {
      unsigned char secrets[base::kFingerprintSecretBytes];
      sys::random_bytes(secrets);
      base::set_fingerprint_secrets(secrets, sizeof secrets);
      return true;
    }();
    CHECK(once);
    const uint64_t page_bytes = with.page_bytes;
    const uint64_t storage_pages = with.storage_pages != 0 ? with.storage_pages : 4 * with.range_pages + 64;
    device = std::make_unique<TestDevice>(storage_pages * page_bytes, with.seed);
    holders.page_bytes = page_bytes;
    range_bytes = base::round_up(with.range_pages * page_bytes, Table::kRegionOsPages * base::kOsPageBytes);
    table_bytes = range_bytes / base::kOsPageBytes * sizeof(Table::Entry);
    void* table = mmap(nullptr, table_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(table != MAP_FAILED);
    entries = static_cast<Table::Entry*>(table);
    CacheParameters p;
    p.range_begin = kRangeBegin;
    p.range_bytes = range_bytes;
    p.table_entries = entries;
    p.page_bytes = page_bytes;
    p.memory_bytes = with.memory_bytes;
    p.most_memory_bytes = with.most_memory_bytes;
    if (p.memory_bytes == 0) {
      // Room for tables and metadata, so that tests of other things have exactly frame_count frames.
      p.memory_bytes = with.frame_count * (page_bytes + base::kOsPageBytes) + (64 << 20);
      p.frame_count = with.frame_count;
    }
    p.read_ahead_pages = with.read_ahead_pages;
    p.chaos_seed = with.chaos_seed;
    p.policy = with.policy;
    p.chooses_policy = with.chooses_policy;
    p.origins = with.origins;
    p.closed = with.closed;
    p.for_tests = {
        .partition_count = with.partition_count, .policy_choice = with.policy_choice, .watch = with.watch};
    auto created = Cache::create(p, *device, holders);
    if (!created) ADD_FAILURE() << created.error().message;
    CHECK(created.has_value());
    cache = *created;
    device->waste = cache->waste();
  }
  ~TestWorld() {
    cache->destroy();
    munmap(entries, table_bytes);
  }

  uint64_t address(uint64_t page, uint64_t offset = 0) const {
    return kRangeBegin + page * parameters.page_bytes + offset;
  }
  bool resident(uint64_t page) const {
    const int64_t entry = entries[page * (parameters.page_bytes / base::kOsPageBytes)].load();
    return entry > 1 || entry < -1;
  }
  // Evicts everything that can be evicted.
  void evict_all(TestThread& thread) {
    for (uint32_t calm = 0; calm < 4 * parameters.frame_count + 4 && cache->resident_count() > 0;)
      calm = cache->evict(*thread.workspace) > 0 ? 0 : calm + 1;
  }

  TestParameters parameters;
  std::unique_ptr<TestDevice> device;
  TestHolders holders;
  Table::Entry* entries = nullptr;
  uint64_t table_bytes = 0;
  uint64_t range_bytes = 0;
  Cache* cache = nullptr;
};

// Runs servers of a cache as long as it exists. REQUIRES: nobody loads or pins when it is destroyed.
class Serving {
 public:
  Serving(Cache& served, uint32_t count, bool always = false) : cache(served) {
    CHECK(cache.open_servers(count, always).has_value());
    for (uint32_t i = 0; i < count; ++i) threads.emplace_back([this, i] { cache.run_server(i); });
    cache.start_servers(count);
  }
  ~Serving() {
    cache.stop_servers();
    for (std::thread& thread : threads) thread.join();
    cache.start_servers(0);
  }

  Cache& cache;
  std::vector<std::thread> threads;
};

inline TestThread::TestThread(TestWorld& w, uint32_t number) : world(w), slots(w.holders.threads[number]) {
  CHECK_LT(number, TestHolders::kThreads);
  auto opened = world.cache->open_workspace();
  CHECK(opened.has_value());
  workspace = *opened;
}

inline char* TestThread::translate(uint64_t address, uint32_t slot) {
  slots.address[slot].store(address, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  Table::Entry& entry = world.entries[(address - kRangeBegin) / base::kOsPageBytes];
  int64_t d = entry.load(std::memory_order_acquire);
  if (d > 1) return reinterpret_cast<char*>(address + static_cast<uint64_t>(d) - 1);
  if (d < -1 && entry.compare_exchange_strong(d, -d, std::memory_order_acq_rel))
    return reinterpret_cast<char*>(address - static_cast<uint64_t>(d) - 1);
  auto loaded = world.cache->load(world.cache->page_of(address), *workspace);
  if (!loaded) {
    release(slot);
    error = loaded.error();
    return nullptr;
  }
  return *loaded + (address - kRangeBegin) % world.parameters.page_bytes;
}

inline bool TestThread::read(uint64_t address, void* to, uint64_t n) {
  for (uint64_t i = 0; i < n;) {
    const char* from = translate(address + i);
    if (from == nullptr) return false;
    const uint64_t piece = std::min(n - i, base::kOsPageBytes - (address + i) % base::kOsPageBytes);
    std::copy_n(from, piece, static_cast<char*>(to) + i);
    i += piece;
  }
  return true;
}

inline bool TestThread::write(uint64_t address, const void* from, uint64_t n) {
  for (uint64_t i = 0; i < n;) {
    char* to = translate(address + i);
    if (to == nullptr) return false;
    const uint64_t piece = std::min(n - i, base::kOsPageBytes - (address + i) % base::kOsPageBytes);
    std::copy_n(static_cast<const char*>(from) + i, piece, to);
    i += piece;
  }
  return true;
}

// Two threads in a world; tests reopen it with other parameters.
class WorldTest : public testing::Test {
 protected:
  void SetUp() override { open({}); }
  void open(const TestParameters& parameters) {
    b.reset();
    a.reset();
    world = std::make_unique<TestWorld>(parameters);
    a = std::make_unique<TestThread>(*world, 0);
    b = std::make_unique<TestThread>(*world, 1);
    page_bytes = parameters.page_bytes;
  }
  ~WorldTest() override {
    if (world != nullptr) world->cache->verify();
    b.reset();
    a.reset();
  }

  void write(uint64_t page, char value, TestThread* thread = nullptr) {
    const std::string bytes(page_bytes, value);
    ASSERT_TRUE((thread != nullptr ? *thread : *a).write(world->address(page), bytes.data(), bytes.size()));
  }
  // The byte with which the whole page is filled; '?' if there are several, '!' if it cannot be loaded.
  char value(uint64_t page) {
    std::string bytes(page_bytes, 0);
    if (!a->read(world->address(page), bytes.data(), bytes.size())) return '!';
    a->release_all();
    return bytes == std::string(page_bytes, bytes[0]) ? bytes[0] : '?';
  }
  // Evicts everything that is not held or pinned.
  void evict() {
    a->release_all();
    world->evict_all(*a);
    world->cache->verify();
  }
  void write_and_evict(uint64_t page, char value) {
    write(page, value);
    evict();
    const uint64_t pieces = page_bytes / base::kOsPageBytes;
    for (uint64_t i = 0; i < pieces; ++i) ASSERT_EQ(world->entries[page * pieces + i], Table::kUnknown);
  }
  // The offset on storage of the page that is filled with this byte.
  uint64_t offset_of(uint64_t page_value) {
    const std::string wanted(page_bytes, static_cast<char>(page_value));
    for (uint64_t at = 0; at < world->device->capacity_bytes(); at += page_bytes)
      if (memcmp(world->device->contents(at), wanted.data(), page_bytes) == 0) return at;
    return ~uint64_t{0};
  }

  std::unique_ptr<TestWorld> world;
  std::unique_ptr<TestThread> a;
  std::unique_ptr<TestThread> b;
  size_t page_bytes = 0;
};

}  // namespace cache
