// The log by itself: who gets room and who waits, how several writers fill a segment at once, and which one is collected next. No records are
// written here; the keeper is the test's own thread, or one that it starts.
#include "kv/log/log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "kv/index/entry.h"
#include "kv/testing/medium_device.h"
#include "kv/testing/test_identity.h"
#include "storage/backends/memory.h"
#include "storage/testing/test_cut_device.h"
#include "task/test_tasks.h"

namespace kv {
namespace {

using Room = Log::Room;
using State = Segment::State;

constexpr uint32_t kSegments = 24;

// A log of segments of 2,048 grains, with one stream and the collector's.
class LogTest : public testing::Test {
 protected:
  LogTest() {
    device = *storage::make_memory_device(identity.geometry.capacity_bytes);
    EXPECT_TRUE(channel.open_for_threads(*device));
    begin();
  }
  ~LogTest() override {
    log->close();
    channel.close();
    device->close();
  }
  // A new log.
  void begin() {
    if (log != nullptr) log->close();
    log = std::make_unique<Log>();
    ASSERT_TRUE(log->open(identity, 1));
  }
  void keep() {
    for (bool did = true; did;) ASSERT_EQ(log->keep(channel, did), 0);
  }
  Room allocate(uint32_t grains, Extent& extent, RecordKind kind = RecordKind::kValue, uint64_t expiry = 0,
                bool is_relocation = false) {
    Log::Request request = {.stream = is_relocation ? log->relocation_stream() : 0,
                            .grains = grains,
                            .entry = {.sequence_and_kind = with_kind(log->next_sequence(), kind)},
                            .expiry = expiry};
    return log->allocate(request, extent);
  }
  void release(const Extent& extent, uint32_t grains) { log->release(extent.address, size_code::of(grains)); }
  // Fills segments with records that die at once, until there is no room. Returns how many segments these took.
  uint32_t fill(bool is_relocation) {
    std::vector<uint32_t> segments;
    for (Extent extent;;) {
      keep();
      if (const Room room = allocate(1024, extent, RecordKind::kValue, 0, is_relocation);
          room != Room::kDone) {
        EXPECT_EQ(room, Room::kWait);
        return static_cast<uint32_t>(segments.size());
      }
      log->finish(extent, true);
      release(extent, 1024);
      if (segments.empty() || segments.back() != extent.segment) segments.push_back(extent.segment);
    }
  }
  // Fills and seals one segment for each percentage: with records of 8 grains, this share of which stays live. The first value has this expiry.
  std::vector<uint32_t> fill_segments(const std::vector<unsigned>& live_percents, uint64_t expiry = 0) {
    std::vector<uint32_t> segments;
    Extent extent;
    for (const unsigned percent : live_percents) {
      std::vector<Extent> all;
      for (uint32_t i = 0; i < 250; ++i) {
        keep();
        EXPECT_EQ(allocate(8, extent, RecordKind::kValue, i == 0 ? expiry : 0), Room::kDone);
        log->finish(extent, true);
        all.push_back(extent);
      }
      // Less room is left than a record needs: the next one begins a new segment.
      EXPECT_EQ(all.front().segment, all.back().segment);
      for (size_t i = all.size() * percent / 100; i < all.size(); ++i) release(all[i], 8);
      segments.push_back(extent.segment);
      EXPECT_EQ(log->seal_all(channel), 0);
      EXPECT_EQ(state_of(extent.segment), State::kSealed);
    }
    return segments;
  }
  State state_of(uint32_t segment) { return log->segment(segment).state.load(); }
  // Few segments are free, and writers are paced.
  void begin_pace() {
    fill(false);
    EXPECT_EQ(log->counts().free_segments, Log::kReserve);
    EXPECT_TRUE(log->may_start_victim());
  }

