#include "base/statistics.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

namespace base {
namespace {

TEST(Statistics, EachNameReadsItsOwnCounter) {
  uint64_t mark = 1000;
#define STATISTIC(folder, name, doc) statistics.folder##_##name.set(mark++);
#include "base/statistics.inc"
  ASSERT_EQ(mark, 1000 + std::size(kStatisticInfo));
  for (size_t i = 0; i < std::size(kStatisticInfo); ++i)
    EXPECT_EQ(statistic_value(i), 1000 + i) << kStatisticInfo[i].name;
  EXPECT_DEATH(statistic_value(std::size(kStatisticInfo)), "does not hold");
}

TEST(Statistics, EachListOfSitesIsItsOwn) {
  ASSERT_EQ(kSitesCount, 1u);
  EXPECT_STREQ(kSitesInfo[0].name, "fault_sites");
  EXPECT_EQ(&statistic_sites(0), &statistics.spill_fault_sites);
  EXPECT_DEATH(statistic_sites(kSitesCount), "does not hold");
  ASSERT_EQ(kCurveCount, 1u);
  EXPECT_STREQ(kCurveInfo[0].name, "miss_curve");
  EXPECT_EQ(&statistic_curve(0), &statistics.cache_miss_curve);
  EXPECT_DEATH(statistic_curve(kCurveCount), "does not hold");
  ASSERT_EQ(kWordCount, 2u);
  EXPECT_STREQ(kWordInfo[0].name, "policy");
  EXPECT_STREQ(kWordInfo[1].name, "policy_why");
  for (const char* word : {"", "2q", "eight888"}) {
    statistics.chosen_policy.set(word);
    statistics.chosen_policy_why.set("why");
    EXPECT_EQ(statistic_word(0).view(), word);
    EXPECT_EQ(statistic_word(1).view(), "why");
  }
  EXPECT_DEATH(statistic_word(kWordCount), "does not hold");
}

TEST(Statistics, HoldsWhatTheCommandLinePromises) {
  std::set<std::string> keys;
  for (const auto& info : kStatisticInfo) {
    EXPECT_TRUE(keys.insert(std::string(info.folder) + '.' + info.name).second) << info.name;
    EXPECT_FALSE(std::string_view(info.doc).empty()) << info.name;
  }
  for (const auto& info : kSitesInfo)
    EXPECT_TRUE(keys.insert(std::string(info.folder) + '.' + info.name).second) << info.name;
  for (const char* key : {"spill.allocated_bytes", "spill.translations_slow", "spill.faults", "cache.hits",
                          "cache.misses", "cache.evictions", "cache.writebacks", "storage.read_bytes",
                          "storage.write_bytes", "memory.peak_bytes"})
    EXPECT_TRUE(keys.contains(key)) << key;
}

TEST(Statistics, WhatHasHappenedIsCounted) {
  std::set<std::string> counters, gauges;
  for (const auto& info : kStatisticInfo)
    (info.is_counter ? counters : gauges).insert(std::string(info.folder) + '.' + info.name);
  for (const char* key : {"spill.allocated_bytes", "cache.misses", "storage.read_bytes", "memory.pressures"})
    EXPECT_TRUE(counters.contains(key)) << key;
  for (const char* key : {"spill.live_bytes", "memory.budget_bytes", "memory.peak_bytes"})
    EXPECT_TRUE(gauges.contains(key)) << key;
}

TEST(Counter, CountsOfAllThreadsAddUp) {
  Statistics::Counter counter, peak;
  std::vector<std::jthread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 10000; ++i) {
        counter.add(3);
        counter.subtract(1);
        peak.raise(i * 4 + t);
      }
    });
  }
  threads.clear();
  EXPECT_EQ(counter.get(), 4u * 10000 * 2);
  EXPECT_EQ(peak.get(), 9999u * 4 + 3);
  peak.raise(5);
  EXPECT_EQ(peak.get(), 9999u * 4 + 3);
}

}  // namespace
}  // namespace base
