#include "base/fingerprint.h"

#define XXH_INLINE_ALL
#define XXH_VECTOR 0  // the reference is the portable form
#include <gtest/gtest.h>
#include <xxhash.h>

#include <cstring>
#include <random>
#include <set>
#include <utility>

namespace base {

// Defined in fingerprint_avx2.cc.
Fingerprint take_fingerprint_avx2(const void* os_page, const unsigned char* secret_low,
                                  const unsigned char* secret_high);

namespace {

struct alignas(64) OsPage {
  unsigned char bytes[kOsPageBytes];
};

class FingerprintTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::mt19937_64 random(7);
    for (auto& byte : secrets) byte = static_cast<unsigned char>(random());
    set_fingerprint_secrets(secrets, sizeof secrets);
  }
  void SetUp() override {
    std::mt19937_64 random(11);
    for (auto& byte : page.bytes) byte = static_cast<unsigned char>(random());
  }
  static Fingerprint portable(const OsPage& of) {
    return {XXH3_64bits_withSecret(of.bytes, kOsPageBytes, secrets, 192),
            XXH3_64bits_withSecret(of.bytes, kOsPageBytes, secrets + 192, 192)};
  }

  static unsigned char secrets[kFingerprintSecretBytes];
  OsPage page;
};
unsigned char FingerprintTest::secrets[kFingerprintSecretBytes];

TEST_F(FingerprintTest, IsOfContentNotOfPlace) {
  auto copy = std::make_unique<OsPage>(page);
  EXPECT_TRUE(take_fingerprint(&page).same_content_as(take_fingerprint(copy.get())));
}

TEST_F(FingerprintTest, EveryChangedBitShows) {
  Fingerprint before = take_fingerprint(&page);
  std::set<std::pair<uint64_t, uint64_t>> seen = {{before.low, before.high}};
  for (size_t byte = 0; byte < kOsPageBytes; ++byte) {
    unsigned char mask = static_cast<unsigned char>(1u << (byte % 8));
    page.bytes[byte] ^= mask;
    Fingerprint after = take_fingerprint(&page);
    page.bytes[byte] ^= mask;
    ASSERT_NE(after.low, before.low) << byte;
    ASSERT_NE(after.high, before.high) << byte;
    seen.insert({after.low, after.high});
  }
  EXPECT_EQ(seen.size(), kOsPageBytes + 1);
}

TEST_F(FingerprintTest, UnknownEqualsNothing) {
  Fingerprint unknown = Fingerprint::unknown();
  EXPECT_FALSE(unknown.same_content_as(unknown));
  EXPECT_FALSE(unknown.same_content_as(take_fingerprint(&page)));
  EXPECT_FALSE(take_fingerprint(&page).same_content_as(unknown));
  EXPECT_FALSE(take_fingerprint(&page).is_unknown());
}

TEST_F(FingerprintTest, ZeroPageIsKnownFromTheStart) {
  std::memset(&page, 0, sizeof page);
  EXPECT_TRUE(zero_fingerprint().same_content_as(take_fingerprint(&page)));
  page.bytes[kOsPageBytes - 1] = 1;
  EXPECT_FALSE(zero_fingerprint().same_content_as(take_fingerprint(&page)));
}

TEST_F(FingerprintTest, HalvesAreIndependent) {
  Fingerprint taken = take_fingerprint(&page);
  EXPECT_NE(taken.low, taken.high);
}

TEST_F(FingerprintTest, AllInstructionSetsAgree) {
  for (int round = 0; round < 16; ++round) {
    page.bytes[round * 250] ^= 0x5a;
    Fingerprint expected = portable(page);
    EXPECT_TRUE(expected.same_content_as(take_fingerprint(&page)));
    if (__builtin_cpu_supports("avx2"))
      EXPECT_TRUE(expected.same_content_as(take_fingerprint_avx2(&page, secrets, secrets + 192)));
  }
}

TEST_F(FingerprintTest, SecretsDecide) {
  unsigned char other[kFingerprintSecretBytes];
  std::memcpy(other, secrets, sizeof other);
  for (auto& byte : other) byte ^= 0xa5;
  Fingerprint before = take_fingerprint(&page), zero_before = zero_fingerprint();
  set_fingerprint_secrets(other, sizeof other);
  EXPECT_FALSE(before.same_content_as(take_fingerprint(&page)));
  EXPECT_FALSE(zero_before.same_content_as(zero_fingerprint()));
  set_fingerprint_secrets(secrets, sizeof secrets);
}

TEST(FingerprintDeathTest, SecretsHaveOneLength) {
  unsigned char few[16] = {};
  EXPECT_DEATH(set_fingerprint_secrets(few, sizeof few), "length_bytes");
}

}  // namespace
}  // namespace base