  Identity identity = test_identity(kSegments);
  storage::Device* device;
  Channel channel;
  std::unique_ptr<Log> log;
};

TEST_F(LogTest, WritersLeaveTheCollectorTheReserve) {
  EXPECT_EQ(fill(false), kSegments - Log::kReserve);
  EXPECT_EQ(log->counts().free_segments, Log::kReserve);
  EXPECT_EQ(fill(true), Log::kReserve);
  EXPECT_EQ(log->counts().free_segments, 0u);
}

// These tombstones are far larger than real ones: each needs a segment.
TEST_F(LogTest, TombstonesLeaveTheCollectorOneSegment) {
  fill(false);
  Extent extent;
  ASSERT_EQ(allocate(1024, extent, RecordKind::kTombstone), Room::kDone);
  log->finish(extent, true);
  keep();
  EXPECT_EQ(log->counts().free_segments, 1u);
  EXPECT_EQ(allocate(1024, extent, RecordKind::kTombstone), Room::kWait);
  EXPECT_EQ(fill(true), 1u);
}

// There is no other free segment whose header would show that only this place of the medium is bad.
TEST_F(LogTest, TheOneFreeSegmentIsPutOffWhenItsHeaderCannotBeWritten) {
  auto* const medium = new storage::CutDevice(std::vector<std::byte>(identity.geometry.capacity_bytes), 0);
  medium->fail_writes(identity.geometry.header_offsets(kSegments - 1)[0], identity.geometry.grain_bytes);
  channel.close();
  device->close();
  device = medium;
  ASSERT_TRUE(channel.open_for_threads(*device));
  EXPECT_EQ(fill(false) + fill(true), kSegments - 1);
  EXPECT_EQ(log->counts().put_off_segments, 1u);
  EXPECT_EQ(state_of(kSegments - 1), State::kEmptied);
}

TEST_F(LogTest, ATombstoneGoesWhereAnyStreamHasRoom) {
  log->close();
  log = std::make_unique<Log>();
  ASSERT_TRUE(log->open(identity, 2));
  keep();
  Log::Request request = {.stream = 1, .grains = 1, .entry = {}};
  Extent other, extent;
  ASSERT_EQ(log->allocate(request, other), Room::kDone);
  log->finish(other, true);
  fill(false);
  ASSERT_EQ(allocate(1024, extent, RecordKind::kTombstone), Room::kDone);
  log->finish(extent, true);
  EXPECT_EQ(allocate(1024, extent), Room::kWait);
  ASSERT_EQ(allocate(1024, extent, RecordKind::kTombstone), Room::kDone);
  log->finish(extent, true);
  EXPECT_EQ(extent.segment, other.segment);
}

TEST_F(LogTest, NobodyIsRefusedForWhatTheCollectorHasNotLookedAt) {
  fill(false);
  bool goes_on = true;
  std::thread writer([&] {
    Log::Request request = {.stream = 0, .grains = 1024, .entry = {}};
    goes_on = log->wait_for_room(log->room_changes(), Room::kWait, request);
  });
  while (!log->need().waits) std::this_thread::yield();
  EXPECT_EQ(log->would_refuse(), Room::kDone) << "a segment is to be sealed";
  keep();
  EXPECT_EQ(log->would_refuse(), Room::kDone) << "it was sealed since the collector chose";
  log->tell_waiting();
  EXPECT_TRUE(log->need().waits);
  EXPECT_EQ(log->would_refuse(), Room::kWait);
  log->tell_waiting();
  EXPECT_FALSE(log->need().waits);
  log->refuse_waiting();  // otherwise the writer would wait for ever if the above failed
  writer.join();
  EXPECT_FALSE(goes_on);
}

TEST_F(LogTest, AStoreWithoutASegmentIsFullForPutsUntilOneIsGained) {
  fill(false);
  keep();
  static_cast<void>(log->need());
  std::atomic<bool> is_told{false};
  std::thread writer([&] {
    Log::Request request = {.stream = 0, .grains = 1024, .entry = {}};
    while (log->wait_for_room(log->room_changes(), Room::kWait, request)) {
    }
    is_told = true;
  });
  while (!is_told) log->tell_waiting();
  writer.join();
  Extent extent;
  ASSERT_EQ(allocate(1, extent, RecordKind::kTombstone), Room::kDone);
  log->finish(extent, true);
  EXPECT_EQ(allocate(1, extent), Room::kWaitForLimit) << "though it would fit beside the tombstone";
  for (uint32_t segment = 0, count = 0; count < 2; ++segment) {
    if (state_of(segment) != State::kSealed) continue;
    log->emptied(segment);
    ++count;
  }
  ASSERT_EQ(log->give_back(channel), 0);
  ASSERT_EQ(allocate(1, extent), Room::kDone);
  log->finish(extent, true);
}

TEST_F(LogTest, WhatSegmentsLoseAtTheirEndsIsOffTheLimit) {
  const uint64_t most = log->counts().limit_bytes;
  Extent extent;
  const auto seal_with = [&](uint32_t records) {
    keep();
    for (uint32_t i = 0; i < records; ++i) {
      ASSERT_EQ(allocate(600, extent), Room::kDone);
      log->finish(extent, true);
    }
    ASSERT_EQ(log->seal_all(channel), 0);
  };
  seal_with(1);
  EXPECT_EQ(log->counts().limit_bytes, most) << "it was sealed early";
  release(extent, 600);
  log->emptied(extent.segment);
  seal_with(3);
  EXPECT_EQ(log->counts().limit_bytes, most * 1800 / log->usable_grains(3));
  log->emptied(extent.segment);
  EXPECT_EQ(log->counts().limit_bytes, most);
}

TEST_F(LogTest, TheCollectorDoesNotWaitForWhatOnlyItGives) {
  fill(false);
  fill(true);
  Log::Request request = {.stream = log->relocation_stream(), .grains = 1024, .entry = {}};
  EXPECT_FALSE(log->wait_for_room(log->room_changes(), Room::kWait, request));
}

TEST_F(LogTest, AVictimMayBeLeftAsItIsWhileTheReserveIsNotNeeded) {
  fill(false);
  EXPECT_FALSE(log->has_more_than(Log::kReserve));
  // An emptied segment makes up for the one that relocated records take.
  uint32_t sealed = 0;
  while (state_of(sealed) != State::kSealed) ++sealed;
  log->emptied(sealed);
  EXPECT_TRUE(log->has_more_than(Log::kReserve));
  Extent extent;
  ASSERT_EQ(allocate(1, extent, RecordKind::kValue, 0, true), Room::kDone);
  log->finish(extent, true);
  EXPECT_FALSE(log->has_more_than(Log::kReserve));
  EXPECT_FALSE(log->may_start_victim()) << "before that one is given back";
  ASSERT_EQ(log->give_back(channel), 0);
  EXPECT_TRUE(log->may_start_victim());
}

// A relocation that came too late puts into a young segment a copy that is older than earlier tombstones.
TEST_F(LogTest, OldCopiesHoldTombstonesUpUntilTheirSegmentIsSealed) {
  const std::vector<uint32_t> sealed = fill_segments({100, 100});
  Extent extent;
  keep();
  ASSERT_EQ(allocate(1, extent, RecordKind::kValue, 0, true), Room::kDone);
  EXPECT_EQ(log->oldest_generation(sealed[0]), log->segment(sealed[1]).generation.load());
  log->segment(extent.segment).has_old_copies = true;
  EXPECT_EQ(log->oldest_generation(sealed[0]), 0u);
  // Its summary says that the copy is void.
  log->finish(extent, false);
  ASSERT_EQ(log->seal_all(channel), 0);
  EXPECT_EQ(log->oldest_generation(sealed[0]), log->segment(sealed[1]).generation.load());
}

// --- which segment is next ---

TEST_F(LogTest, ASegmentWithMoreToGainMayWaitUntilItIsOlder) {
  // The oldest gains little, the youngest most.
  const std::vector<uint32_t> segments = fill_segments({85, 10, 8});
  EXPECT_EQ(log->choose_victim(0), segments[1]);
  // Once eight more have been filled, ages differ little, and the gain decides.
  fill_segments({100, 100, 100, 100, 100, 100, 100, 100});
  EXPECT_EQ(log->choose_victim(0), segments[2]);
}

TEST_F(LogTest, WhatGainsNothingIsNotCollected) {
  fill_segments({99, 100});
  EXPECT_EQ(log->choose_victim(0), Log::kNone);
  const std::vector<uint32_t> segments = fill_segments({90, 100});
  EXPECT_EQ(log->choose_victim(0), segments[0]);
  log->segment(segments[0]).keeps = 1;
  EXPECT_EQ(log->choose_victim(0), Log::kNone);
}

TEST_F(LogTest, TheOldestIsCollectedWhileTombstonesTakeMuch) {
  const std::vector<uint32_t> segments = fill_segments({100, 20});
  EXPECT_EQ(log->choose_victim(0), segments[1]);
  Extent extent;
  // More than 1/32 of 24 MiB.
  for (int i = 0; i < 1600; ++i) {
    keep();
    ASSERT_EQ(allocate(1, extent, RecordKind::kTombstone), Room::kDone);
    log->finish(extent, true);
  }
  EXPECT_EQ(log->choose_victim(0), segments[0]);
}

TEST_F(LogTest, WhatHasExpiredIsLookedForInTheOldestSegmentThatHasIt) {
  const uint32_t later = fill_segments({100}, 2000)[0];
  const std::vector<uint32_t> segments = fill_segments({100, 100}, 1000);
  fill_segments({100});
  EXPECT_EQ(log->choose_victim(999), Log::kNone);
  EXPECT_EQ(log->choose_victim(1000), segments[0]);
  EXPECT_EQ(log->choose_victim(2000), later);
}

// --- how segments are filled ---

TEST_F(LogTest, RecordsLeaveTheSummaryItsPlace) {
  keep();
  Extent extent, next;
  ASSERT_EQ(allocate(1, extent), Room::kDone);
  log->finish(extent, true);
  uint32_t count = 0;
  for (;; ++count) {
    ASSERT_EQ(allocate(1, next), Room::kDone);
    log->finish(next, true);
    if (next.segment != extent.segment) break;
    EXPECT_EQ(next.address, extent.address + 1 + count);
  }
  const Segment& full = log->segment(extent.segment);
  EXPECT_EQ(full.entry_count, count + 1);
  EXPECT_EQ(full.used_grains, count + 2) << "and the header";
  EXPECT_LE(full.used_grains + summary_grains(identity.geometry, full.entry_count), 2048u);
  EXPECT_GT(full.used_grains + 1 + summary_grains(identity.geometry, full.entry_count + 1), 2048u);
}

TEST_F(LogTest, ASegmentIsNotSealedBeforeItsLastWriterHasEnded) {
  keep();
  Extent first, other, next;
  ASSERT_EQ(allocate(1024, first), Room::kDone);
  ASSERT_EQ(allocate(512, other), Room::kDone);
  ASSERT_EQ(allocate(1024, next), Room::kDone);
  ASSERT_NE(next.segment, first.segment);
  log->finish(next, true);
  keep();
  EXPECT_EQ(state_of(first.segment), State::kFull);
  log->finish(first, true);
  keep();
  EXPECT_EQ(state_of(first.segment), State::kFull);
  log->finish(other, false);
  EXPECT_EQ(log->segment(first.segment).entries[other.entry].kind(), RecordKind::kVoid);
  keep();
  EXPECT_EQ(state_of(first.segment), State::kSealed);
  EXPECT_EQ(log->counts().live_grains, 1024u + 1024u);
}

// A summary may take megabytes.
TEST_F(LogTest, WhatIsToBeDoneInTimeIsDoneBetweenSummaries) {
  keep();
  Extent extent;
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(allocate(1200, extent), Room::kDone);
    log->finish(extent, true);
  }
  ASSERT_EQ(allocate(1200, extent), Room::kWait);
  uint32_t times = 0;
  log->meanwhile = {.act = [](void* self) { ++*static_cast<uint32_t*>(self); }, .self = &times};
  bool did = false;
  ASSERT_EQ(log->keep(channel, did), 0);
  EXPECT_EQ(log->counts().sealed_segments, 2u);
  EXPECT_EQ(times, 2u);
  log->meanwhile = {};
}

// A writer that has seen how full a segment is, and is then stopped while others make the segment FULL, gets no room there, although some is
// left.
TEST_F(LogTest, WhoComesLateToAFullSegmentGetsNothing) {
  keep();
  Extent first, next;
  ASSERT_EQ(allocate(1, first), Room::kDone);
  Segment& segment = log->segment(first.segment);
  uint64_t seen = segment.filling;
  ASSERT_EQ(allocate(log->usable_grains(1), next), Room::kDone);
  ASSERT_NE(next.segment, first.segment);
  EXPECT_EQ(state_of(first.segment), State::kFull);
  EXPECT_EQ(segment.used_grains, 2u);
  EXPECT_FALSE(segment.filling.compare_exchange_strong(seen, seen + 1));
  log->finish(first, true);
  log->finish(next, true);
}

// As if another thread were about to make it FULL, and had just closed it.
TEST_F(LogTest, AClosedSegmentTakesNothing) {
  keep();
  Extent first, next;
  ASSERT_EQ(allocate(1, first), Room::kDone);
  log->segment(first.segment).filling |= uint64_t{1} << 63;
  ASSERT_EQ(allocate(1, next), Room::kDone);
  EXPECT_NE(next.segment, first.segment);
  EXPECT_EQ(log->segment(first.segment).entry_count, 1u);
  log->finish(first, true);
  log->finish(next, true);
}

// Small records still find room where a large one does not, just when the large one's writer makes the segment FULL.
TEST_F(LogTest, WhatManyAppendAtOnceIsInTheSummaries) {
  constexpr int kThreads = 4;
  struct Got {
    Extent extent;
    uint32_t grains;
  };
  for (uint64_t round = 0; round < 30; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    begin();
    keep();
    std::vector<Got> got[kThreads];
    std::atomic<int> ended{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        std::mt19937_64 random(round * kThreads + static_cast<uint64_t>(t));
        Extent extent;
        for (;;) {
          const auto grains = static_cast<uint32_t>(t % 2 == 0 ? 300 + random() % 400 : 1 + random() % 3);
          const Room room = allocate(grains, extent);
          if (room == Room::kDone) {
            log->finish(extent, true);
            release(extent, grains);
            got[t].push_back({extent, grains});
          } else if (log->counts().free_segments <= Log::kReserve) {
            break;
          } else {
            std::this_thread::yield();
          }
        }
        ++ended;
      });
    while (ended != kThreads) keep();
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(log->seal_all(channel), 0);
    std::vector<Got> all;
    for (const auto& part : got) all.insert(all.end(), part.begin(), part.end());
    std::ranges::sort(all, {}, [](const Got& one) { return one.extent.address; });
    size_t listed = 0;
    for (uint32_t i = 0; i < kSegments; ++i)
      if (state_of(i) == State::kSealed) listed += log->segment(i).entry_count;
    EXPECT_EQ(listed, all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      const auto& [extent, grains] = all[i];
      const Segment& segment = log->segment(extent.segment);
      ASSERT_LT(extent.entry, segment.entry_count);
      ASSERT_LE(identity.geometry.grain_of(extent.address) + grains, segment.used_grains);
      if (i > 0) ASSERT_GE(extent.address, all[i - 1].extent.address + all[i - 1].grains);
    }
  }
}

