#include "spill/address_space.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "base/ids.h"
#include "spill/abi.h"

namespace spill {
namespace {

constexpr uint64_t kPage = base::kOsPageBytes;
constexpr uint64_t kChunk = uint64_t{2} << 20;

// The address space is the process's: one test goes on where another ended.
class AddressSpaceTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { ASSERT_TRUE(open_address_space().has_value()); }

  uint64_t allocate(uint64_t bytes, uint64_t alignment = kPage) {
    const uint64_t address = allocate_addresses(bytes, alignment);
    EXPECT_NE(address, 0u);
    EXPECT_EQ(address % alignment, 0u);
    EXPECT_TRUE(in_reserved_range(address) && in_reserved_range(address + bytes - 1));
    expect_unused(address, bytes);
    owned[address] = bytes;
    return address;
  }
  void release(uint64_t address) {
    free_addresses(address, owned.at(address));
    owned.erase(address);
  }
  void expect_unused(uint64_t address, uint64_t bytes) const {
    auto after = owned.lower_bound(address);
    if (after != owned.end()) EXPECT_LE(address + bytes, after->first);
    if (after != owned.begin()) {
      --after;
      EXPECT_LE(after->first + after->second, address);
    }
  }
  // What is_allocated() says of the first and last page of each range, and of those beside it.
  void expect_marks() const {
    for (const auto& [address, bytes] : owned) {
      EXPECT_TRUE(is_allocated(address));
      EXPECT_TRUE(is_allocated(address + bytes - 1));
      const auto next = owned.upper_bound(address);
      const bool touches = next != owned.end() && next->first == address + bytes;
      EXPECT_EQ(is_allocated(address + bytes), touches);
      // From wherever in a page.
      if (!touches) EXPECT_EQ(same_allocation_end(address + 1, address + bytes + 1), address + bytes);
    }
  }
  void TearDown() override {
    while (!owned.empty()) {
      const uint64_t address = owned.begin()->first;
      release(address);
      EXPECT_FALSE(is_allocated(address));
    }
  }

  std::map<uint64_t, uint64_t> owned;
};

TEST_F(AddressSpaceTest, RandomRangesNeverOverlapAndAreMarkedExactly) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 4000; ++round) {
    if (owned.size() < 40 || random() % 2 == 0) {
      // A page, some, or about as many as a chunk or two have.
      const uint64_t pages = random() % 3 == 0   ? 1
                             : random() % 2 == 0 ? 1 + random() % 30
                                                 : 500 + random() % 600;
      allocate(pages * kPage, random() % 4 == 0 ? kPage << random() % 11 : kPage);
    } else {
      auto at = owned.begin();
      std::advance(at, static_cast<long>(random() % owned.size()));
      const auto [address, bytes] = *at;
      if (bytes > 2 * kPage && random() % 2 == 0) {
        // A hole in the middle.
        const uint64_t hole = address + kPage, hole_bytes = bytes - 2 * kPage;
        free_addresses(hole, hole_bytes);
        owned[address] = kPage;
        owned[address + bytes - kPage] = kPage;
        EXPECT_FALSE(is_allocated(hole));
        EXPECT_FALSE(is_allocated(hole + hole_bytes - 1));
      } else {
        release(address);
      }
    }
    if (round % 50 == 0) expect_marks();
  }
  expect_marks();
}

TEST_F(AddressSpaceTest, WhatIsFreedIsUsedAgainAndGrowsTogether) {
  const uint64_t first = allocate(10 * kChunk);
  const uint64_t end = first + 10 * kChunk;
  release(first);
  uint64_t parts[10];
  for (uint64_t& part : parts) part = allocate(kChunk);
  for (int i : {3, 1, 7, 5, 9, 0, 2, 8, 4, 6}) release(parts[i]);
  const uint64_t again = allocate(10 * kChunk);
  EXPECT_LE(again, first);
  EXPECT_LE(again + 10 * kChunk, end);
}

