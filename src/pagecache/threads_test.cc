// Many threads use a cache that is much smaller than its file, and is flushed and resized all the time; the device sometimes fails.
//
// The file consists of cells of 56 bytes, 73 in a page. Each cell belongs to one thread, which fills it with seven copies of a number that only grows.
// Whoever reads a cell finds seven equal numbers, not lower than any that was seen there before.
#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <thread>

#include "pagecache/request_queue.h"
#include "pagecache/test_cache.h"

namespace pagecache {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kPages = 300;
constexpr uint64_t kFileBytes = kPages * kPage;
constexpr uint32_t kThreads = 8;
constexpr uint64_t kFrames = 40;
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
constexpr int kRounds = 3000, kSyncs = 300;
#else
constexpr int kRounds = 20000, kSyncs = 2000;
#endif

using Cell = std::array<uint64_t, 7>;
constexpr uint64_t kCellsOfPage = (kPage - File::kChecksumBytes) / sizeof(Cell);
constexpr uint64_t kCells = kPages * kCellsOfPage;

// The offset of a cell in a file whose pages have `page_bytes` of its data.
uint64_t offset_of(uint64_t cell, uint64_t page_bytes) {
  return cell / kCellsOfPage * page_bytes + cell % kCellsOfPage * sizeof(Cell);
}

uint64_t number_of(const Cell& cell) {
  EXPECT_TRUE(std::ranges::all_of(cell, [&](uint64_t number) { return number == cell[0]; }));
  return cell[0];
}

// Each node has at least one set.
CacheOptions with_frames_most(uint64_t frames_most, cache::SetPolicy policy, uint32_t nodes = 1) {
  const uint64_t frames = std::max<uint64_t>(kFrames, 20 * nodes);
  CacheOptions options = with_frames(
      frames, {.policy = policy, .dirty_share_max = 0.25, .dirty_ns_max = 4'000'000, .nodes = nodes});
  options.memory_bytes_max = with_frames(frames_most, options).memory_bytes;
  return options;
}

// Keeps resizing a cache while this object exists, to at least 16 frames in each node.
class Resizer {
 public:
  Resizer(PageCache& cache, uint64_t frames_most, bool may_fail)
      : cache_(cache), frames_most_(frames_most), may_fail_(may_fail), thread_([this] { resize_on(); }) {}
  ~Resizer() {
    is_to_end_ = true;
    thread_.join();
    EXPECT_GT(resized_, 10u);
  }

 private:
  void resize_on() {
    Session session;
    session.open(cache_);
    std::mt19937_64 random(1);
    while (!is_to_end_) {
      const uint64_t nodes = cache_.node_count();
      const uint64_t frames = nodes * (16 + random() % (frames_most_ / nodes - 15));
      auto resized = session.resize(with_frames(frames, cache_.options()).memory_bytes);
      if (resized) {
        // Servers move some frames between nodes meanwhile.
        if (nodes == 1)
          EXPECT_EQ(cache_.frame_count(), frames);
        else
          EXPECT_LE(cache_.frame_count(), frames + nodes);
        ++resized_;
      } else {
        EXPECT_TRUE(may_fail_) << resized.error().message;
      }
    }
    session.close();
  }

  PageCache& cache_;
  const uint64_t frames_most_;
  const bool may_fail_;
  uint64_t resized_ = 0;
  std::atomic<bool> is_to_end_{false};
  std::thread thread_;
};

class ThreadsTest : public testing::TestWithParam<std::tuple<cache::SetPolicy, bool, bool, uint32_t, bool>> {
 protected:
  void SetUp() override {
    cache = *PageCache::open(with_frames_most(kMaxFrames, std::get<0>(GetParam()), std::get<3>(GetParam())));
    file = *cache->add(test.device, {.checksums = std::get<4>(GetParam())});
    // One thread fewer than there are nodes, but at least two.
    servers =
        *Servers::open(*cache, {.threads = std::max(2u, std::get<3>(GetParam()) - 1), .tasks_each = 16});
  }
  void TearDown() override { cache->close(); }

