#include "base/checksum.h"

#define XXH_INLINE_ALL
#define XXH_VECTOR 0  // the reference is the portable form
#include <gtest/gtest.h>
#include <xxhash.h>

#include <random>
#include <vector>

namespace base {
namespace {

class ChecksumTest : public testing::TestWithParam<size_t> {
 protected:
  void SetUp() override {
    std::mt19937_64 random(3);
    bytes.resize(GetParam());
    for (auto& byte : bytes) byte = static_cast<unsigned char>(random());
    for (auto& byte : secret) byte = static_cast<unsigned char>(random());
  }
  std::vector<unsigned char> bytes;
  unsigned char secret[kChecksumSecretBytes];
};

TEST_P(ChecksumTest, IsTheReferences) {
  EXPECT_EQ(checksum(bytes.data(), bytes.size()), XXH3_64bits(bytes.data(), bytes.size()));
  EXPECT_EQ(checksum(bytes.data(), bytes.size(), secret),
            XXH3_64bits_withSecret(bytes.data(), bytes.size(), secret, sizeof secret));
}

INSTANTIATE_TEST_SUITE_P(Lengths, ChecksumTest, testing::Values(0, 1, 8, 16, 17, 128, 240, 241, 4088, 65528));

}  // namespace
}  // namespace base
