// The two caches of a thread against a model: who is in which, who may go, and what the quick step does.
#include "spill/satc_levels.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

extern "C" {
thread_local SatcThread __spillway_satc __attribute__((tls_model("initial-exec")));
thread_local void* __spillway_slots __attribute__((tls_model("initial-exec")));
extern uint64_t spillway_satc_epoch;
int64_t spillway_satc_quick(uint64_t address);
}

namespace {

constexpr uint64_t kBase = uint64_t{1} << 44;
constexpr int kSlots = 0;  // of some level

int64_t entry_of(uint64_t begin) { return static_cast<int64_t>(begin >> 3) + 1; }

class Caches {
 public:
  Caches(uint64_t private_pages, uint64_t direct_pages, SatcPolicy policy, uint32_t ways = kSatcWays,
         uint64_t page_bytes = 4096)
      : lines_((direct_pages * page_bytes >> kSatcLineShiftInC) / sizeof(SatcLine)),
        sets_(private_pages / ways) {
    satc.page_bytes = page_bytes;
    satc.page_shift = static_cast<uint32_t>(__builtin_ctzll(page_bytes));
    satc.lines = direct_pages == 0 ? nullptr : lines_.data();
    satc.line_mask = direct_pages == 0 ? 0 : (direct_pages - 1) * page_bytes >> kSatcLineShiftInC;
    satc.sets = sets_.data();
    satc.set_mask = sets_.size() - 1;
    satc.ways = ways;
    satc.has_private = true;
    satc.policy = policy;
    satc.random = 12345;
    satc.slots = &kSlots;
    satc.epoch = spillway_satc_epoch;
    __spillway_slots = const_cast<int*>(&kSlots);
    __spillway_satc.satc = &satc;
  }
  ~Caches() { __spillway_satc = {}; }

  uint64_t page(uint64_t number) const { return kBase + number * satc.page_bytes; }
  bool in_direct(uint64_t number) const { return satc_is_in_line(&satc, page(number)); }
  bool in_private(uint64_t number) const {
    return satc_find(&satc, satc_set(&satc, page(number)), page(number)) != kSatcNoWay;
  }

  // What the blocking step does. Returns the page that left, or ~0.
  uint64_t bring(uint64_t number) {
    SatcSet* const set = satc_set(&satc, page(number));
    const int way = satc_choose(&satc, set, page(number));
    EXPECT_NE(way, kSatcNoWay) << "all pages of the set are in Direct";
    if (way == kSatcNoWay) return ~uint64_t{0};
    const uint64_t left = set->begins[way];
    if (left != 0) satc_clear_way(&satc, set, way);
    satc_fill_way(&satc, set, way, page(number), entry_of(page(number)));
    satc_promote(&satc, page(number), entry_of(page(number)));
    return left == 0 ? ~uint64_t{0} : (left - kBase) / satc.page_bytes;
  }

  void translate(uint64_t number) {
    if (in_direct(number)) return;
    const int64_t entry = spillway_satc_quick(page(number) + 77);
    if (entry == 0)
      bring(number);
    else
      EXPECT_EQ(entry, entry_of(page(number)));
  }

  void verify() const {
    for (const SatcSet& set : sets_)
      for (uint32_t way = 0; way < satc.ways; ++way)
        if (set.begins[way] != 0) {
          EXPECT_EQ(satc_set(&satc, set.begins[way]), &set);
          EXPECT_EQ(set.entries[way], entry_of(set.begins[way]));
        }
    for (const SatcLine& line : lines_)
      if (line.begin != 0) {
        EXPECT_EQ(satc_line(&satc, line.begin), &line);
        EXPECT_EQ(line.entry, entry_of(line.begin));
        EXPECT_NE(satc_find(&satc, satc_set(&satc, line.begin), line.begin), kSatcNoWay)
            << "in Direct and not in Private";
      }
  }

  Satc satc = {};

