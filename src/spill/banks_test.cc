#include "spill/banks.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

#include "base/check.h"

namespace spill {
namespace {

Bank& taken() {
  auto bank = take_bank();
  CHECK(bank.has_value());
  return **bank;
}

std::multiset<uint64_t> values_of(Bank& bank) {
  std::multiset<uint64_t> values;
  bank.for_each([&](Slot& slot) { values.insert(slot.load()); });
  return values;
}

TEST(Banks, KeepTheSlotsThatAreLiveAndBringThemBack) {
  Bank& bank = taken();
  EXPECT_EQ(values_of(bank), std::multiset<uint64_t>());
  Slot slots[kAllSlotCount] = {};
  for (uint64_t i = 0; i < kAllSlotCount; ++i) slots[i] = 100 + i;
  const uint64_t last = kAllSlotCount - 1;
  bank.keep(slots, uint64_t{1} << 2 | uint64_t{1} << last);
  EXPECT_EQ(values_of(bank), (std::multiset<uint64_t>{102, 100 + last}));
  for (Slot& slot : slots) slot = 7;
  bank.bring_back(slots);
  for (uint64_t i = 0; i < kAllSlotCount; ++i) EXPECT_EQ(slots[i], i == 2 || i == last ? 100 + i : 7) << i;
  // Still there, for a scan that looked at the slots before they were brought back.
  EXPECT_EQ(values_of(bank), (std::multiset<uint64_t>{102, 100 + last}));
  give_back_bank(bank);
}

TEST(Banks, AreEmptyWhenTheyAreTakenAndEachIsOneTasks) {
  Slot slots[kAllSlotCount] = {};
  std::vector<Bank*> banks;
  for (int turn = 0; turn < 2; ++turn) {
    std::set<Bank*> different;
    for (int i = 0; i < 500; ++i) {
      Bank& bank = taken();
      EXPECT_EQ(values_of(bank), std::multiset<uint64_t>());
      bank.keep(slots, ~uint64_t{0} >> (64 - kAllSlotCount));
      different.insert(&bank);
    }
    EXPECT_EQ(different.size(), 500u);
    std::set<Bank*> all;
    for (Bank* bank = first_bank(); bank != nullptr; bank = bank->next()) all.insert(bank);
    for (Bank* bank : different) {
      EXPECT_EQ(all.count(bank), 1u);
      give_back_bank(*bank);
    }
    EXPECT_LT(all.size(), 1000u);  // those of the first turn again
  }
}

TEST(Banks, OfATaskThatIsNotInAChildAreEmptyThere) {
  Slot slots[kAllSlotCount] = {};
  Bank& bank = taken();
  bank.keep(slots, 3);
  forget_banks();
  EXPECT_EQ(values_of(bank), std::multiset<uint64_t>());
  std::set<Bank*> again;
  for (int i = 0; i < 500; ++i) again.insert(&taken());
  EXPECT_EQ(again.count(&bank), 1u);
  for (Bank* each : again) give_back_bank(*each);
}

// While a thread's two tasks take turns, a scan of the slots, and then of the banks, always sees both held addresses.
TEST(Banks, WhatIsHeldIsNeverOverlooked) {
  constexpr uint64_t kHeld[2] = {0x1000, 0x2000};
  Slot slots[kAllSlotCount] = {};
  Bank* const banks[2] = {&taken(), &taken()};
  slots[5] = kHeld[1];
  banks[1]->keep(slots, uint64_t{1} << 5);
  slots[5] = kHeld[0];
  std::atomic<bool> begun{false}, stop{false};
  uint64_t turns = 0;
  std::thread worker([&] {
    for (int running = 0; !stop; running = 1 - running, ++turns) {
      banks[running]->keep(slots, uint64_t{1} << 5);
      slots[5].store(0x3000, std::memory_order_release);  // a third task uses the slot for a moment
      banks[1 - running]->bring_back(slots);
      begun = true;
    }
  });
  while (!begun) std::this_thread::yield();
  for (int look = 0; look < 200'000 && !testing::Test::HasFailure(); ++look) {
    bool seen[2] = {};
    const auto visit = [&](const Slot& slot) {
      const uint64_t value = slot.load(std::memory_order_acquire);
      for (int i = 0; i < 2; ++i) seen[i] |= value == kHeld[i];
    };
    for (const Slot& slot : slots) visit(slot);
    for (Bank* bank : banks) bank->for_each(visit);
    EXPECT_TRUE(seen[0] && seen[1]) << "look " << look;
  }
  stop = true;
  worker.join();
  EXPECT_GT(turns, 1000u);
  for (Bank* bank : banks) give_back_bank(*bank);
}

}  // namespace
}  // namespace spill