TEST_F(AddressSpaceTest, GrowsInPlaceOnlyIntoWhatIsFree) {
  const uint64_t address = allocate(8 * kPage);
  const uint64_t next = allocate(8 * kPage);
  ASSERT_EQ(next, address + 8 * kPage);
  EXPECT_FALSE(allocate_addresses_at(next, kPage));
  allocate(kPage);
  release(next);
  EXPECT_FALSE(allocate_addresses_at(next, 9 * kPage));
  EXPECT_TRUE(allocate_addresses_at(next, 3 * kPage));
  owned[next] = 3 * kPage;
  expect_marks();
  EXPECT_FALSE(allocate_addresses_at(next + 2 * kPage, 2 * kPage));
}

TEST_F(AddressSpaceTest, MoreThanThereIsIsRefused) {
  EXPECT_EQ(allocate_addresses(kRangeEnd - kRangeBegin + kPage, kPage), 0u);
  const uint64_t address = allocate(kPage);
  EXPECT_TRUE(is_allocated(address));
}

TEST_F(AddressSpaceTest, TheTableEndsWhereAddressesHave47Bits) {
  constexpr uint64_t kEnd = uint64_t{1} << 47;
  const auto is_beyond = [](uint64_t begin, uint64_t bytes) {
    return is_beyond_table(reinterpret_cast<void*>(begin), bytes);
  };
  EXPECT_FALSE(is_beyond(0, kPage));
  EXPECT_FALSE(is_beyond(0, kEnd));
  EXPECT_FALSE(is_beyond(kEnd - kPage, kPage));
  EXPECT_TRUE(is_beyond(kEnd - kPage, kPage + 1));
  EXPECT_TRUE(is_beyond(kEnd, 1));
  EXPECT_TRUE(is_beyond(uint64_t{1} << 48, kPage));
  EXPECT_TRUE(is_beyond(~uint64_t{0} - kPage, kPage));
  EXPECT_TRUE(is_beyond(kPage, ~uint64_t{0}));
}

TEST_F(AddressSpaceTest, GlobalsAreFoundWhereverTheyLie) {
  constexpr uint64_t kBegin = 0x7f0000000000 + 5 * kPage;
  constexpr uint64_t kBytes = 2 * kChunk + 3 * kPage;
  EXPECT_FALSE(touches_globals(0, uint64_t{1} << kAddressBits));
  mark_globals(kBegin, kBytes, true);
  EXPECT_FALSE(is_global(kBegin - 1));
  EXPECT_TRUE(is_global(kBegin));
  EXPECT_TRUE(is_global(kBegin + kBytes - 1));
  EXPECT_FALSE(is_global(kBegin + kBytes));
  EXPECT_FALSE(is_global(kBegin | uint64_t{1} << kAddressBits));
  // From before, into, across, the last page alone; none of what lies beside it, though of the same chunk.
  EXPECT_TRUE(touches_globals(0, uint64_t{1} << kAddressBits));
  EXPECT_TRUE(touches_globals(kBegin - 3 * kChunk, 3 * kChunk + 1));
  EXPECT_TRUE(touches_globals(kBegin + kBytes - 1, 1));
  EXPECT_TRUE(touches_globals(kBegin + kBytes - 1, 100 * kChunk));
  EXPECT_FALSE(touches_globals(kBegin - 3 * kChunk, 3 * kChunk));
  EXPECT_FALSE(touches_globals(kBegin + kBytes, 100 * kChunk));
  EXPECT_FALSE(touches_globals(uint64_t{1} << kAddressBits, kChunk));
  EXPECT_EQ(bytes_before_globals(kBegin - 3 * kChunk - 7, 4 * kChunk), 3 * kChunk + 7);
  EXPECT_EQ(bytes_before_globals(kBegin - 7, 7), 7u);
  EXPECT_EQ(bytes_before_globals(kBegin + 7, 100), 0u);
  mark_globals(kBegin, kBytes, false);
  EXPECT_FALSE(touches_globals(0, uint64_t{1} << kAddressBits));
}

}  // namespace
}  // namespace spill
