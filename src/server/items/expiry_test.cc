#include "server/items/expiry.h"

#include <gtest/gtest.h>

#include <limits>

namespace server {
namespace {

constexpr uint64_t kNow = 1'700'000'000'123;
constexpr int64_t kMonth = 30 * 24 * 60 * 60;
constexpr int64_t kMax = std::numeric_limits<int64_t>::max(), kMin = std::numeric_limits<int64_t>::min();

TEST(ExpiryTest, ExptimeIsRelativeUpToThirtyDays) {
  EXPECT_EQ(expiry_of_exptime(0, kNow), kNever);
  EXPECT_EQ(expiry_of_exptime(1, kNow), kNow + 1000);
  EXPECT_EQ(expiry_of_exptime(kMonth, kNow), kNow + 1000 * uint64_t{kMonth});
  EXPECT_EQ(expiry_of_exptime(kMonth + 1, kNow), 1000 * uint64_t{kMonth + 1}) << "in 1970";
  EXPECT_EQ(expiry_of_exptime(1'700'000'005, kNow), 1'700'000'005'000u);
}

TEST(ExpiryTest, ExptimeThatIsPastEndsAtOnceAndNoneIsBeyondTheStore) {
  EXPECT_EQ(expiry_of_exptime(-1, kNow), kEnded);
  EXPECT_EQ(expiry_of_exptime(kMin, kNow), kEnded);
  EXPECT_EQ(expiry_of_exptime(kMax, kNow), kLastMs);
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

TEST(ExpiryTest, MillisecondsThatAreLeft) {
  EXPECT_EQ(ms_left(kNow + 7, kNow), 7);
  EXPECT_EQ(ms_left(kNow - 7, kNow), 0);
  EXPECT_EQ(ms_left(kNever, kNow), -1);
}

TEST(ExpiryTest, RedisTimesThatArePastAreNotNeverAndThoseBeyondTheStoreAreItsLast) {
  EXPECT_EQ(expiry_of_unix_ms(1'800'000'000'001), 1'800'000'000'001u);
  for (const int64_t past : {int64_t{1}, int64_t{0}, int64_t{-1}, kMin})
    EXPECT_EQ(expiry_of_unix_ms(past), kEnded) << past;
  EXPECT_EQ(expiry_of_unix_ms(static_cast<int64_t>(kLastMs)), kLastMs);
  EXPECT_EQ(expiry_of_unix_ms(static_cast<int64_t>(kLastMs) + 1), kLastMs);
  EXPECT_EQ(expiry_of_unix_ms(kMax), kLastMs);
}

}  // namespace
}  // namespace server