// --- writers that are paced ---

// Tasks of one worker: each runs until it waits.
class LogPaceTest : public LogTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(scheduler.open({.worker_count = 1, .stack_bytes = task::kTestStackBytes}));
  }
  void TearDown() override { scheduler.close(); }
  template <class F>
  void run(F f) {
    ASSERT_TRUE(scheduler.run(task::calls("main", f)));
  }
  // Starts writers of these many grains, one after the other; `admitted` says which have had their turn, in order, and `ended_ns` when.
  void start_writers(const std::vector<uint32_t>& grains) {
    for (const uint32_t each : grains) {
      writers.push_back([this, i = writers.size(), each] {
        const Log::Request request = {.grains = each, .entry = {}};
        (log->wait_for_turn(request) ? admitted : refused).push_back(i);
        ended_ns.push_back(now_ns());
      });
      tasks.push_back(&task::start("writer", writers.back()));
      task::yield();
    }
  }
  void join_writers() {
    for (task::Task* writer : tasks) task::join(*writer);
  }
  void let_run() {
    for (int i = 0; i < 3; ++i) task::yield();
  }
  double seconds_until(size_t ended, uint64_t begin_ns) const {
    return static_cast<double>(ended_ns.at(ended) - begin_ns) / 1e9;
  }

  using Which = std::vector<size_t>;
  static constexpr uint32_t kLong = 400'000;  // grains that take longer than a test
  task::Scheduler scheduler;
  std::deque<std::function<void()>> writers;
  std::vector<task::Task*> tasks;
  Which admitted, refused;
  std::vector<uint64_t> ended_ns;
};

