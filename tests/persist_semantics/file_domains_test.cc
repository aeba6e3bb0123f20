// What semantics_test.cc tests, for domains of files, which the kernel writes, and domains whose caches are saved when power fails, alone and beside others. What is durable
// when a fence returns is what the kernel was asked to write by then.
#include <gtest/gtest.h>

#include "programs.h"

namespace persist_semantics {
namespace {

constexpr int kFile = 70'001, kOtherFile = 70'002;

struct Case {
  const char* name;
  std::vector<Part> parts;
  bool shares_syncs = false;

  friend void PrintTo(const Case& one, std::ostream* to) { *to << one.name; }
};

Part file(uint32_t line_count, int descriptor) { return {DomainKind::kFile, line_count, descriptor}; }

// Two lines, each in a page of its own.
const std::vector<Case> kCases = {
    {"File", {file(2, kFile)}},
    {"FileWithoutDescriptor", {file(2, -1)}},
    {"Group", {file(2, kFile)}, true},
    {"TwoDomainsOfAFile", {file(1, kFile), file(1, kFile)}},
    {"TwoFiles", {file(1, kFile), file(1, kOtherFile)}},
    {"TwoFilesGroup", {file(1, kFile), file(1, kOtherFile)}, true},
    {"FlushOnFail", {{.kind = DomainKind::kFlushOnFail, .line_count = 2}}},
    {"FlushOnFailThenFile", {{.kind = DomainKind::kFlushOnFail}, file(1, kFile)}},
    {"FileThenFlushOnFail", {file(1, -1), {.kind = DomainKind::kFlushOnFail}}},
    {"DeviceThenFile", {{}, file(1, kFile)}},
    {"FileThenDevice", {file(1, -1), {}}},
    {"DeviceThenFlushOnFail", {{}, {.kind = DomainKind::kFlushOnFail}}},
};

class FileDomainsTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!trap_syncs()) GTEST_SKIP() << "the kernel does not trap system calls";
  }
  MachineOptions options() const {
    return {.parts = GetParam().parts, .shares_syncs = GetParam().shares_syncs};
  }
};
INSTANTIATE_TEST_SUITE_P(Domains, FileDomainsTest, testing::ValuesIn(kCases),
                         [](const auto& one) { return one.param.name; });

TEST_P(FileDomainsTest, AllShortProgramsOfOneThread) {
  Machine machine(options());
  const size_t length = GetParam().parts.size() == 1 ? 5 : 4;
  check_all(machine, length + is_long, {.lines = 2, .threads = 1, .are_alike = false});
}

TEST_P(FileDomainsTest, AllShortProgramsOfTwoThreads) {
  Machine machine(options());
  check_all(machine, 3 + (is_long || options().shares_syncs), {.lines = 2, .threads = 2, .are_alike = false});
}

// The kernel takes its time: a thread that comes while it writes must not be told that it has written.
TEST_P(FileDomainsTest, RandomProgramsOfTwoThreadsAtOnce) {
  for (uint64_t seed = 1; seed <= (is_long ? 50 : 5); ++seed) {
    MachineOptions slow = options();
    slow.is_kernel_slow = true;
    Machine machine(slow);
    run_at_once(machine, seed, 2, {.fences = 12, .two = 8});
    ASSERT_EQ(why_not(machine.device().take_log(), 2), "") << seed;
  }
}

// Some or all of what is noted is in no domain any more when it is to be written.
TEST_P(FileDomainsTest, WhatIsFlushedIsDurableWhenAnotherThreadRemovesDomains) {
  Machine machine(options());
  for (uint32_t how = 0; how < 4; ++how)
    for (const bool is_one_call : {true, false}) {
      std::vector<Step> steps = {{Step::kStore, 0, 0}, {Step::kStore, 0, 1}};
      if (is_one_call)
        steps.push_back({Step::kFlushTwo, 0});
      else
        steps.insert(steps.end(), {{Step::kFlush, 0, 0}, {Step::kFlush, 0, 1}});
      steps.insert(steps.end(), {{Step::kRemove, 1, how}, {Step::kFence, 0}});
      for (const Step& step : steps) machine.run(step);
      ASSERT_EQ(why_not(machine.device().take_log(), 2), "") << text_of(steps);
    }
}

// With more domains than a thread keeps ranges for, or more ranges than it keeps for one.
class ManyDomainsTest : public testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(FileDomainsTest, ManyDomainsTest, testing::ValuesIn(persist::kWays),
                         [](const auto& way) { return persist::name_of(way.param); });

MachineOptions random_options(std::mt19937_64& random, Way way, uint32_t lines) {
  MachineOptions options = {.way = way, .parts = {}, .shares_syncs = random() % 3 == 0};
  const uint32_t most = random() % 2 == 0 ? 2 : lines;
  for (uint32_t left = lines; left > 0;) {
    const auto count = static_cast<uint32_t>(1 + random() % std::min(left, most));
    const uint64_t draw = random() % 8;
    if (draw < 6)
      options.parts.push_back(file(count, draw < 2 ? -1 : draw < 5 ? kFile : kOtherFile));
    else
      options.parts.push_back(
          {.kind = draw == 6 ? DomainKind::kFlushOnFail : DomainKind::kDevice, .line_count = count});
    left -= count;
  }
  return options;
}

TEST_P(ManyDomainsTest, RandomProgramsOfTwoThreadsThatTakeTurns) {
  if (!trap_syncs()) GTEST_SKIP() << "the kernel does not trap system calls";
  for (uint64_t seed = 1; seed <= (is_long ? 200 : 20); ++seed) {
    std::mt19937_64 random(seed);
    const auto lines = static_cast<uint32_t>(2 + random() % 80);
    Machine machine(random_options(random, GetParam(), lines));
    std::vector<Step> steps;
    for (size_t i = 0; i < 300; ++i) {
      steps.push_back(random_step(random, lines, Machine::kThreads, {.two = 8}));
      machine.run(steps.back());
    }
    for (uint8_t t = 0; t < Machine::kThreads; ++t) machine.run({Step::kFence, t});
    ASSERT_EQ(why_not(machine.device().take_log(), lines), "") << seed << ": " << text_of(steps);
  }
}

}  // namespace
}  // namespace persist_semantics
