#include "kv/index/entry.h"

#include <gtest/gtest.h>

#include <random>

namespace kv {
namespace {

TEST(SizeCodeTest, SmallSizesAreExactAndOthersRoundedUpByAnEighth) {
  for (uint64_t grains = 0; grains < 16; ++grains) {
    EXPECT_EQ(size_code::grains(size_code::of(grains)), grains);
    EXPECT_TRUE(size_code::is_exact(size_code::of(grains)));
  }
  for (uint64_t grains = 16; grains < 5000; ++grains) {
    EXPECT_FALSE(size_code::is_exact(size_code::of(grains)));
    const uint64_t read = size_code::grains(size_code::of(grains));
    EXPECT_GE(read, grains);
    EXPECT_LE(8 * (read - grains), grains);
  }
  EXPECT_EQ(size_code::grains(size_code::of(size_code::kMaxGrains)), size_code::kMaxGrains);
}

TEST(SizeCodeTest, EachCodeIsThatOfItsGrains) {
  for (uint32_t code = 0; code < 256; ++code) {
    EXPECT_EQ(size_code::of(size_code::grains(code)), code);
    if (code != 0) EXPECT_LT(size_code::grains(code - 1), size_code::grains(code));
  }
}

class EntryTest : public testing::TestWithParam<unsigned> {
 protected:
  const EntryFormat format{GetParam()};
  std::mt19937_64 random{GetParam()};
};

TEST_P(EntryTest, HoldsWhatItIsMadeOf) {
  for (int i = 0; i < 1000; ++i) {
    const uint64_t rest = random(), address = random() % format.addresses();
    const auto size = static_cast<uint32_t>(random() % 256);
    const uint64_t entry = EntryFormat::with_offset(format.make(rest, address, size), i % kNeighbourhood);
    EXPECT_EQ(EntryFormat::offset(entry), i % kNeighbourhood);
    EXPECT_EQ(EntryFormat::size(entry), size);
    EXPECT_EQ(format.address(entry), address);
    EXPECT_TRUE(format.matches(entry, rest));
    EXPECT_NE(entry >> 32, 0u) << "what is zero there is free";
  }
}

TEST_P(EntryTest, TellsApartByEachBitThatItHas) {
  const uint64_t rest = random();
  uint64_t entry = format.make(rest, 1, 1);
  for (unsigned taken = 0; taken < format.tag_bits(); ++taken) {
    const unsigned left = format.tag_bits() - 1 - taken;
    for (unsigned bit = 0; bit < 64 - taken; ++bit)
      EXPECT_EQ(format.matches(entry, (rest >> taken) ^ uint64_t{1} << bit), bit >= left)
          << taken << " " << bit;
    EXPECT_EQ(format.has_bit(entry), left != 0);
    if (left == 0) break;
    EXPECT_EQ(format.bit(entry), (rest >> taken & 1) != 0);
    entry = format.without_bit(entry);
  }
  EXPECT_EQ(format.address(entry), 1u);
}

TEST_P(EntryTest, BitsThatAreGivenBackTellApartAgain) {
  for (uint64_t rest : {random(), uint64_t{0}, ~uint64_t{0}}) {
    uint64_t entry = format.make(rest, 7, 3);
    for (unsigned i = 0; i < 5; ++i) entry = format.without_bit(entry);
    for (unsigned i = 5; i-- > 0;) entry = format.with_bit(entry, (rest >> i & 1) != 0);
    EXPECT_EQ(entry, format.make(rest, 7, 3));
    // A whole tag loses its last bit to make room for the new first one.
    const uint64_t longer = format.with_bit(entry, true);
    EXPECT_TRUE(format.matches(longer, rest << 1 | 1));
    for (unsigned bit = 0; bit < 20; ++bit)
      EXPECT_EQ(format.matches(longer, (rest << 1 | 1) ^ uint64_t{1} << bit), bit >= format.tag_bits() - 1)
          << bit;
    EXPECT_EQ(format.address(longer), 7u);
    EXPECT_EQ(EntryFormat::size(longer), 3u);
  }
}

INSTANTIATE_TEST_SUITE_P(Widths, EntryTest, testing::Values(18u, 28u, 40u));

}  // namespace
}  // namespace kv
