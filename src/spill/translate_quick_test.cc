// The quick step of a translation against the owner of the table, which locks entries.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "spill/abi.h"
#include "sys/memory.h"

extern "C" {
int64_t spillway_translate_quick(uint64_t address);
extern uint64_t* spillway_rearm_counter;
}

namespace spill {
namespace {

class TranslateQuickTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_TRUE(sys::reserve_at(kTableBase, uint64_t{8} << (47 - kTableShift), sys::Access::kReadWrite, "table").has_value());
    static uint64_t rearms;
    spillway_rearm_counter = &rearms;
  }
  static constexpr uint64_t kAddress = kRangeBegin + 5 * base::kOsPageBytes + 123;
  Entry& entry = entry_of(kAddress);
};

TEST_F(TranslateQuickTest, AnswersWhatNeedsNoWaiting) {
  entry.store(4097);
  EXPECT_EQ(spillway_translate_quick(kAddress), 4097);
  entry.store(kEntryUnknown);
  EXPECT_EQ(spillway_translate_quick(kAddress), 0);
  entry.store(kEntryLocked);
  EXPECT_EQ(spillway_translate_quick(kAddress), 0);
  EXPECT_EQ(entry.load(), kEntryLocked);
  const uint64_t before = *spillway_rearm_counter;
  entry.store(-4097);
  EXPECT_EQ(spillway_translate_quick(kAddress), 4097);
  EXPECT_EQ(entry.load(), 4097);
  EXPECT_EQ(*spillway_rearm_counter, before + 1);
}

TEST_F(TranslateQuickTest, MemoryThatIsNotSpilledIsItself) {
  for (const uint64_t address : {uint64_t{4096}, kRangeBegin - 1, kRangeEnd}) {
    EXPECT_EQ(spillway_translate_quick(address), kEntryIdentity);
    EXPECT_EQ(entry_of(address).load(), kEntryIdentity);
  }
  EXPECT_EQ(spillway_translate_quick(kRangeBegin), 0);
  EXPECT_EQ(spillway_translate_quick(kRangeEnd - 1), 0);
}

// An entry that its owner locks while somebody takes it back stays locked, or was taken back before.
TEST_F(TranslateQuickTest, ALockedEntryStaysLocked) {
  std::atomic<bool> stop{false};
  entry.store(kEntryLocked);
  std::thread toucher([&] {
    while (!stop.load(std::memory_order_relaxed)) spillway_translate_quick(kAddress);
  });
  uint64_t reopened = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(400);
  while (std::chrono::steady_clock::now() < end) {
    for (int i = 0; i < 1000; ++i) {
      entry.store(-4097, std::memory_order_release);
      // Locks at every distance from the moment at which the other thread sees the entry.
      for (int wait = i % 64; wait > 0; --wait) __builtin_ia32_pause();
      entry.exchange(kEntryLocked, std::memory_order_acq_rel);
      for (int look = 0; look < 30; ++look) reopened += entry.load(std::memory_order_relaxed) != kEntryLocked;
    }
  }
  stop = true;
  toucher.join();
  EXPECT_EQ(reopened, 0u);
}

}  // namespace
}  // namespace spill
