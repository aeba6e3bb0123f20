#include "spill/heap_mappings.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "base/ids.h"

namespace {

using spill::HeapMappings;
constexpr uint64_t kPage = base::kOsPageBytes;

class HeapMappingsTest : public testing::Test {
 protected:
  // Of so many OS pages, none of which is in memory.
  char* map(uint64_t pages) {
    void* const memory =
        mmap(nullptr, pages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    EXPECT_EQ(madvise(memory, pages * kPage, MADV_NOHUGEPAGE), 0);
    mappings_.add(reinterpret_cast<uint64_t>(memory), pages * kPage);
    return static_cast<char*>(memory);
  }
  void unmap(char* memory, uint64_t pages) {
    mappings_.remove(reinterpret_cast<uint64_t>(memory), pages * kPage);
    ASSERT_EQ(munmap(memory, pages * kPage), 0);
  }
  static void touch(char* memory, uint64_t pages) {
    for (uint64_t i = 0; i < pages; ++i) static_cast<volatile char*>(memory)[i * kPage] = 1;
  }

  HeapMappings mappings_;
};

TEST_F(HeapMappingsTest, CountsWhatIsTouchedAndNothingElse) {
  char* const one = map(5000);  // more than one question to the kernel
  EXPECT_EQ(mappings_.count_bytes(), 0u);
  touch(one, 3);
  touch(one + 4096 * kPage, 2);
  EXPECT_EQ(mappings_.count_bytes(), 5 * kPage);
  char* const other = map(10);
  touch(other + 9 * kPage, 1);
  EXPECT_EQ(mappings_.count_bytes(), 6 * kPage);
  unmap(one, 5000);
  EXPECT_EQ(mappings_.count_bytes(), kPage);
  unmap(other, 10);
  EXPECT_EQ(mappings_.count_bytes(), 0u);
}

TEST_F(HeapMappingsTest, FrontsAndBacksAreUnmapped) {
  char* const memory = map(10);
  touch(memory, 10);
  unmap(memory, 3);
  EXPECT_EQ(mappings_.count_bytes(), 7 * kPage);
  unmap(memory + 8 * kPage, 2);
  EXPECT_EQ(mappings_.count_bytes(), 5 * kPage);
  unmap(memory + 3 * kPage, 5);
  EXPECT_EQ(mappings_.count_bytes(), 0u);
}

TEST_F(HeapMappingsTest, AMappingThatWasFullIsLookedAtAgainWhereAnotherTakesItsPlace) {
  char* const full = map(4);
  touch(full, 4);
  EXPECT_EQ(mappings_.count_bytes(), 4 * kPage);
  EXPECT_EQ(mappings_.count_bytes(), 4 * kPage);
  unmap(full, 4);
  char* const empty = map(4);
  EXPECT_EQ(mappings_.count_bytes(), 0u);
  unmap(empty, 4);
}

TEST_F(HeapMappingsTest, WhatIsBeyondTheMostCountsInFull) {
  char* memory[HeapMappings::kMax + 1];
  for (char*& each : memory) each = map(1);
  EXPECT_EQ(mappings_.count_bytes(), kPage);
  for (char* each : memory) unmap(each, 1);
  EXPECT_EQ(mappings_.count_bytes(), 0u);
}

}  // namespace