  // What one thread has done, and the numbers in its own cells. A failed call changes nothing within one page.
  struct Work {
    std::vector<uint64_t> own = std::vector<uint64_t>(kCells, 0);
    uint64_t failed = 0;
  };
  void work(uint32_t self, Work& work) {
    Session session;
    session.open(*cache);
    RequestQueue queue;
    queue.open(*servers, 16);
    std::mt19937_64 random(self);
    std::vector<uint64_t> seen(kCells, 0);
    std::vector<std::byte> bytes;
    for (int round = 1; round <= kRounds; ++round) {
      const uint64_t at = random() % kCells, own = at / kThreads * kThreads + self;
      switch (random() % 9) {
        case 0:
        case 1: {  // a range of pages
          const uint64_t count = std::min<uint64_t>(random() % 8 == 0 ? 64 * 20 : 8, kCells - at);
          const uint64_t begin = place_of(at);
          bytes.resize(place_of(at + count - 1) + sizeof(Cell) - begin);
          if (!session.read(*file, begin, bytes)) {
            ++work.failed;
            break;
          }
          for (uint64_t i = at; i < at + count; ++i) {
            Cell cell;
            memcpy(cell.data(), bytes.data() + place_of(i) - begin, sizeof cell);
            see(seen[i], cell);
          }
          break;
        }
        case 2: {
          auto view = session.view(*file, place_of(at), sizeof(Cell));
          if (!view) {
            ++work.failed;
            break;
          }
          Cell cell;
          memcpy(cell.data(), view->bytes().data(), sizeof cell);
          see(seen[at], cell);
          break;
        }
        case 3: {
          if (own >= kCells) break;
          Cell now = {};
          const auto change = [&](std::span<std::byte> bytes, uint64_t) {
            Cell before;
            memcpy(before.data(), bytes.data(), sizeof before);
            EXPECT_EQ(number_of(before), work.own[own]);
            now.fill(static_cast<uint64_t>(round));
            memcpy(bytes.data(), now.data(), sizeof now);
          };
          // If it fails, then before the change.
          if (session.update(*file, place_of(own), sizeof(Cell), change))
            work.own[own] = static_cast<uint64_t>(round);
          else
            ++work.failed;
          break;
        }
        case 4:
          if (random() % 64 == 0 && !session.sync(*file)) ++work.failed;
          break;
        case 8:
          if (random() % 8 == 0) run_together(queue, self, static_cast<uint64_t>(round), random, seen, work);
          break;
        default: {
          if (own >= kCells) break;
          Cell cell;
          cell.fill(static_cast<uint64_t>(round));
          if (session.write(*file, place_of(own), std::as_bytes(std::span(cell))))
            work.own[own] = static_cast<uint64_t>(round);
          else
            ++work.failed;
        }
      }
    }
    queue.close();
    session.close();
  }
  // Submits reads of any cells and writes of own cells together.
  void run_together(RequestQueue& queue, uint32_t self, uint64_t number, std::mt19937_64& random,
                    std::vector<uint64_t>& seen, Work& work) {
    struct CellRequest : Request {
      uint64_t index = 0;
      Cell cell = {};
    };
    std::array<CellRequest, 24> all;
    std::array<Request*, 24> pointers;
    const uint64_t first_own = random() % (kCells / 2) / kThreads * kThreads + self;
    for (size_t i = 0; i < all.size(); ++i) {
      const bool is_write = i % 3 == 0;
      all[i].kind = is_write ? Request::Kind::kWrite : Request::Kind::kRead;
      all[i].index = is_write ? first_own + i * kThreads : random() % kCells;
      if (is_write) all[i].cell.fill(number);
      all[i].file = file;
      all[i].offset = place_of(all[i].index);
      all[i].bytes = std::as_writable_bytes(std::span(all[i].cell));
      pointers[i] = &all[i];
    }
    queue.run(pointers);
    // Two reads of a cell may end in either order.
    const std::vector<uint64_t> seen_before = seen;
    for (const CellRequest& request : all) {
      if (!request.result) {
        ++work.failed;
      } else if (request.kind == Request::Kind::kWrite) {
        work.own[request.index] = number;
      } else {
        uint64_t seen_now = seen_before[request.index];
        see(seen_now, request.cell);
        seen[request.index] = std::max(seen[request.index], seen_now);
      }
    }
  }
  uint64_t place_of(uint64_t cell) const { return offset_of(cell, file->page_data_bytes()); }
  static void see(uint64_t& seen, const Cell& cell) {
    const uint64_t number = number_of(cell);
    EXPECT_GE(number, seen);
    seen = number;
  }

