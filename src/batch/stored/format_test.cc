// Maps of a stored table, without a table: which contents are accepted.
#include "batch/stored/format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace batch {
namespace {

constexpr MapReader::Limits kLimits = {.sequence = 100, .slot_pages = 4, .page_records = 10};

// A region with one half of all positions, and two with a quarter each; one of these has no records.
std::vector<MapRegion> good_regions() {
  std::vector<MapRegion> regions(3);
  regions[0].entry = {.slot = 3, .made = 100, .count = 15, .depth = 1, .page_count = 2};
  regions[0].fences[1] = 7;
  regions[1].entry = {.depth = 2};
  regions[1].prefix = uint64_t{2} << 62;
  regions[2].entry = {.slot = 4, .made = 1, .count = 40, .depth = 2, .page_count = 4};
  regions[2].prefix = uint64_t{3} << 62;
  regions[2].fences[3] = 9;
  return regions;
}

std::vector<std::byte> map_of(const std::vector<MapRegion>& regions) {
  std::vector<std::byte> map;
  const auto add = [&](const void* from, size_t bytes) {
    const auto* const begin = static_cast<const std::byte*>(from);
    map.insert(map.end(), begin, begin + bytes);
  };
  for (const MapRegion& region : regions) {
    add(&region.entry, sizeof region.entry);
    add(region.fences, std::min(region.entry.page_count, kMaxSlotPages) * sizeof(uint32_t));
  }
  return map;
}

// None: the map is damaged.
std::optional<std::vector<MapRegion>> read(std::span<const std::byte> map) {
  MapReader reader(map, kLimits);
  std::vector<MapRegion> regions;
  for (;;) {
    MapRegion next;
    switch (reader.next(next)) {
      case MapReader::Next::kRegion: regions.push_back(next); break;
      case MapReader::Next::kEnd: return regions;
      case MapReader::Next::kDamaged: return std::nullopt;
    }
  }
}

TEST(MapReader, HasWhatTheMapHas) {
  const auto good = good_regions();
  const auto found = read(map_of(good));
  ASSERT_TRUE(found.has_value());
  ASSERT_EQ(found->size(), good.size());
  for (size_t i = 0; i < good.size(); ++i) {
    EXPECT_EQ(memcmp(&(*found)[i].entry, &good[i].entry, sizeof(MapEntry)), 0) << i;
    EXPECT_EQ((*found)[i].prefix, good[i].prefix);
    EXPECT_EQ(memcmp((*found)[i].fences, good[i].fences, sizeof good[i].fences), 0) << i;
  }
}

TEST(MapReader, RefusesWhatDoesNotFitTogether) {
  using Regions = std::vector<MapRegion>;
  const std::pair<const char*, std::function<void(Regions&)>> cases[] = {
      {"depth", [](Regions& all) { all[2].entry.depth = kMaxDepth + 1; }},
      {"a large depth", [](Regions& all) { all[2].entry.depth = 200; }},
      {"pages beyond a slot's", [](Regions& all) { all[2].entry.page_count = 5; }},
      {"pages beyond all", [](Regions& all) { all[2].entry.page_count = ~uint32_t{0}; }},
      {"records beyond a slot's", [](Regions& all) { all[2].entry.count = 41; }},
      {"fewer records than pages", [](Regions& all) { all[2].entry.count = 30; }},
      {"made later than all", [](Regions& all) { all[0].entry.made = 101; }},
      {"records nowhere", [](Regions& all) { all[0].entry.slot = 0; }},
      {"a slot of nothing", [](Regions& all) { all[1].entry.slot = 5; }},
      {"fences in no order", [](Regions& all) { all[2].fences[0] = 10; }},
      {"a region that is not there", [](Regions& all) { all.pop_back(); }},
      {"one more", [](Regions& all) { all.push_back(all.back()); }},
      {"another order", [](Regions& all) { std::swap(all[0], all[1]); }},
  };
  for (const auto& [what, change] : cases) {
    auto regions = good_regions();
    change(regions);
    EXPECT_FALSE(read(map_of(regions)).has_value()) << what;
  }
}

TEST(MapReader, RefusesWhatEndsEarly) {
  const auto map = map_of(good_regions());
  for (size_t bytes = 0; bytes < map.size(); ++bytes)
    EXPECT_FALSE(read(std::span(map).first(bytes)).has_value()) << bytes;
}

}  // namespace
}  // namespace batch
