#include "server/items/expiry.h"

#include <gtest/gtest.h>

#include <limits>

namespace server {
namespace {

constexpr uint64_t kNow = 1'700'000'000'123;
constexpr int64_t kMonth = 30 * 24 * 60 * 60;
constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();

TEST(ExpiryTest, ExptimeIsRelativeUpToThirtyDays) {
  EXPECT_EQ(expiry_of_exptime(0, kNow), kNever);
  EXPECT_EQ(expiry_of_exptime(1, kNow), kNow + 1000);
  EXPECT_EQ(expiry_of_exptime(kMonth, kNow), kNow + 1000 * uint64_t{kMonth});
  EXPECT_EQ(expiry_of_exptime(kMonth + 1, kNow), 1000 * uint64_t{kMonth + 1}) << "in 1970";
  EXPECT_EQ(expiry_of_exptime(1'700'000'005, kNow), 1'700'000'005'000u);
}

TEST(ExpiryTest, ExptimeThatIsPastEndsAtOnceAndNoneIsBeyondTheStore) {
  EXPECT_EQ(expiry_of_exptime(-1, kNow), kEnded);
  EXPECT_EQ(expiry_of_exptime(kLeast, kNow), kEnded);
  EXPECT_EQ(expiry_of_exptime(kMost, kNow), kLastMs);
  EXPECT_EQ(expiry_of_exptime(static_cast<int64_t>(kLastMs) / 1000, kNow), kLastMs / 1000 * 1000);
  EXPECT_EQ(expiry_of_exptime(static_cast<int64_t>(kLastMs) / 1000 + 1, kNow), kLastMs);
  EXPECT_EQ(expiry_of_exptime(kMonth, kLastMs), kLastMs);
}

TEST(ExpiryTest, SecondsThatAreLeftAreRoundedUp) {
  EXPECT_EQ(seconds_left(kNever, kNow), -1);
  EXPECT_EQ(seconds_left(kNow + 2000, kNow), 2);
  EXPECT_EQ(seconds_left(kNow + 1001, kNow), 2);
  EXPECT_EQ(seconds_left(kNow + 1, kNow), 1);
  EXPECT_EQ(seconds_left(kNow, kNow), 0);
  EXPECT_EQ(seconds_left(kEnded, kNow), 0);
}

TEST(ExpiryTest, RedisTimesAreRelativeOrAbsolute) {
  EXPECT_EQ(expiry_after(5, TimeUnit::kSeconds, kNow), kNow + 5000);
  EXPECT_EQ(expiry_after(5, TimeUnit::kMs, kNow), kNow + 5);
  EXPECT_EQ(expiry_after(0, TimeUnit::kMs, kNow), kNow);
  EXPECT_EQ(expiry_after(-5, TimeUnit::kSeconds, kNow), kNow - 5000);
  EXPECT_EQ(expiry_at(1'800'000'000, TimeUnit::kSeconds), 1'800'000'000'000u);
  EXPECT_EQ(expiry_at(1'800'000'000'001, TimeUnit::kMs), 1'800'000'000'001u);
  EXPECT_EQ(ms_left(kNow + 7, kNow), 7);
  EXPECT_EQ(ms_left(kNow - 7, kNow), 0);
  EXPECT_EQ(ms_left(kNever, kNow), -1);
}

TEST(ExpiryTest, RedisTimesThatArePastAreNotNever) {
  EXPECT_EQ(expiry_at(0, TimeUnit::kSeconds), kEnded);
  EXPECT_EQ(expiry_at(-1, TimeUnit::kMs), kEnded);
  EXPECT_EQ(expiry_after(kLeast, TimeUnit::kMs, kNow), kEnded);
  EXPECT_EQ(expiry_after(-static_cast<int64_t>(kNow), TimeUnit::kMs, kNow), kEnded);
}

TEST(ExpiryTest, RedisTimesBeyond64BitsAreRefusedAndOthersBeyondTheStoreAreItsLast) {
  EXPECT_EQ(expiry_after(kMost, TimeUnit::kMs, kNow), std::nullopt);
  EXPECT_EQ(expiry_after(kMost, TimeUnit::kSeconds, kNow), std::nullopt);
  EXPECT_EQ(expiry_after(kLeast, TimeUnit::kSeconds, kNow), std::nullopt);
  EXPECT_EQ(expiry_at(kMost / 1000 + 1, TimeUnit::kSeconds), std::nullopt);
  EXPECT_EQ(expiry_at(kMost / 1000, TimeUnit::kSeconds), kLastMs);
  EXPECT_EQ(expiry_at(kMost, TimeUnit::kMs), kLastMs);
  EXPECT_EQ(expiry_after(kMost - static_cast<int64_t>(kNow), TimeUnit::kMs, kNow), kLastMs);
}

}  // namespace
}  // namespace server