TEST_F(LogPaceTest, NobodyWaitsWhileEnoughIsFree) {
  run([&] {
    start_writers({kLong, kLong, kLong});
    EXPECT_EQ(admitted, (Which{0, 1, 2}));
    EXPECT_FALSE(log->is_awaited());
    join_writers();
  });
}

// 2,000 grains are 1 MB: 12.8 ms at the initial pace.
TEST_F(LogPaceTest, WritersHaveTheirTurnsFirstComeFirstServed) {
  run([&] {
    begin_pace();
    const uint64_t begin_ns = now_ns();
    start_writers({2000, 2000, 2000, 1});
    EXPECT_FALSE(admitted.empty()) << "nobody came before";
    join_writers();
    EXPECT_EQ(admitted, (Which{0, 1, 2, 3}));
    EXPECT_GT(seconds_until(1, begin_ns), 0.011);
    EXPECT_GT(seconds_until(3, begin_ns), 0.036);
    EXPECT_FALSE(log->is_awaited());
  });
}

TEST_F(LogPaceTest, WhoWaitsIsToldThatTheLogHasFailed) {
  run([&] {
    begin_pace();
    start_writers({kLong, 1, 1});
    EXPECT_EQ(admitted, Which{0});
    EXPECT_TRUE(log->is_awaited());
    log->fail();
    let_run();
    EXPECT_EQ(refused, (Which{1, 2}));
    join_writers();
  });
}

