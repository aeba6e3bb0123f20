#include "sys/mappings.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

namespace sys {
namespace {

TEST(Mappings, AsManyAsTheKernelSays) {
  uint64_t most = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> most;
  EXPECT_EQ(most_mappings(), most != 0 ? most : 65'530);
}

TEST(Mappings, LinesOfTheKernelsAreRead) {
  Mapping found;
  EXPECT_TRUE(parse_mapping("7f0000000000-7f0000002000 rw-s 00003000 fd:00 1234   /dev/shm/a file", found));
  EXPECT_EQ(found.begin, 0x7f0000000000u);
  EXPECT_EQ(found.end, 0x7f0000002000u);
  EXPECT_EQ(found.offset_bytes, 0x3000u);
  EXPECT_EQ(found.path, "/dev/shm/a file");
  EXPECT_TRUE(found.is_shared);
  EXPECT_FALSE(found.is_executable);
  EXPECT_TRUE(parse_mapping("7f0000000000-7f0000002000 r-xp 00003000 fd:00 1234   /dev/shm/a", found));
  EXPECT_FALSE(found.is_shared);
  EXPECT_TRUE(found.is_executable);
  EXPECT_TRUE(parse_mapping("7ffc0000-7ffd0000 rw-s 00000000 00:00 0 ", found));
  EXPECT_EQ(found.path, "");
  EXPECT_FALSE(found.is_shared) << "of no file";
  for (const char* line : {"", "7f-", "7f-80", "7f-80 rw-s", "x-80 rw-s 0 0 0", "7f-80 rw 0 fd:00 1 /x",
                           "7f-80 rw-s zz fd:00 1 /x", "80-7f rw-s 0 fd:00 1 /x"})
    EXPECT_FALSE(parse_mapping(line, found)) << line;
}

TEST(Mappings, TheOneOfAnAddressIsFound) {
  std::string path = testing::TempDir() + "spillway-mappings-XXXXXX";
  const int file = mkstemp(path.data());
  ASSERT_EQ(ftruncate(file, 3 * 4096), 0);
  auto* const mapped = static_cast<char*>(mmap(nullptr, 2 * 4096, PROT_READ, MAP_SHARED, file, 4096));
  const FoundMapping found = find_mapping(reinterpret_cast<uintptr_t>(mapped) + 5000);
  EXPECT_EQ(found.begin, reinterpret_cast<uintptr_t>(mapped));
  EXPECT_EQ(found.end, found.begin + 2 * 4096);
  EXPECT_EQ(found.offset_bytes, 4096u);
  EXPECT_EQ(found.path, path);
  EXPECT_TRUE(found.is_shared);
  const FoundMapping none = find_mapping(64);
  EXPECT_EQ(none.begin, none.end);
  // All mappings are visited in order, that of this code among them.
  uintptr_t last = 0;
  bool has_code = false;
  visit_mappings([&](const Mapping& mapping) {
    EXPECT_GE(mapping.begin, last);
    last = mapping.end;
    const auto here = reinterpret_cast<uintptr_t>(&find_mapping);
    has_code |= mapping.is_executable && mapping.begin <= here && here < mapping.end;
    return true;
  });
  EXPECT_TRUE(has_code);
  // A range with a hole is not mapped.
  const uintptr_t begin = reinterpret_cast<uintptr_t>(mapped);
  EXPECT_TRUE(is_mapped(begin + 64, begin + 2 * 4096));
  munmap(mapped + 4096, 4096);
  EXPECT_TRUE(is_mapped(begin, begin + 4096));
  EXPECT_FALSE(is_mapped(begin + 64, begin + 4096 + 64));
  munmap(mapped, 4096);
  close(file);
  unlink(path.c_str());
}

TEST(Mappings, WhatLiesBehindAFileCannotBeRead) {
  std::string path = testing::TempDir() + "spillway-mappings-XXXXXX";
  const int file = mkstemp(path.data());
  void* const mapped = mmap(nullptr, 5 * 4096, PROT_READ, MAP_SHARED, file, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  const auto begin = reinterpret_cast<uintptr_t>(mapped);
  for (const uintptr_t bytes : {0, 1, 4096, 4097, 3 * 4096, 4 * 4096, 5 * 4096, 8 * 4096}) {
    ASSERT_EQ(ftruncate(file, static_cast<off_t>(bytes)), 0);
    const uintptr_t pages = std::min<uintptr_t>((bytes + 4095) / 4096, 5);
    EXPECT_EQ(readable_end(begin, begin + 5 * 4096), begin + pages * 4096) << bytes;
  }
  EXPECT_EQ(readable_end(begin, begin), begin);
  munmap(mapped, 5 * 4096);
  close(file);
  unlink(path.c_str());
}

}  // namespace
}  // namespace sys
