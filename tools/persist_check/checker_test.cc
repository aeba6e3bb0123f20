#include "checker.h"

#include <set>

#include "report.h"
#include "test_history.h"

namespace persist_check {
namespace {

constexpr uint64_t kAddress = 0x10000;

using Content = std::vector<std::vector<Units>>;

class CheckerTest : public testing::Test {
 protected:
  void SetUp() override { log_.map(1, kAddress, std::vector<uint64_t>(32)); }

  // Judges the first units of four lines, and the marker.
  using Good = std::function<bool(std::array<uint64_t, 4> lines, const std::string& marker)>;
  CheckResult run(const Good& is_good, const CheckOptions& options = {}, bool has_marker = false) {
    history_ = log_.history();
    return check(
        history_, options,
        [&](const Content& content, const std::string& marker) {
          const auto& lines = content[0];
          const std::array<uint64_t, 4> units = {lines[0][0], lines[1][0], lines[2][0], lines[3][0]};
          seen_.push_back(units);
          return Outcome{is_good(units, marker), "failed"};
        },
        [&](const Content& content, const std::string&, size_t bug) {
          kept_.push_back(content);
          return "again " + std::to_string(bug);
        },
        has_marker);
  }
  // Two lines are stored to, without a flush between them.
  void two_stores() {
    log_.store(1, 10, kAddress, {1});
    log_.store(1, 11, kAddress + 64, {2});
    log_.flush(1, 12, kAddress, 2);
    log_.fence(1, 13);
  }