TEST_F(LogPaceTest, PaceEndsWhenNothingIsToBeCollected) {
  run([&] {
    begin_pace();
    start_writers({kLong, kLong, 1});
    EXPECT_EQ(admitted, Which{0});
    log->tell_waiting();
    let_run();
    EXPECT_EQ(admitted, (Which{0, 1, 2}));
    start_writers({kLong, kLong});
    EXPECT_EQ(admitted.size(), 5u);
    join_writers();
  });
}

TEST_F(LogPaceTest, PaceEndsWhenEnoughIsFree) {
  run([&] {
    begin_pace();
    start_writers({kLong, 1, 1});
    EXPECT_TRUE(log->need().collects);
    task::yield();
    EXPECT_EQ(admitted, Which{0});
    for (uint32_t i = 0, count = 0; count < 2; ++i) {
      if (state_of(i) != State::kSealed) continue;
      log->emptied(i);
      ++count;
    }
    ASSERT_EQ(log->give_back(channel), 0);
    EXPECT_FALSE(log->need().collects);
    let_run();
    EXPECT_EQ(admitted, (Which{0, 1, 2}));
    join_writers();
  });
}

TEST_F(LogPaceTest, WritersAreAsFastAsTheCollectorGains) {
  run([&] {
    begin_pace();
    // One grain a ms at most; writers get a quarter of that while nothing is free.
    for (int i = 0; i < 20; ++i) {
      log->gained(1);
      ASSERT_EQ(task::sleep_until(now_ns() + 1'000'000), task::Woken::kTimedOut);
    }
    const uint64_t begin_ns = now_ns();
    start_writers({20, 1});
    join_writers();
    EXPECT_EQ(admitted, (Which{0, 1}));
    EXPECT_GT(seconds_until(1, begin_ns), 0.018);
  });
}

