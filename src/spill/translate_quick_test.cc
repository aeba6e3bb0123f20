// The quick step of a translation against the owner of the table, which locks entries.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include "spill/abi.h"
#include "sys/memory.h"

extern "C" {
int64_t spillway_translate_quick(uint64_t address);
extern uint64_t* spillway_rearm_counter;
extern __thread uint64_t spillway_marks[4][2];
}

namespace spill {
namespace {

class TranslateQuickTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_TRUE(
        sys::reserve_at(kTableBase, uint64_t{8} << (47 - kTableShift), sys::Access::kReadWrite, "table")
            .has_value());
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

TEST_F(TranslateQuickTest, TheFirstUseOfAMarkedPageIsNoticed) {
  for (auto& mark : spillway_marks) {
    mark[0] = (kAddress >> kTableShift) - 1;
    mark[1] = 2;
    entry.store(-4097);
    EXPECT_EQ(spillway_translate_quick(kAddress), 0);
    EXPECT_EQ(entry.load(), 4097) << "the page is in use nevertheless";
    EXPECT_EQ(spillway_translate_quick(kAddress), 4097);
    for (const uint64_t first : {uint64_t{1}, -uint64_t{2}}) {
      mark[0] = (kAddress >> kTableShift) + first;
      entry.store(-4097);
      EXPECT_EQ(spillway_translate_quick(kAddress), 4097) << first;
    }
    mark[0] = mark[1] = 0;
  }
}

TEST_F(TranslateQuickTest, MemoryThatIsNotSpilledIsItself) {
  for (const uint64_t address : {uint64_t{4096}, kRangeBegin - 1, kRangeEnd}) {
    EXPECT_EQ(spillway_translate_quick(address), kEntryIdentity);
    EXPECT_EQ(entry_of(address).load(), kEntryIdentity);
  }
  EXPECT_EQ(spillway_translate_quick(kRangeBegin), 0);
  EXPECT_EQ(spillway_translate_quick(kRangeEnd - 1), 0);
}

TEST_F(TranslateQuickTest, OnlyTheBlockingStepKnowsGlobals) {
  constexpr uint64_t kGlobal = kRangeEnd + 7 * base::kOsPageBytes;
  spillway_has_globals = true;
  EXPECT_EQ(spillway_translate_quick(kGlobal), 0);
  EXPECT_EQ(entry_of(kGlobal).load(), kEntryUnknown);
  for (const int64_t cooling_or_not : {-4097, 4097}) {
    entry_of(kGlobal).store(cooling_or_not);
    EXPECT_EQ(spillway_translate_quick(kGlobal), 4097);
  }
  entry_of(kGlobal).store(kEntryLocked);
  EXPECT_EQ(spillway_translate_quick(kGlobal), 0);
  spillway_has_globals = false;
}

// The owner locks the entry after somebody has seen it cooling, and before they take it back. The table's page is
// read-only until then, so that taking it back faults: that is when the owner comes.
Entry* locked_by_handler = nullptr;

void* page_of_entry() {
  return reinterpret_cast<void*>(
      base::round_down(reinterpret_cast<uint64_t>(locked_by_handler), base::kOsPageBytes));
}

void lock_on_fault(int) {
  mprotect(page_of_entry(), base::kOsPageBytes, PROT_READ | PROT_WRITE);
  locked_by_handler->exchange(kEntryLocked, std::memory_order_acq_rel);
}

TEST_F(TranslateQuickTest, ALockedEntryStaysLocked) {
  struct sigaction action = {}, old;
  action.sa_handler = lock_on_fault;
  ASSERT_EQ(sigaction(SIGSEGV, &action, &old), 0);
  entry.store(-4097);
  locked_by_handler = &entry;
  ASSERT_EQ(mprotect(page_of_entry(), base::kOsPageBytes, PROT_READ), 0);
  EXPECT_EQ(spillway_translate_quick(kAddress), 0);
  EXPECT_EQ(entry.load(), kEntryLocked);
  sigaction(SIGSEGV, &old, nullptr);
}

}  // namespace
}  // namespace spill
