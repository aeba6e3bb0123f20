// The declarations only: this test keeps the C library's names, to compare with.
#define SPILLWAY_KEEP_LIBC_MEMORY
#include "base/plain_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

namespace {

int sign(int value) { return (value > 0) - (value < 0); }

TEST(PlainMemory, MovesLikeTheCLibraryWhateverTheOverlap) {
  for (size_t from = 0; from < 40; from += 3) {
    for (size_t to = 0; to < 40; ++to) {
      for (size_t n : {0, 1, 7, 8, 9, 64, 65}) {
        std::vector<unsigned char> ours(128), theirs(128);
        std::iota(ours.begin(), ours.end(), static_cast<unsigned char>(0));
        theirs = ours;
        EXPECT_EQ(spillway_plain_memmove(&ours[to], &ours[from], n), &ours[to]);
        std::memmove(&theirs[to], &theirs[from], n);
        ASSERT_EQ(ours, theirs) << from << ' ' << to << ' ' << n;
      }
    }
  }
}

TEST(PlainMemory, CopiesSetsComparesMeasures) {
  char a[32] = "0123456789", b[32] = {};
  EXPECT_EQ(spillway_plain_memcpy(b + 1, a, 5), b + 1);
  EXPECT_STREQ(b + 1, "01234");
  EXPECT_EQ(spillway_plain_memset(b, 0x141, 3), b);  // the byte is the low eight bits
  EXPECT_STREQ(b, "AAA234");
  EXPECT_EQ(spillway_plain_strlen(b), 6u);
  EXPECT_EQ(spillway_plain_strlen(""), 0u);
  EXPECT_EQ(spillway_plain_memchr(b, 0x133, 6), b + 4);  // '3'
  EXPECT_EQ(spillway_plain_memchr(b, '3', 4), nullptr);
  EXPECT_EQ(spillway_plain_memchr("\xff", -1, 1) != nullptr, true);
  const char* texts[] = {"abc", "abd", "ab\xff", "abc"};
  for (const char* x : texts)
    for (const char* y : texts)
      EXPECT_EQ(sign(spillway_plain_memcmp(x, y, 3)), sign(std::memcmp(x, y, 3))) << x << y;
  EXPECT_EQ(spillway_plain_memcmp("a", "b", 0), 0);
}

}  // namespace