// Free room is that of unused segments, emptied ones included, and what is left of open ones; less the reserve.
TEST_F(LogPaceTest, WhatIsFreeIsSeenByGrains) {
  constexpr double wanted = 1.5 + 1;  // with one stream
  EXPECT_NEAR(log->counts().free_level, (kSegments - Log::kReserve) / wanted, 1e-9);
  keep();
  Extent extent;
  ASSERT_EQ(allocate(512, extent), Room::kDone);
  log->finish(extent, true);
  const double used = (1 + 512) / 2048.0;  // the header is one
  EXPECT_NEAR(log->counts().free_level, (kSegments - Log::kReserve - used) / wanted, 1e-9);
  fill(false);
  EXPECT_LT(log->counts().free_level, 0.5 / wanted);
  EXPECT_TRUE(log->is_short());
  uint32_t sealed = 0;
  while (state_of(sealed) != State::kSealed) ++sealed;
  const double before = log->counts().free_level;
  log->emptied(sealed);
  EXPECT_NEAR(log->counts().free_level, before + 1 / wanted, 1e-9);
  EXPECT_TRUE(log->is_short()) << "it is nobody's yet";
  ASSERT_EQ(log->give_back(channel), 0);
  EXPECT_NEAR(log->counts().free_level, before + 1 / wanted, 1e-9);
  EXPECT_FALSE(log->is_short());
}