 private:
  std::vector<SatcLine> lines_;
  std::vector<SatcSet> sets_;
};

constexpr SatcPolicy kPolicies[] = {kSatcClock, kSatcLru, kSatcRandom};

TEST(SatcLevels, DirectIsInPrivateWhateverTheSizes) {
  std::mt19937_64 random(7);
  for (const SatcPolicy policy : kPolicies)
    for (const uint64_t private_pages : {8, 16, 64})
      for (uint64_t direct_pages = 0; direct_pages <= private_pages;
           direct_pages = direct_pages == 0 ? 1 : 2 * direct_pages)
        for (const uint64_t page_bytes : {uint64_t{4096}, uint64_t{65536}}) {
          Caches caches(private_pages, direct_pages, policy, kSatcWays, page_bytes);
          for (int i = 0; i < 4000; ++i) {
            const uint64_t number = random() % (3 * private_pages);
            caches.translate(number);
            EXPECT_TRUE(caches.in_private(number));
            EXPECT_EQ(caches.in_direct(number), direct_pages != 0);
            if (i % 64 == 0) caches.verify();
          }
          caches.verify();
        }
}

// Pages that go to one set, each with a line of its own: the set has no more of them than ways.
TEST(SatcLevels, AVictimIsInDirectOnlyIfTheNewPageTakesItsLine) {
  for (const SatcPolicy policy : kPolicies) {
    Caches caches(64, 64, policy);  // 8 sets: a set's pages have 8 lines
    for (uint64_t i = 0; i < 8; ++i) caches.bring(8 * i);
    for (uint64_t i = 0; i < 8; ++i) EXPECT_TRUE(caches.in_direct(8 * i));
    EXPECT_EQ(caches.bring(8 * 11), 8u * 3) << "of the line of page 3";
    EXPECT_TRUE(caches.in_direct(8 * 11));
    for (const uint64_t i : {0, 1, 2, 4, 5, 6, 7}) EXPECT_TRUE(caches.in_direct(8 * i));
  }
}

TEST(SatcLevels, LruTakesWhatWasUsedLongestAgo) {
  Caches caches(8, 0, kSatcLru);
  for (uint64_t i = 0; i < 8; ++i) caches.bring(i);
  for (const uint64_t i : {3, 0, 7, 1}) caches.translate(i);
  for (const uint64_t gone : {2, 4, 5, 6, 3, 0, 7, 1}) EXPECT_EQ(caches.bring(gone + 100), gone);
}

TEST(SatcLevels, ClockSparesWhatWasUsedSinceTheHandCameBy) {
  Caches caches(8, 0, kSatcClock);
  for (uint64_t i = 0; i < 8; ++i) caches.bring(i);
  EXPECT_EQ(caches.bring(100), 0u);  // all had been used: the second round
  caches.translate(1);
  caches.translate(3);
  EXPECT_EQ(caches.bring(101), 2u);
  EXPECT_EQ(caches.bring(102), 4u);
}

TEST(SatcLevels, RandomTakesEachInTurn) {
  Caches caches(8, 0, kSatcRandom);
  std::set<uint64_t> gone;
  for (uint64_t i = 0; i < 8; ++i) caches.bring(i);
  for (uint64_t i = 8; i < 200; ++i) gone.insert(caches.bring(i));
  for (uint64_t i = 0; i < 8; ++i) EXPECT_TRUE(gone.contains(i));
}

// --satc-levels=direct: the sets only say what is pinned.
TEST(SatcLevels, WithoutPrivateEachLineHasItsPin) {
  Caches caches(16, 16, kSatcClock, /*ways=*/1);
  caches.satc.has_private = false;
  for (uint64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(spillway_satc_quick(caches.page(i)), 0);
    EXPECT_EQ(caches.bring(i), i < 16 ? ~uint64_t{0} : i - 16);
    EXPECT_EQ(caches.in_direct(i), true);
    caches.verify();
  }
}

TEST(SatcQuick, LeavesToTheBlockingStepWhatItMustNotDo) {
  Caches caches(16, 4, kSatcClock);
  caches.bring(3);
  caches.bring(7);  // of the same line
  EXPECT_EQ(spillway_satc_quick(caches.page(4)), 0) << "nowhere";
  EXPECT_FALSE(caches.in_direct(3));
  __spillway_slots = nullptr;
  EXPECT_EQ(spillway_satc_quick(caches.page(3)), 0) << "in a handler of a signal";
  EXPECT_TRUE(caches.in_direct(7));
  __spillway_slots = const_cast<int*>(&kSlots);
  ++spillway_satc_epoch;
  EXPECT_EQ(spillway_satc_quick(caches.page(3)), 0) << "invalidated";
  caches.satc.epoch = spillway_satc_epoch;
  EXPECT_EQ(spillway_satc_quick(caches.page(3) + 4095), entry_of(caches.page(3)));
  EXPECT_TRUE(caches.in_direct(3));
  EXPECT_FALSE(caches.in_direct(7));
  EXPECT_EQ(caches.satc.private_hits, 1u);
  EXPECT_EQ(caches.satc.direct_misses, 1u);
  __spillway_satc.satc = nullptr;
  EXPECT_EQ(spillway_satc_quick(caches.page(3)), 0) << "a thread that has none";
}

TEST(SatcQuick, CountsHitsOfDirectWhereItIsAsked) {
  Caches caches(16, 4, kSatcClock);
  caches.satc.counts = true;
  caches.bring(3);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(spillway_satc_quick(caches.page(3)), entry_of(caches.page(3)));
  EXPECT_EQ(caches.satc.direct_hits, 5u);
  EXPECT_EQ(caches.satc.direct_misses, 0u);
  caches.bring(7);
  EXPECT_NE(spillway_satc_quick(caches.page(3)), 0);
  EXPECT_EQ(caches.satc.direct_hits, 5u);
  EXPECT_EQ(caches.satc.private_hits, 1u);
}

}  // namespace
