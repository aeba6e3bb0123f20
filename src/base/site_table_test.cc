#include "base/site_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace base {
namespace {

constexpr uint32_t kSites = SiteTable::kSites;

std::vector<SiteTable::Site> all_of(const SiteTable& table) {
  std::vector<SiteTable::Site> sites(kSites + 10);
  sites.resize(table.hottest(sites));
  return sites;
}

TEST(SiteTable, CountsExactlyWhileThereIsRoom) {
  SiteTable table;
  EXPECT_TRUE(all_of(table).empty());
  for (uint64_t site = 1; site <= kSites; ++site)
    for (uint64_t i = 0; i < site; ++i) table.add(0x1000 + site);
  const auto sites = all_of(table);
  ASSERT_EQ(sites.size(), kSites);
  for (uint64_t i = 0; i < kSites; ++i) {
    EXPECT_EQ(sites[i].address, 0x1000 + kSites - i);
    EXPECT_EQ(sites[i].count, kSites - i);
    EXPECT_EQ(sites[i].over, 0u);
  }
}

TEST(SiteTable, GivesTheHottestWhenAskedForFew) {
  SiteTable table;
  for (uint64_t site : {3, 1, 5, 2, 4})
    for (uint64_t i = 0; i < site; ++i) table.add(site);
  SiteTable::Site two[2];
  ASSERT_EQ(table.hottest(two), 2u);
  EXPECT_EQ(two[0].address, 5u);
  EXPECT_EQ(two[1].address, 4u);
  EXPECT_EQ(table.hottest({}), 0u);
}

TEST(SiteTable, SitesThatComeLateTakeThePlacesOfTheRarest) {
  SiteTable table;
  for (uint64_t site = 1; site <= kSites; ++site)
    for (int i = 0; i < (site == 7 || site == 9 ? 1 : 5); ++i) table.add(site);
  for (int i = 0; i < 100; ++i) {
    table.add(1000);
    table.add(2000);
  }
  const auto sites = all_of(table);
  ASSERT_EQ(sites.size(), kSites);
  for (uint64_t i = 0; i < 2; ++i) {
    EXPECT_EQ(sites[i].address % 1000, 0u);
    EXPECT_EQ(sites[i].count, 101u);
    EXPECT_EQ(sites[i].over, 1u);
  }
  for (const auto& site : sites) EXPECT_TRUE(site.address != 7 && site.address != 9);
}

TEST(SiteTable, FindsFrequentSitesAmongManyAndBoundsItsError) {
  std::mt19937_64 random(7);
  SiteTable table;
  std::map<uint64_t, uint64_t> truth;
  constexpr uint64_t kCalls = 200'000;
  for (uint64_t i = 0; i < kCalls; ++i) {
    // A tenth each to three sites, the rest to thousands.
    const uint64_t draw = random() % 10;
    const uint64_t site = draw < 3 ? draw + 1 : 1000 + random() % 5000;
    table.add(site);
    ++truth[site];
  }
  uint64_t sum = 0;
  std::map<uint64_t, SiteTable::Site> found;
  for (const auto& site : all_of(table)) {
    sum += site.count;
    EXPECT_TRUE(found.emplace(site.address, site).second);
    EXPECT_GE(site.count, truth[site.address]);
    EXPECT_LE(site.count - site.over, truth[site.address]);
  }
  EXPECT_EQ(sum, kCalls);
  for (const auto& [site, count] : truth) {
    if (count > kCalls / kSites) EXPECT_TRUE(found.contains(site)) << site;
  }
  EXPECT_TRUE(found.contains(1) && found.contains(2) && found.contains(3));
}

}  // namespace
}  // namespace base
