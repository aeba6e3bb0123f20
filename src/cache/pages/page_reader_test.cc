#include "cache/pages/page_reader.h"

#include <gtest/gtest.h>
#include <sys/uio.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "cache/testing/test_world.h"

namespace cache {
namespace {

constexpr uint64_t kOs = base::kOsPageBytes;

// This process, read as another one would read it: through the kernel, whatever its threads do meanwhile.
class Self : public Outside {
 public:
  explicit Self(TestWorld& world) : world_(world) {}
  virtual ~Self() = default;
  bool read_memory(uint64_t address, void* to, size_t bytes) override {
    const iovec local = {to, bytes}, remote = {reinterpret_cast<void*>(address), bytes};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
  }
  bool read_storage(uint64_t offset_bytes, void* to, size_t bytes) override {
    ++storage_reads;
    if (on_storage) on_storage(storage_reads);
    return !storage_broken &&
           read_memory(reinterpret_cast<uint64_t>(world_.device->contents(offset_bytes)), to, bytes);
  }

  std::function<void(int reading)> on_storage;
  int storage_reads = 0;
  bool storage_broken = false;

 private:
  TestWorld& world_;
};

class PageReaderTest : public WorldTest {
 protected:
  ReadResult read(Outside& outside, uint64_t page, uint64_t piece = 0) {
    return read_os_page(world->cache->layout(), world->address(page, piece * kOs), bytes, scratch, outside);
  }
  // The byte with which the page's piece is filled; '?' if there are several, '!' if it cannot be read.
  char seen(Outside& outside, uint64_t page, uint64_t piece = 0) {
    if (read(outside, page, piece) != ReadResult::kDone) return '!';
    return std::string(bytes, kOs) == std::string(kOs, bytes[0]) ? bytes[0] : '?';
  }
  char seen(uint64_t page, uint64_t piece = 0) {
    Self self(*world);
    return seen(self, page, piece);
  }

