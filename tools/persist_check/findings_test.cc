#include "findings.h"

#include "test_history.h"

namespace persist_check {
namespace {

constexpr uint64_t kAddress = 0x10000;
constexpr uint64_t kStore = 1, kFlush = 2, kFence = 3, kOther = 4;  // sites

class FindingsTest : public testing::Test {
 protected:
  void SetUp() override { log_.map(1, kAddress, std::vector<uint64_t>(64)); }
  void end() {
    log_.unmap(1);
    log_.exit();
  }
  // Kind, site, count.
  using Found = std::vector<std::tuple<FindingKind, uint64_t, uint64_t>>;
  Found found() {
    Found found;
    for (const Finding& finding : find_static(log_.history()))
      found.push_back({finding.kind, finding.site, finding.count});
    return found;
  }
  void persist(uint64_t address) {
    log_.flush(1, kFlush, address);
    log_.fence(1, kFence);
  }
  LogBuilder log_;
};

TEST_F(FindingsTest, NoneInACorrectProgram) {
  for (uint64_t i = 0; i < 8; ++i) {
    log_.store(1, kStore, kAddress + 64 * i, {i + 1});
    persist(kAddress + 64 * i);
  }
  log_.store(1, kStore, kAddress, {9});
  log_.flush(1, kFlush, kAddress, 1, true);
  log_.store(1, kStore, kAddress, {10}, persist::kPastCaches);
  log_.fence(1, kFence);
  end();
  EXPECT_EQ(found(), Found{});
}

TEST_F(FindingsTest, MissingFlush) {
  for (uint64_t i = 0; i < 3; ++i) log_.store(1, kStore, kAddress + 64 * i, {i + 1});
  log_.store(1, kOther, kAddress, {7}, persist::kFound);
  persist(kAddress + 64);
  log_.store(1, kStore, kAddress + 64, {8});   // after the flush
  log_.store(1, kStore, kAddress + 192, {0});  // the value that is there already
  end();
  EXPECT_EQ(found(),
            (Found{{FindingKind::kMissingFlush, kStore, 3}, {FindingKind::kMissingFlush, kOther, 1}}));
  EXPECT_TRUE(find_static(log_.history())[1].is_found);
}

TEST_F(FindingsTest, NothingIsMissingOfAProgramThatWasKilled) {
  log_.store(1, kStore, kAddress, {1});
  log_.store(1, kStore, kAddress + 64, {1});
  log_.flush(1, kFlush, kAddress);
  EXPECT_EQ(found(), Found{});
}

TEST_F(FindingsTest, MissingFence) {
  log_.store(1, kStore, kAddress, {1});
  log_.flush(2, kFlush, kAddress);
  log_.fence(1, kFence);  // another thread's, which has flushed nothing
  end();
  EXPECT_EQ(found(),
            (Found{{FindingKind::kMissingFence, kFlush, 1}, {FindingKind::kRedundantFence, kFence, 1}}));
}

TEST_F(FindingsTest, AStorePastTheCachesNeedsAFenceAlone) {
  log_.store(1, kStore, kAddress, {1}, persist::kPastCaches);
  log_.fence(1, kFence);
  end();
  EXPECT_EQ(found(), Found{});
}

TEST_F(FindingsTest, AnotherThreadsFlushAndFenceAreAsGood) {
  log_.store(1, kStore, kAddress, {1});
  log_.flush(2, kOther, kAddress);
  log_.flush(1, kFlush, kAddress);
  log_.fence(1, kFence);
  end();
  EXPECT_EQ(found(), Found{}) << "without the second flush it might not be durable";
}

TEST_F(FindingsTest, AFlushOfWhatAnotherThreadHasFencedIsWaste) {
  log_.store(1, kStore, kAddress, {1});
  log_.flush(2, kOther, kAddress);
  log_.fence(2, kFence);
  persist(kAddress);
  end();
  EXPECT_EQ(found(), (Found{{FindingKind::kRedundantFlush, kFlush, 1}}));
}

TEST_F(FindingsTest, MissingFenceOfAStorePastTheCaches) {
  log_.store(1, kStore, kAddress, {1}, persist::kPastCaches);
  end();
  EXPECT_EQ(found(), (Found{{FindingKind::kMissingFence, kStore, 1}}));
}

TEST_F(FindingsTest, Waste) {
  log_.store(1, kStore, kAddress, {1});
  persist(kAddress);
  persist(kAddress);
  log_.flush(1, kFlush, kAddress, 2);
  log_.flush(1, kOther, kAddress + 64);
  log_.fence(1, kFence);
  log_.fence(1, kOther);
  end();
  EXPECT_EQ(found(), (Found{{FindingKind::kRedundantFlush, kFlush, 2},
                            {FindingKind::kFlushOfNothing, kOther, 1},
                            {FindingKind::kRedundantFence, kOther, 1}}));
}

TEST_F(FindingsTest, AFlushOfALineThatNeedsItIsNoWaste) {
  for (const uint64_t line : {1, 0}) {
    log_.store(1, kStore, kAddress + 64 * line, {1});
    log_.flush(1, kFlush, kAddress, 2);
    log_.fence(1, kFence);
  }
  end();
  EXPECT_EQ(found(), Found{});
}

TEST_F(FindingsTest, WhatIsMappedAgainIsToldOfOnce) {
  log_.store(1, kStore, kAddress, {1});
  log_.store(1, kStore, kAddress + 64, {1});
  log_.flush(1, kFlush, kAddress + 64);
  log_.unmap(1);
  std::vector<uint64_t> content(64);
  content[0] = content[8] = 1;
  log_.map(2, kAddress, content);
  log_.unmap(2);
  log_.exit();
  EXPECT_EQ(found(),
            (Found{{FindingKind::kMissingFlush, kStore, 1}, {FindingKind::kMissingFence, kFlush, 1}}));
}

// Such as lines of a file that is mapped anew, with a larger size, before its old mapping ends.
TEST_F(FindingsTest, NothingIsMissingYetThatAnotherMappingHas) {
  constexpr uint64_t kLarger = 0x80000;
  log_.map(2, kLarger, std::vector<uint64_t>(128));
  for (uint64_t line = 0; line < 3; ++line) log_.store(1, kStore, kLarger + 64 * line, {1});
  log_.flush(1, kFlush, kLarger);
  log_.unmap(1);
  log_.fence(1, kFence);
  persist(kLarger + 64);
  log_.unmap(2);
  log_.exit();
  EXPECT_EQ(found(), (Found{{FindingKind::kMissingFlush, kStore, 1}})) << "of the third line";
}

}  // namespace
}  // namespace persist_check