  static constexpr uint64_t kMaxFrames = 152;
  TestDevice test{kFileBytes};
  PageCache* cache = nullptr;
  File* file = nullptr;
  Servers* servers = nullptr;
};

TEST_P(ThreadsTest, NobodySeesHalfAWriteOrAnOldOne) {
  const auto [policy, fails, resizes, nodes, checksums] = GetParam();
  if (fails) test.device.fail(Failing::kReads, EIO, 50);
  std::optional<Resizer> resizer;
  if (resizes) resizer.emplace(*cache, kMaxFrames, fails);
  std::vector<Work> works(kThreads);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) threads.emplace_back([this, i, &works] { work(i, works[i]); });
  if (fails) {
    for (int i = 0; i < 20; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      test.device.fail(i % 2 == 0 ? Failing::kWrites : Failing::kReads, EIO, 20);
    }
    test.device.fail(Failing::kNothing, 0);
  }
  for (std::thread& thread : threads) thread.join();
  resizer.reset();
  EXPECT_GT(servers->flush_counts().pages, 0u);
  servers->close();
  Session session;
  session.open(*cache);
  auto removed = session.remove(*file);
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_EQ(cache->dirty_count(), 0u);
  session.close();
  const std::vector<std::byte> content = test.content();
  uint64_t failed = 0, written = 0;
  for (uint64_t i = 0; i < kCells; ++i) {
    Cell cell;
    memcpy(cell.data(), content.data() + offset_of(i, kPage), sizeof cell);
    ASSERT_EQ(number_of(cell), works[i % kThreads].own[i]) << "cell " << i;
    written += cell[0] != 0;
  }
  for (const Work& work : works) failed += work.failed;
  EXPECT_GT(written, kCells / 4);
  EXPECT_EQ(failed > 0, fails);
}

std::string name_of_case(const testing::TestParamInfo<ThreadsTest::ParamType>& parameter) {
  const auto [policy, fails, resizes, nodes, checksums] = parameter.param;
  return std::string(cache::name_of(policy)) + (fails ? "_fails" : "") + (resizes ? "_resizes" : "") +
         (nodes != 1 ? "_nodes" + std::to_string(nodes) : "") + (checksums ? "_checksums" : "");
}

INSTANTIATE_TEST_SUITE_P(All, ThreadsTest,
                         testing::Combine(testing::ValuesIn(cache::kSetPolicies), testing::Bool(),
                                          testing::Bool(), testing::Values(1), testing::Values(false)),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Nodes, ThreadsTest,
                         testing::Combine(testing::Values(cache::SetPolicy::kNrlfu), testing::Bool(),
                                          testing::Bool(), testing::Values(2, 4), testing::Values(false)),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Checksums, ThreadsTest,
                         testing::Combine(testing::Values(cache::SetPolicy::kAlfu), testing::Bool(),
                                          testing::Bool(), testing::Values(1), testing::Values(true)),
                         name_of_case);

// Pages move while a sync looks for dirty ones in many sets.
TEST(ResizeThreadsTest, ASyncLeavesNothingBehind) {
  constexpr uint64_t kManyPages = 2000, kMaxFrames = 1500;
  TestDevice test(kManyPages * kPage);
  PageCache* const cache = *PageCache::open(with_frames_most(kMaxFrames, cache::SetPolicy::kLru));
  File* const file = *cache->add(test.device);
  Session session;
  session.open(*cache);
  {
    const Resizer resizer(*cache, kMaxFrames, false);
    std::mt19937_64 random(2);
    for (int i = 1; i <= kSyncs; ++i) {
      const uint64_t first = random() % (kManyPages - 100);
      const std::vector<std::byte> text(kPage, static_cast<std::byte>(i));
      std::array<uint64_t, 60> pages;
      for (uint64_t& page : pages) {
        page = random() % 100;
        ASSERT_TRUE(session.write(*file, (first + page) * kPage, text));
      }
      ASSERT_TRUE(session.sync(*file));
      const std::vector<std::byte> content = test.content(first * kPage, 100 * kPage);
      for (const uint64_t page : pages) ASSERT_EQ(memcmp(&content[page * kPage], text.data(), kPage), 0) << i;
    }
  }
  session.close();
  cache->close();
}

}  // namespace
}  // namespace pagecache