// By now, snapshots may keep records of the chosen segment, and of all others.
TEST_F(LogTest, TheFloorIsDurableThoughAllSegmentsAreKept) {
  const uint32_t segment = fill_segments({100}).front();
  log->segment(segment).keeps.store(1);
  log->drop_below(1000);
  ASSERT_EQ(log->keep_floor(channel, segment), 0);
  alignas(4096) std::byte block[512];
  ASSERT_EQ(channel.read(identity.geometry.header_offsets(segment)[0], block), 0);
  SegmentHeader header;
  ASSERT_TRUE(read_segment_header(identity, block, header));
  EXPECT_EQ(header.floor, 1000u);
}

// One of its headers may be damaged when the next start reads them.
TEST_F(LogTest, TheFloorIsInTheHeadersOfTwoSegments) {
  const std::vector<uint32_t> segments = fill_segments({100, 100, 100});
  log->drop_below(1000);
  ASSERT_EQ(log->keep_floor(channel, segments.front()), 0);
  int with_floor = 0;
  for (const uint32_t segment : segments) {
    alignas(4096) std::byte block[512];
    ASSERT_EQ(channel.read(identity.geometry.header_offsets(segment)[0], block), 0);
    SegmentHeader header;
    ASSERT_TRUE(read_segment_header(identity, block, header));
    EXPECT_EQ(header.state, SegmentState::kUsed);
    EXPECT_EQ(header.generation, log->segment(segment).generation.load());
    with_floor += header.floor == 1000;
  }
  EXPECT_EQ(with_floor, 2);
}

// A medium with holes, which counts writes of zeros over headers.
class HolesDevice final : public MediumDevice {
 public:
  explicit HolesDevice(const Identity& identity)
      : MediumDevice(std::vector<std::byte>(identity.geometry.capacity_bytes)),
        geometry_(identity.geometry) {}
  uint64_t filled_bytes = 0, lost_headers = 0;

 private:
  bool do_has_room_at(uint64_t, uint64_t) const override { return false; }
  int before(const storage::Io& io) override {
    const auto* const bytes =
        static_cast<const std::byte*>(io.segments != nullptr ? io.segments->iov_base : nullptr);
    if (io.operation != storage::Operation::kWrite ||
        !std::all_of(bytes, bytes + io.length_bytes, [](std::byte byte) { return byte == std::byte{0}; }))
      return 0;
    filled_bytes += io.length_bytes;
    for (uint64_t i = 0; i < geometry_.segment_count; ++i)
      for (const uint64_t header : geometry_.header_offsets(i))
        lost_headers +=
            io.offset_bytes < header + geometry_.grain_bytes && header < io.offset_bytes + io.length_bytes;
    return 0;
  }
  const Geometry& geometry_;
};

// Filling holes leaves headers alone: power may fail before the next ones are written.
TEST_F(LogTest, WhatIsFilledBeforehandIsNoHeader) {
  auto* const holes = new HolesDevice(identity);
  Channel filling;
  ASSERT_TRUE(filling.open_for_threads(*holes));
  for (bool did = true; did;) ASSERT_EQ(log->keep(filling, did), 0);
  EXPECT_GT(holes->filled_bytes, identity.geometry.segment_bytes);
  EXPECT_EQ(holes->lost_headers, 0u);
  filling.close();
  holes->close();
}

}  // namespace
}  // namespace kv