  alignas(kOs) char bytes[kOs];
  alignas(kOs) char scratch[kOs];
};

TEST_F(PageReaderTest, FindsPagesInFramesOnStorageAndNowhere) {
  for (const uint64_t page_size : {kOs, 4 * kOs}) {
    open({.page_bytes = page_size, .frame_count = 16, .range_pages = 5000, .partition_count = 2});
    const uint64_t pieces = page_size / kOs;
    write_and_evict(3, 'x');
    write(4, 'y');
    write(4900, 'z');
    const uint64_t frames = world->cache->resident_count(), reads = world->device->reads;
    for (uint64_t piece = 0; piece < pieces; ++piece) {
      EXPECT_EQ(seen(3, piece), 'x');
      EXPECT_EQ(seen(4, piece), 'y');
      EXPECT_EQ(seen(4900, piece), 'z');
      EXPECT_EQ(seen(5, piece), 0);
      EXPECT_EQ(seen(2000, piece), 0);
    }
    // No page was loaded or evicted.
    EXPECT_EQ(world->cache->resident_count(), frames);
    EXPECT_EQ(world->device->reads, reads);
    EXPECT_FALSE(world->resident(3));
    world->cache->discard(PageId{3}, 2, *a->workspace);
    EXPECT_EQ(seen(3), 0);
    EXPECT_EQ(seen(4), 0);
  }
}

TEST_F(PageReaderTest, APageOnItsWayIsReadWhereItStillIs) {
  write_and_evict(3, 'x');
  char while_loading = '-', while_writing = '-';
  world->device->before_transfer = [&](const Io& io) {
    if (io.operation == Operation::kRead) while_loading = seen(3);
    if (io.operation == Operation::kWrite) while_writing = seen(3);
  };
  write(3, 'y');
  EXPECT_EQ(while_loading, 'x');
  evict();
  EXPECT_EQ(while_writing, 'y');
  world->device->before_transfer = nullptr;
  EXPECT_EQ(seen(3), 'y');
}

// Between steps 1 and 3 the page leaves its frame, which others then use.
TEST_F(PageReaderTest, AFrameThatBecameAnothersIsNotBelieved) {
  class Late final : public Self {
   public:
    using Self::Self;
    bool read_memory(uint64_t address, void* to, size_t n) override {
      if (n == kOs && on_bytes) std::exchange(on_bytes, nullptr)();
      return Self::read_memory(address, to, n);
    }
    std::function<void()> on_bytes;
  };
  write(3, 'x');
  Late late(*world);
  bool came = false;
  late.on_bytes = [&] {
    came = true;
    a->release_all();
    for (uint64_t page = 10; page < 40; ++page) write(page, 'q');
    ASSERT_FALSE(world->resident(3));
  };
  EXPECT_EQ(seen(late, 3), 'x');
  EXPECT_TRUE(came);
}

TEST_F(PageReaderTest, APlaceThatBecameAnothersIsNotBelieved) {
  open({.storage_pages = 1});
  write_and_evict(3, 'x');
  const uint64_t place = offset_of('x');
  Self self(*world);
  self.on_storage = [&](int reading) {
    if (reading != 1) return;
    write(3, 'y');
    evict();
    world->cache->discard(PageId{3}, 1, *a->workspace);
    write_and_evict(7, 'q');
    ASSERT_EQ(offset_of('q'), place) << "it took the place";
  };
  EXPECT_EQ(seen(self, 3), 0);
}

// The page goes to a frame and back to its place while it is read there: half of what is read is the old content.
TEST_F(PageReaderTest, APlaceThatIsWrittenMeanwhileIsReadAgain) {
  class Torn final : public Self {
   public:
    using Self::Self;
    bool read_storage(uint64_t offset, void* to, size_t n) override {
      if (!Self::read_storage(offset, to, n)) return false;
      if (storage_reads != 1) return true;
      write_again();
      return Self::read_storage(offset + n / 2, static_cast<char*>(to) + n / 2, n / 2);
    }
    std::function<void()> write_again;
  };
  write_and_evict(3, 'x');
  Torn torn(*world);
  torn.write_again = [&] { write_and_evict(3, 'y'); };
  EXPECT_EQ(seen(torn, 3), 'y');
}

TEST_F(PageReaderTest, SaysWhatCannotBeRead) {
  write_and_evict(3, 'x');
  write(4, 'y');
  Self self(*world);
  self.storage_broken = true;
  EXPECT_EQ(read(self, 3), ReadResult::kUnreadable);
  EXPECT_EQ(read(self, 4), ReadResult::kDone);
  class Ended final : public Self {
   public:
    using Self::Self;
    bool read_memory(uint64_t, void*, size_t) override { return false; }
  } ended(*world);
  EXPECT_EQ(read(ended, 4), ReadResult::kUnreadable);
  class Restless final : public Self {
   public:
    using Self::Self;
    bool read_memory(uint64_t address, void* to, size_t n) override {
      const bool read = Self::read_memory(address, to, n);
      if (n == sizeof(Frame)) reinterpret_cast<Frame*>(to)->page = PageId{99};
      return read;
    }
  } restless(*world);
  EXPECT_EQ(read(restless, 4), ReadResult::kUnsettled);
}

// Threads count in pages that come and go; each page's other bytes never change. What is read is never torn, never another
// page's, and never older than what was read before.
TEST_F(PageReaderTest, NeverReadsWrongBytesWhileThreadsWork) {
  constexpr uint64_t kPages = 48;
  open({.frame_count = 12, .range_pages = kPages, .storage_pages = 3 * kPages});
  for (uint64_t page = 0; page < kPages; ++page) {
    const std::vector<uint64_t> words(kOs / 8, page * 0x0101010101010101 + 1);
    ASSERT_TRUE(a->write(world->address(page), words.data(), kOs));
    const uint64_t zero = 0;
    ASSERT_TRUE(a->write(world->address(page), &zero, 8));
  }
  a->release_all();
  std::atomic<bool> stop{false};
  const auto work = [&](TestThread& thread, uint64_t seed) {
    Random random(seed);
    while (!stop) {
      const uint64_t page = random.below(kPages / 2) * 2 + seed % 2;
      char* at = thread.translate(world->address(page));
      if (at == nullptr) continue;
      if (random.one_in(2)) __atomic_fetch_add(reinterpret_cast<uint64_t*>(at), 1, __ATOMIC_RELAXED);
      thread.release_all();
    }
  };
  std::thread first([&] { work(*a, 2); }), second([&] { work(*b, 3); });
  Self self(*world);
  std::vector<uint64_t> last(kPages);
  uint64_t settled = 0;
  Random random(9);
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
  while (std::chrono::steady_clock::now() < end) {
    const uint64_t page = random.below(kPages);
    if (read(self, page) != ReadResult::kDone) continue;
    ++settled;
    const auto* words = reinterpret_cast<const uint64_t*>(bytes);
    EXPECT_GE(words[0], last[page]) << page;
    last[page] = words[0];
    for (uint64_t i = 1; i < kOs / 8; ++i)
      ASSERT_EQ(words[i], page * 0x0101010101010101 + 1) << page << ' ' << i;
  }
  stop = true;
  first.join();
  second.join();
  EXPECT_GT(settled, 0u);
}

}  // namespace
}  // namespace cache
