#include "persist/fifo.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace persist {
namespace {

TEST(Fifo, HandsOutWhatWasPushedInItsOrder) {
  const auto fifo = std::make_unique<Fifo>();
  uintptr_t lines[Fifo::kMaxClaimLines];
  EXPECT_EQ(fifo->claim(lines), 0u);
  EXPECT_TRUE(fifo->is_done());
  for (uintptr_t i = 1; i <= 100; ++i) ASSERT_TRUE(fifo->push(i * 64));
  EXPECT_EQ(fifo->waiting(), 100u);
  EXPECT_EQ(fifo->claim(lines), Fifo::kMaxClaimLines);
  EXPECT_EQ(lines[0], 64u);
  EXPECT_EQ(lines[63], 64u * 64);
  EXPECT_FALSE(fifo->is_done());
  EXPECT_EQ(fifo->claim(lines, 30), 30u);
  EXPECT_EQ(lines[0], 65u * 64);
  EXPECT_EQ(fifo->claim(lines), 6u);
  fifo->finish(6);
  fifo->finish(64);
  EXPECT_FALSE(fifo->is_done());
  fifo->finish(30);
  EXPECT_TRUE(fifo->is_done());
}

TEST(Fifo, TakesNoMoreThanItHolds) {
  const auto fifo = std::make_unique<Fifo>();
  for (uint32_t i = 0; i < Fifo::kLines; ++i) ASSERT_TRUE(fifo->push(64));
  EXPECT_FALSE(fifo->push(64));
  uintptr_t lines[Fifo::kMaxClaimLines];
  EXPECT_EQ(fifo->claim(lines, 1), 1u);
  EXPECT_TRUE(fifo->push(128));
  EXPECT_FALSE(fifo->push(64));
}

// A handler neither waits for lines that its own thread has taken, nor leaves them out.
TEST(Fifo, SaysWhatItsThreadHolds) {
  const auto fifo = std::make_unique<Fifo>();
  uintptr_t lines[Fifo::kMaxClaimLines];
  EXPECT_EQ(fifo->hold(), 0u);
  for (uintptr_t i = 1; i <= 100; ++i) ASSERT_TRUE(fifo->push(i * 64));
  EXPECT_EQ(fifo->claim(lines, 10), 10u);
  EXPECT_EQ(fifo->hold(), Fifo::kMaxClaimLines);
  EXPECT_EQ(fifo->held_count(), Fifo::kMaxClaimLines);
  EXPECT_EQ(fifo->held()[0], 11u * 64);
  EXPECT_EQ(fifo->held()[63], 74u * 64);
  EXPECT_EQ(fifo->claim(lines), 26u);
  fifo->finish(26);
  EXPECT_FALSE(fifo->is_done());
  fifo->finish(10);
  EXPECT_TRUE(fifo->is_done());
  fifo->finish_held();
  EXPECT_EQ(fifo->held_count(), 0u);
  EXPECT_TRUE(fifo->is_done());
}

// A fork in a handler that has interrupted the thread between any two of its steps.
TEST(Fifo, ForgetsWhatItsThreadDoesNotHold) {
  const auto fifo = std::make_unique<Fifo>();
  uintptr_t lines[Fifo::kMaxClaimLines];
  for (int round = 0; round < 3; ++round) {
    for (uintptr_t i = 0; i < 100; ++i) ASSERT_TRUE(fifo->push(64));
    EXPECT_EQ(fifo->claim(lines, 20), 20u);
    if (round > 0) EXPECT_EQ(fifo->hold(), Fifo::kMaxClaimLines);
    if (round > 1) fifo->finish_held();
    EXPECT_FALSE(fifo->is_done());
    fifo->forget();
    EXPECT_TRUE(fifo->is_done());
    EXPECT_EQ(fifo->held_count(), round == 1 ? Fifo::kMaxClaimLines : 0);
    if (round == 1) fifo->finish_held();
    EXPECT_TRUE(fifo->is_done());
    ASSERT_TRUE(fifo->push(128));
    EXPECT_FALSE(fifo->is_done());
    EXPECT_EQ(fifo->claim(lines), 1u);
    EXPECT_EQ(lines[0], 128u);
    fifo->finish(1);
    EXPECT_TRUE(fifo->is_done());
  }
}

TEST(Fifo, IsWorthwhileWhenManyWaitOrTheThreadDoes) {
  const auto fifo = std::make_unique<Fifo>();
  for (uint32_t i = 0; i < Fifo::kWorthLines - 1; ++i) ASSERT_TRUE(fifo->push(64));
  EXPECT_FALSE(fifo->is_worthwhile());
  fifo->ask();
  EXPECT_TRUE(fifo->is_worthwhile());
  while (fifo->hold() > 0) fifo->finish_held();
  fifo->wait();
  for (uint32_t i = 0; i < Fifo::kWorthLines - 1; ++i) ASSERT_TRUE(fifo->push(64));
  EXPECT_FALSE(fifo->is_worthwhile());
  ASSERT_TRUE(fifo->push(64));
  EXPECT_TRUE(fifo->is_worthwhile());
}

// Each line is claimed once, by whomever; a fence returns when all of them are done, and not before.
TEST(Fifo, SeveralClaimAndNothingIsLostOrClaimedTwice) {
  const auto fifo = std::make_unique<Fifo>();
  constexpr uint64_t kRounds = 3'000, kClaimers = 3;
  std::vector<std::atomic<uint32_t>> claims(kRounds * 20 + 1);
  std::atomic<bool> is_over{false};
  std::vector<std::thread> claimers;
  for (uint64_t i = 0; i < kClaimers; ++i)
    claimers.emplace_back([&] {
      uintptr_t lines[Fifo::kMaxClaimLines];
      while (!is_over.load()) {
        const uint32_t count = fifo->claim(lines, 7);
        for (uint32_t k = 0; k < count; ++k) claims[lines[k]].fetch_add(1, std::memory_order_relaxed);
        if (count > 0)
          fifo->finish(count);
        else
          std::this_thread::yield();
      }
    });
  uint64_t pushed = 0;
  for (uint64_t round = 0; round < kRounds; ++round) {
    for (uint64_t i = 0; i < round % 20; ++i)
      if (fifo->push(pushed + 1)) ++pushed;
    // The thread takes some itself, or leaves them to others.
    if (round % 3 != 0) {
      const uint32_t count = fifo->hold();
      for (uint32_t k = 0; k < count; ++k) claims[fifo->held()[k]].fetch_add(1, std::memory_order_relaxed);
      fifo->finish_held();
    }
    fifo->wait();
    for (uint64_t i = 0; i < round % 20 && i < pushed; ++i) ASSERT_EQ(claims[pushed - i].load(), 1u);
  }
  is_over = true;
  for (std::thread& claimer : claimers) claimer.join();
  for (uint64_t i = 1; i <= pushed; ++i) ASSERT_EQ(claims[i].load(), 1u) << i;
}

}  // namespace
}  // namespace persist