  LogBuilder log_;
  History history_;
  std::vector<std::array<uint64_t, 4>> seen_;
  std::vector<Content> kept_;
};

TEST_F(CheckerTest, TriesEachImageOnce) {
  two_stores();
  const CheckResult result = run([](auto, auto&) { return true; });
  EXPECT_TRUE(result.bugs.empty());
  EXPECT_TRUE(result.is_all);
  EXPECT_EQ(result.images, 4u);
  EXPECT_EQ((std::set(seen_.begin(), seen_.end())),
            (std::set<std::array<uint64_t, 4>>{{0, 0, 0, 0}, {1, 0, 0, 0}, {0, 2, 0, 0}, {1, 2, 0, 0}}));
}

TEST_F(CheckerTest, SaysWhichLineWasAheadAndWhichBehind) {
  log_.store(1, 9, kAddress + 128, {5});  // has nothing to do with it
  two_stores();
  const CheckResult result = run([](auto lines, auto&) { return lines[1] == 0 || lines[0] == 1; });
  ASSERT_EQ(result.bugs.size(), 1u);
  const Bug& bug = result.bugs[0];
  ASSERT_EQ(bug.behind.size(), 1u);
  EXPECT_EQ(bug.behind[0].line, line_id(0, 0));
  EXPECT_EQ(bug.behind[0].missing_site, 10u);
  EXPECT_FALSE(bug.behind[0].held_site.has_value());
  EXPECT_FALSE(bug.behind[0].was_flushed);
  ASSERT_EQ(bug.ahead.size(), 1u);
  EXPECT_EQ(bug.ahead[0].line, line_id(0, 1));
  EXPECT_EQ(bug.ahead[0].held_site, 11u);
  EXPECT_EQ(bug.event_count, 4u);
  EXPECT_EQ(bug.command, "again 0");
  ASSERT_EQ(kept_.size(), 1u);
  EXPECT_EQ(kept_[0][0][0][0], 0u);
  EXPECT_EQ(kept_[0][0][1][0], 2u);
  Report report = {
      .history = &history_, .findings = {}, .has_recovery = true, .options = {}, .checked = result};
  EXPECT_TRUE(report.has_bugs());
  EXPECT_NE(as_text(report).find("BUG no recovery (failed) after the store"), std::string::npos)
      << as_text(report);
  EXPECT_NE(as_text(report).find("line f+0x0: lacks the store at code at 0xa, not flushed\n"),
            std::string::npos);
  EXPECT_NE(as_json(report).find("\"command\": \"again 0\""), std::string::npos);
}

// Such as stores that are found when their mapping ends.
TEST_F(CheckerTest, SaysThatStoresOfUnknownCodeAreThereOrNot) {
  for (const uint64_t line : {0, 1}) log_.store(1, 0, kAddress + 64 * line, {1}, persist::kFound);
  const CheckResult result = run([](auto lines, auto&) { return lines[1] == 0 || lines[0] == 1; });
  ASSERT_EQ(result.bugs.size(), 1u);
  const Report report = {
      .history = &history_, .findings = {}, .has_recovery = true, .options = {}, .checked = result};
  const std::string text = as_text(report);
  EXPECT_NE(text.find("line f+0x0: lacks the store at unknown code, not flushed\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("line f+0x40: holds the store at unknown code\n"), std::string::npos) << text;
  EXPECT_NE(as_json(report).find("\"lacks\": {"), std::string::npos) << as_json(report);
}

TEST_F(CheckerTest, SaysThatAStoreIsTorn) {
  log_.store(1, 10, kAddress + 56, {3, 4});  // the end of a line and the beginning of the next
  log_.store(1, 11, kAddress + 128, {6, 7});
  log_.store(1, 11, kAddress + 192, {1});
  history_ = log_.history();
  const CheckResult result = check(
      history_, {},
      [](const Content& content, const std::string&) {
        return Outcome{(content[0][2][0] == 0) == (content[0][2][1] == 0), "torn"};
      },
      [](const Content&, const std::string&, size_t) { return ""; }, false);
  ASSERT_EQ(result.bugs.size(), 1u);
  ASSERT_EQ(result.bugs[0].behind.size(), 1u);
  EXPECT_TRUE(result.bugs[0].ahead.empty());
  EXPECT_TRUE(result.bugs[0].behind[0].is_torn);
  EXPECT_EQ(result.bugs[0].behind[0].missing_site, 11u);
}

TEST_F(CheckerTest, WhatWasMarkedMustBeThere) {
  log_.store(1, 10, kAddress, {1});
  log_.flush(1, 12, kAddress);
  log_.marker("done");  // too early
  log_.fence(1, 13);
  const Good is_good = [](auto lines, const std::string& marker) { return marker.empty() || lines[0] == 1; };
  const CheckResult result = run(is_good, {}, true);
  ASSERT_EQ(result.bugs.size(), 1u);
  EXPECT_EQ(result.bugs[0].marker, "done");
  ASSERT_EQ(result.bugs[0].behind.size(), 1u);
  EXPECT_TRUE(result.bugs[0].behind[0].was_flushed);
  EXPECT_TRUE(run(is_good).bugs.empty());  // each image once, whatever the marker
}

TEST_F(CheckerTest, WhatIsWrongThoughSureIsOneBug) {
  for (uint64_t i = 1; i <= 5; ++i) {
    log_.store(1, 10 + i, kAddress, {i});
    log_.flush(1, 12, kAddress, 1, true);
  }
  const CheckResult result = run([](auto lines, auto&) { return lines[0] < 3; });
  ASSERT_EQ(result.bugs.size(), 2u);
  EXPECT_EQ(result.bugs[0].ahead.at(0).held_site, 13u);
  EXPECT_TRUE(result.bugs[1].ahead.empty());
  EXPECT_EQ(result.bugs[0].times + result.bugs[1].times, 3u);
}

TEST_F(CheckerTest, FewCrashPointsAreThoseAtFences) {
  for (uint64_t i = 1; i <= 40; ++i) log_.store(1, 10, kAddress, {i});
  log_.flush(1, 12, kAddress);
  log_.fence(1, 13);
  for (uint64_t i = 1; i <= 40; ++i) log_.store(1, 10, kAddress + 64, {i});
  const CheckResult all = run([](auto, auto&) { return true; });
  EXPECT_TRUE(all.is_all);
  EXPECT_EQ(all.images, 81u);
  const CheckResult some = run([](auto, auto&) { return true; }, {.crash_points_max = 3});
  EXPECT_TRUE(some.is_all);
  EXPECT_EQ(some.crash_points, 3u);
  EXPECT_EQ(some.images, 81u);
  const CheckResult few = run([](auto, auto&) { return true; }, {.crash_points_max = 2});
  EXPECT_FALSE(few.is_all);
}

TEST(CheckTest, NothingIsTriedWithoutAMapping) {
  LogBuilder log;
  log.fence(1, 13);
  const History history = log.history();
  const CheckResult result = check(
      history, {}, [](const Content&, const std::string&) { return Outcome{false, "no image"}; },
      [](const Content&, const std::string&, size_t) { return ""; }, false);
  EXPECT_TRUE(result.bugs.empty());
  EXPECT_EQ(result.images, 0u);
}

TEST_F(CheckerTest, ManyFailuresEndIt) {
  for (uint64_t i = 1; i <= 400; ++i) {
    log_.store(1, 10 + i, kAddress, {i});
    log_.flush(1, 12, kAddress, 1, true);
  }
  const CheckResult result = run([](auto lines, auto&) { return lines[0] == 0; });
  EXPECT_TRUE(result.is_stopped);
  EXPECT_FALSE(result.is_all);
  EXPECT_LT(result.images, 1000u);
}

}  // namespace
}  // namespace persist_check
