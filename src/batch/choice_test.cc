// The models, and what a table chooses by models and trials.
#include "batch/choice.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "batch/test_tables.h"

namespace batch {
namespace {

constexpr Machine kMachine = {
    .latency_ns = 100, .line_ns = 12, .stream_ns = 6, .cache_bytes = 4 << 20, .ns_per_cycle = 0.5};
constexpr BaseCosts kBase = {.direct_ns = 12, .prefetch_ns = 14, .tagged_ns = 16, .stage_ns = 8};
constexpr Shape kShape = {.key_bytes = 8, .value_bytes = 8, .bucket_bytes = 512};

Load load_of(uint64_t buckets, uint64_t staging_bytes = 64 << 20) {
  return {.shape = kShape,
          .buckets = buckets,
          .tag_bytes = 32,
          .cache_bytes = 4 << 20,
          .staging_bytes = staging_bytes};
}

// The equations, for cases that can be worked out by hand.
TEST(ThesisModelTest, ItsEquations) {
  ThesisModel model{.m = 1000, .a = 100, .n = 500, .c = 2, .r = 10, .s = 25'000};
  EXPECT_DOUBLE_EQ(model.hits(), 0.25);
  EXPECT_DOUBLE_EQ(model.misses(), 0.75);
  // A cache-bucket stands for two buckets, and has two requests: with a probability of a half they go to the same bucket.
  EXPECT_DOUBLE_EQ(model.buckets_of_flush(), 1.5);
  EXPECT_DOUBLE_EQ(model.batched_misses(), 0.75);
  EXPECT_DOUBLE_EQ(model.relative_misses(), 1.0);
  model.fill_cache(50);
  EXPECT_DOUBLE_EQ(model.n, 50);
  model.s = 1e6;
  EXPECT_DOUBLE_EQ(model.hits(), 1);
  EXPECT_TRUE(std::isinf(model.relative_misses()));
}

// Simulates requests in cache-buckets, and compares with the expected value.
TEST(ThesisModelTest, BucketsOfAFlushAreThoseOfRandomRequests) {
  const ThesisModel model{.m = 8000, .n = 1000, .c = 16};
  std::mt19937_64 random(3);
  constexpr int kFlushes = 20'000;
  int sum = 0;
  for (int i = 0; i < kFlushes; ++i) {
    uint32_t seen = 0;
    for (int request = 0; request < 16; ++request) seen |= 1u << random() % 8;
    sum += std::popcount(seen);
  }
  EXPECT_NEAR(static_cast<double>(sum) / kFlushes, model.buckets_of_flush(), 0.05);
}

TEST(ModelTest, ATableInTheCacheCostsTheBaseAndALargeOneItsMisses) {
  for (const Engine engine : {Engine::kDirect, Engine::kPrefetch, Engine::kTagged}) {
    EXPECT_LT(modelled_ns(engine, load_of(1000), kMachine, kBase), 20) << name_of(engine);
    EXPECT_GT(modelled_ns(engine, load_of(8'000'000), kMachine, kBase), 40) << name_of(engine);
  }
  const auto ns = [](Engine engine) { return modelled_ns(engine, load_of(800'000), kMachine, kBase); };
  EXPECT_LT(ns(Engine::kPartitioned), ns(Engine::kTagged));
  EXPECT_LT(ns(Engine::kTagged), ns(Engine::kPrefetch));
  EXPECT_LT(ns(Engine::kPrefetch), ns(Engine::kDirect));
}

// Makes the choice with the time that `cost` gives for each engine; returns the engines that were tried, in their order.
template <class Cost>
std::vector<Engine> make(Choice& choice, const Load& load, Cost cost) {
  std::vector<Engine> tried;
  choice.want(Choice::Why::kOpened);
  EXPECT_TRUE(choice.is_wanted());
  choice.begin(load, kMachine, kBase);
  EXPECT_FALSE(choice.is_wanted());
  while (choice.is_trying()) {
    EXPECT_GT(choice.keys_of_phase(), 0u);
    tried.push_back(choice.engine());
    choice.step(1e9, 0);  // the phase that warms up does not count
    EXPECT_EQ(choice.engine(), tried.back());
    choice.step(cost(choice.engine()), 0.25);
  }
  return tried;
}

TEST(ChoiceTest, TheOneThatWasMeasuredTheFastestStays) {
  for (const Engine best : {Engine::kPrefetch, Engine::kTagged, Engine::kPartitioned}) {
    Choice choice;
    const auto tried =
        make(choice, load_of(800'000), [&](Engine engine) { return engine == best ? 30 : 33; });
    EXPECT_EQ(choice.engine(), best);
    EXPECT_EQ(choice.decision_count(), 1u);
    EXPECT_GT(tried.size(), 3u);
    EXPECT_FALSE(choice.has_other_answers(0.3));
    EXPECT_TRUE(choice.has_other_answers(0.4));
    EXPECT_TRUE(choice.has_other_answers(0.1));
  }
}

TEST(ChoiceTest, TheModelSaysWhatIsTriedAndInWhichOrder) {
  Choice choice;
  const auto tried =
      make(choice, load_of(8'000'000), [](Engine engine) { return engine == Engine::kTagged ? 10 : 100; });
  for (size_t i = 1; i < tried.size(); ++i)
    EXPECT_LE(modelled_ns(tried[i - 1], choice.load(), kMachine, kBase),
              modelled_ns(tried[i], choice.load(), kMachine, kBase));
  EXPECT_EQ(std::ranges::count(tried, Engine::kDirect), 0);
  // There is one round; after it, all other engines are out.
  EXPECT_EQ(std::ranges::count(tried, Engine::kTagged), 1);
}

TEST(ChoiceTest, NothingIsStagedWithoutABudgetNorForNothing) {
  Choice choice;
  const auto tried = make(choice, load_of(800'000, 0), [](Engine) { return 30; });
  EXPECT_FALSE(tried.empty());
  for (const Engine engine : tried) EXPECT_FALSE(is_staging(engine)) << name_of(engine);
  make(choice, load_of(800'000), [](Engine engine) { return is_staging(engine) ? 29.9 : 30; });
  EXPECT_FALSE(is_staging(choice.engine()));
  EXPECT_EQ(choice.decision_count(), 2u);
}

TEST(ChoiceTest, WhatCannotBeUsedIsLeftOut) {
  Choice choice;
  choice.want(Choice::Why::kGrown);
  choice.begin(load_of(800'000), kMachine, kBase);
  const Engine first = choice.engine();
  EXPECT_TRUE(choice.leave_out());
  EXPECT_NE(choice.engine(), first);
  while (choice.leave_out()) {
  }
  EXPECT_TRUE(choice.is_trying());
  EXPECT_LE(choice.engine(), Engine::kPartitioned);
  choice.stay(Engine::kDirect);
  EXPECT_EQ(choice.engine(), Engine::kDirect);
  EXPECT_FALSE(choice.is_trying());
}

TEST(ChoiceTest, APhaseEnds) {
  Load load = load_of(1000, uint64_t{1} << 62);
  load.cache_bytes = uint64_t{1} << 62;
  load.sessions = 1000;
  Choice choice;
  choice.want(Choice::Why::kOpened);
  choice.begin(load, kMachine, kBase);
  do EXPECT_LE(choice.keys_of_phase(), uint64_t{1} << 26);
  while (choice.leave_out());
}

// Each number is the fastest of some runs of a few ms or less. The bounds are so wide that only a wrong unit, or steps that were not counted, exceed them.
TEST(MachineTest, ItsNumbersAreThoseOfSomeMachine) {
  const Machine& machine = this_machine();
  EXPECT_GT(machine.latency_ns, 5);
  EXPECT_LT(machine.latency_ns, 5000);
  EXPECT_LE(machine.line_ns, machine.latency_ns);
  EXPECT_GT(machine.stream_ns, 0.1);
  EXPECT_GE(machine.cache_bytes, 64 << 10);
  EXPECT_LE(machine.cache_bytes, 128 << 20);
  EXPECT_GT(machine.ns_per_cycle, 0.05);
  EXPECT_LT(machine.ns_per_cycle, 5);
  EXPECT_EQ(&this_machine(), &machine);
  for (const Shape& shape : {kShape, Shape{.key_bytes = 16, .value_bytes = 48, .bucket_bytes = 64},
                             Shape{.key_bytes = 4, .value_bytes = 4, .bucket_bytes = 512}}) {
    const BaseCosts base = measure_base_costs(shape);
    for (const double ns : {base.direct_ns, base.prefetch_ns, base.tagged_ns, base.stage_ns}) {
      EXPECT_GT(ns, 0.5);
      EXPECT_LT(ns, 20'000);
    }
  }
}

// A table that chooses works like one that does not, and reports its choice; it chooses again when it has grown, and when jobs begin to want answers.
TEST(ChoiceTest, ATableChoosesAndChoosesAgain) {
  constexpr uint64_t kKeys = 20'000, kGroup = 500;
  Options options = numbers(kKeys);
  options.engine = std::nullopt;
  options.key_space = 0;
  options.staging_bytes = 1 << 20;
  options.cache_bytes = 256 << 10;
  Table table;
  ASSERT_TRUE(table.open(options));
  std::vector<uint64_t> model;
  Session session(table);
  std::mt19937_64 random(5);
  uint64_t found = 0;
  const auto change = [&](Action action) {
    Keys keys(table.options().shape);
    std::vector<uint64_t> numbers;
    for (uint64_t i = 0; i < kGroup; ++i) {
      numbers.push_back(random() % model.size());
      const uint64_t value = random();
      keys.add(bytes_of(numbers.back(), 8), bytes_of(value, 8));
      if (action == Action::kUpsert) model[numbers.back()] = value;
    }
    Job job = keys.job(action);
    if (action == Action::kUpsert) job.outcomes = nullptr;
    ASSERT_EQ(session.run(job), Session::Ran::kAll);
    for (uint64_t i = 0; action == Action::kRead && i < kGroup; ++i) {
      if (keys.outcome(i) != Outcome::kDone) continue;
      ASSERT_EQ(keys.read(i), bytes_of(model[numbers[i]], 8));
      ++found;
    }
  };
  const auto decisions = [&] {
    uint32_t count = 0;
    table.visit_choice([&](const Choice& choice) { count = choice.decision_count(); });
    return count;
  };
  const auto why = [&] {
    Choice::Why why{};
    table.visit_choice([&](const Choice& choice) { why = choice.why(); });
    return why;
  };
  const auto decide = [&](Action action, uint32_t wanted) {
    for (int i = 0; decisions() < wanted && i < 100'000; ++i) change(action);
    EXPECT_EQ(decisions(), wanted);
  };
  model.assign(kKeys, 0);
  decide(Action::kUpsert, 1);
  EXPECT_EQ(why(), Choice::Why::kOpened);
  EXPECT_GT(table.statistics().keys, 0u);
  EXPECT_EQ(table.statistics().answers, 0u);
  // Now there are reads; the table notices after a while.
  decide(Action::kRead, 2);
  EXPECT_EQ(why(), Choice::Why::kAnswers);
  model.resize(4 * kKeys);
  decide(Action::kUpsert, 3);
  EXPECT_EQ(why(), Choice::Why::kGrown);
  EXPECT_GT(table.growth_count(), 0u);
  found = 0;
  for (int i = 0; i < 20; ++i) change(Action::kRead);
  EXPECT_GT(found, kGroup);
  table.verify();
}

// A session that only reads, while another one only writes: the share of answers does not change, and the choice stays.
TEST(ChoiceTest, ReadersBesideWritersAreNoChange) {
  constexpr uint64_t kGroup = 4096;
  Options options = numbers(10'000);
  options.engine = std::nullopt;
  Table table;
  ASSERT_TRUE(table.open(options));
  Session reader(table), writer(table);
  Keys keys(table.options().shape);
  for (uint64_t i = 0; i < kGroup; ++i) keys.add(bytes_of(i * 2, 8));
  uint32_t decisions = 0;
  bool is_trying = false;
  const auto run = [&](int rounds) {
    for (int i = 0; i < rounds; ++i) {
      Job change = keys.job(Action::kUpsert);
      change.outcomes = nullptr;
      ASSERT_EQ(writer.run(change), Session::Ran::kAll);
      Job read = keys.job(Action::kRead);
      ASSERT_EQ(reader.run(read), Session::Ran::kAll);
    }
    table.visit_choice([&](const Choice& choice) {
      decisions = choice.decision_count();
      is_trying = choice.is_trying();
    });
  };
  for (int i = 0; i < 1000 && decisions == 0; ++i) run(10);
  ASSERT_EQ(decisions, 1u);
  run(3 * (1 << 20) / kGroup);
  EXPECT_EQ(decisions, 1u);
  EXPECT_FALSE(is_trying);
}

}  // namespace
}  // namespace batch
