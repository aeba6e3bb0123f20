#include "server/memcache/expiry.h"

#include <gtest/gtest.h>

namespace server::memcache {
namespace {

constexpr uint64_t kNowMs = 1'700'000'000'123;
constexpr int64_t kMonth = 2'592'000;

TEST(Expiry, ZeroIsNever) { EXPECT_EQ(expiry_ms(0, kNowMs), 0u); }

TEST(Expiry, NegativeHasEnded) {
  for (int64_t exptime : {int64_t{-1}, int64_t{-1000}, INT64_MIN}) {
    EXPECT_GT(expiry_ms(exptime, kNowMs), 0u);
    EXPECT_LT(expiry_ms(exptime, kNowMs), kNowMs);
  }
}

TEST(Expiry, UpToThirtyDaysFromNow) {
  EXPECT_EQ(expiry_ms(1, kNowMs), kNowMs + 1000);
  EXPECT_EQ(expiry_ms(kMonth, kNowMs), kNowMs + kMonth * 1000);
}

TEST(Expiry, MoreIsATime) {
  EXPECT_EQ(expiry_ms(kMonth + 1, kNowMs), 2'592'001'000u);  // in February 1970: it has ended
  EXPECT_EQ(expiry_ms(1'800'000'000, kNowMs), 1'800'000'000'000u);
}

TEST(Expiry, WhatIsTooLateIsKept48Bits) {
  for (int64_t exptime : {int64_t{281'474'976'711}, int64_t{1} << 40, INT64_MAX}) {
    EXPECT_LE(expiry_ms(exptime, kNowMs), kExpiryMsMax);
    EXPECT_GT(expiry_ms(exptime, kNowMs), kExpiryMsMax - 1000);
  }
  EXPECT_EQ(expiry_ms(1, kExpiryMsMax), kExpiryMsMax);
}

TEST(Expiry, FlushesWithoutADelayAreNow) {
  for (int64_t delay : {int64_t{0}, int64_t{-1}, INT64_MIN}) EXPECT_EQ(flush_ms(delay, kNowMs), kNowMs);
  EXPECT_EQ(flush_ms(10, kNowMs), kNowMs + 10'000);
  EXPECT_EQ(flush_ms(1'800'000'000, kNowMs), 1'800'000'000'000u);
}

TEST(Expiry, SecondsLeft) {
  EXPECT_EQ(seconds_left(0, kNowMs), -1);
  EXPECT_EQ(seconds_left(kExpiredMs, kNowMs), 0);
  EXPECT_EQ(seconds_left(kNowMs, kNowMs), 0);
  EXPECT_EQ(seconds_left(kNowMs + 1, kNowMs), 1);
  EXPECT_EQ(seconds_left(kNowMs + 1000, kNowMs), 1);
  EXPECT_EQ(seconds_left(kNowMs + 1001, kNowMs), 2);
  for (int64_t exptime : {1, 30, 86400}) {
    EXPECT_EQ(seconds_left(expiry_ms(exptime, kNowMs), kNowMs), exptime);
    EXPECT_EQ(seconds_left(expiry_ms(exptime, kNowMs), kNowMs + 999), exptime);
    EXPECT_EQ(seconds_left(expiry_ms(exptime, kNowMs), kNowMs + 1000), exptime - 1);
  }
}

}  // namespace
}  // namespace server::memcache
