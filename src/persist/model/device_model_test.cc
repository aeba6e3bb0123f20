// The model's arithmetic, and the shape of its results: what is published about such devices, not how any of them is built.
#include "persist/model/device_model.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "persist/model/test_load.h"

namespace persist {
namespace {

constexpr double kLong = 2e6;

struct Outcome {
  double rate;
  DeviceStatistics statistics;
};
Outcome outcome_of(const TestLoad& load, const DeviceParameters& parameters = {}) {
  const auto model = std::make_unique<DeviceModel>(parameters);
  const double rate = run_virtually(*model, load, kLong);
  return {rate, model->statistics()};
}

// A device that takes 100 ns for each line, whatever line it is, and queues few.
DeviceParameters plain_device() {
  DeviceParameters parameters;
  parameters.issue_dirty_ns = 10;
  parameters.issue_clean_ns = 3;
  parameters.fence_ns = 5;
  parameters.queue_lines = 4;
  parameters.drain_ns = 100;
  parameters.media_write_ns = 0;
  return parameters;
}

TEST(DeviceModelTest, AQueueTakesLinesAtOnceUntilItIsFull) {
  DeviceModel model(plain_device());
  const uint32_t writer = model.open_writer();
  double now_ns = 1000;
  for (uint64_t line = 0; line < 4; ++line) {
    now_ns = model.flush(writer, line * 100, true, now_ns);
    EXPECT_EQ(now_ns, 1010 + 10 * line);
    EXPECT_EQ(model.queued_lines(now_ns), line + 1);
    EXPECT_EQ(model.fence(writer, now_ns), now_ns + 5);
  }
  EXPECT_EQ(model.statistics().full_waits, 0u);
  // The first one came at 1010 and leaves at 1110; each of the others leaves 100 later.
  now_ns = model.flush(writer, 900, true, now_ns);
  EXPECT_EQ(now_ns, 1050);
  EXPECT_EQ(model.fence(writer, now_ns), 1115);
  now_ns = model.flush(writer, 1000, true, now_ns);
  EXPECT_EQ(model.fence(writer, now_ns), 1215);
  EXPECT_EQ(model.statistics().full_waits, 2u);
  EXPECT_EQ(model.queued_lines(1215), 4u);
  EXPECT_EQ(model.queued_lines(1550), 1u);
  EXPECT_EQ(model.queued_lines(1610), 0u);
  // Another writer's fence has nothing to wait for, though the queue is full.
  const uint32_t other = model.open_writer();
  EXPECT_NE(other, writer);
  EXPECT_EQ(model.fence(other, 1060), 1065);
  EXPECT_EQ(model.statistics().busy_ns, 600);
}

TEST(DeviceModelTest, TheQueueNeverHoldsMoreThanItCan) {
  std::mt19937_64 random(3);
  DeviceParameters parameters = plain_device();
  parameters.queue_lines = 7;
  DeviceModel model(parameters);
  const uint32_t writer = model.open_writer();
  double now_ns = 0, taken_ns = 0;
  for (int i = 0; i < 20'000; ++i) {
    now_ns = model.flush(writer, random(), true, now_ns + static_cast<double>(random() % 150));
    const double until_ns = model.fence(writer, now_ns) - parameters.fence_ns;
    EXPECT_GE(until_ns, now_ns);
    EXPECT_GE(until_ns, taken_ns);
    taken_ns = until_ns;
    ASSERT_LE(model.queued_lines(taken_ns), 7u);
    if (random() % 4 == 0) now_ns = taken_ns;
  }
  EXPECT_GT(model.statistics().full_waits, 1000u);
}

TEST(DeviceModelTest, CleanLinesCostTheWriterLessAndTheDeviceNothing) {
  const DeviceParameters parameters;
  EXPECT_NEAR(parameters.issue_dirty_ns / parameters.issue_clean_ns, 3.3, 0.05);
  DeviceModel model(parameters);
  const uint32_t writer = model.open_writer();
  EXPECT_EQ(model.flush(writer, 1, false, 100), 100 + parameters.issue_clean_ns);
  EXPECT_EQ(model.fence(writer, 200), 200 + parameters.fence_ns);
  EXPECT_EQ(model.queued_lines(110), 0u);
  EXPECT_EQ(model.active_writers(110), 0u);
  EXPECT_EQ(model.statistics().clean_lines, 1u);
  EXPECT_EQ(model.statistics().lines, 0u);
  EXPECT_EQ(model.statistics().busy_ns, 0);
}

TEST(DeviceModelTest, LinesOfABlockAreOneWrite) {
  DeviceParameters parameters = plain_device();
  parameters.drain_ns = 0;
  parameters.media_write_ns = 1000;
  parameters.partial_factor = 2;
  parameters.block_count = 2;
  parameters.queue_lines = 1;
  DeviceModel model(parameters);
  const uint32_t writer = model.open_writer();
  double now_ns = 0;
  const auto writes_of = [&](std::initializer_list<uint64_t> lines) {
    const DeviceStatistics before = model.statistics();
    for (const uint64_t line : lines) now_ns = model.flush(writer, line, true, now_ns);
    const DeviceStatistics& after = model.statistics();
    return std::pair(after.media_writes - before.media_writes, after.partial_writes - before.partial_writes);
  };
  using Writes = std::pair<uint64_t, uint64_t>;
  EXPECT_EQ(writes_of({4, 5, 6}), Writes(0, 0));
  EXPECT_EQ(writes_of({5, 4, 6, 6}), Writes(0, 0));  // again
  EXPECT_EQ(model.statistics().busy_ns, 0);
  EXPECT_EQ(writes_of({7}), Writes(1, 0));  // in whichever order
  EXPECT_EQ(model.statistics().busy_ns, 1000);
  EXPECT_EQ(writes_of({4}), Writes(0, 0));  // a block anew
  EXPECT_EQ(writes_of({8}), Writes(0, 0));
  EXPECT_EQ(writes_of({12}), Writes(1, 1));  // drives out 4
  EXPECT_EQ(model.statistics().busy_ns, 3000);
  EXPECT_EQ(writes_of({9, 16}), Writes(1, 1));  // drives out 12, since 8's block has been used
  EXPECT_EQ(writes_of({10, 11}), Writes(1, 0));
}

TEST(DeviceModelTest, TheRateRisesPeaksAndFallsWithWriters) {
  const DeviceParameters parameters;
  double rates[25] = {};
  uint32_t peak = 1;
  for (uint32_t writers = 1; writers <= 24; ++writers) {
    const Outcome outcome = outcome_of({.writers = writers});
    rates[writers] = outcome.rate;
    EXPECT_NEAR(outcome.statistics.combining(), 4, 0.05);
    EXPECT_NEAR(outcome.statistics.lines_per_second(), outcome.rate, 0.01 * outcome.rate);
    if (rates[writers] > rates[peak]) peak = writers;
  }
  // One writer is limited only by itself.
  EXPECT_NEAR(rates[1], 1e9 * 4 / (4 * parameters.issue_dirty_ns + parameters.fence_ns), 0.001 * rates[1]);
  EXPECT_NEAR(rates[3], 3 * rates[1], 0.01 * rates[3]);
  EXPECT_GE(peak, 4u);
  EXPECT_LE(peak, 8u);
  EXPECT_GT(rates[peak], 5 * rates[1]);
  for (uint32_t writers = 2; writers <= 24; ++writers) {
    if (writers <= peak) EXPECT_GT(rates[writers], rates[writers - 1]) << writers;
    if (writers > peak) EXPECT_LT(rates[writers], rates[writers - 1]) << writers;
  }
  EXPECT_GT(rates[24], 0.4 * rates[peak]);
  EXPECT_LT(rates[24], 0.65 * rates[peak]);
}

TEST(DeviceModelTest, CombiningIsLostWhenMoreStreamsThanBlocksInterleave) {
  DeviceParameters parameters;
  parameters.block_count = 8;
  parameters.crowd_factor = 0;
  const Outcome few = outcome_of({.writers = 8, .fence_lines = 1}, parameters);
  const Outcome many = outcome_of({.writers = 12, .fence_lines = 1}, parameters);
  EXPECT_NEAR(few.statistics.combining(), 4, 0.05);
  EXPECT_EQ(few.statistics.partial_writes, 0u);
  EXPECT_LT(many.statistics.combining(), 1.5);
  EXPECT_LT(many.rate, 0.5 * few.rate);
  // Random lines share no blocks, and each is a media write that has to read first.
  const Outcome random = outcome_of({.writers = 7, .is_random = true});
  EXPECT_NEAR(random.statistics.combining(), 1, 0.01);
  const DeviceParameters usual;
  EXPECT_NEAR(random.rate, 1e9 / (usual.drain_ns + usual.media_write_ns * usual.partial_factor),
              0.01 * random.rate);
}

TEST(DeviceModelTest, NothingIsFasterOnASlowerDevice) {
  const auto slower = [](double DeviceParameters::* which, double factor) {
    DeviceParameters parameters;
    parameters.*which *= factor;
    return parameters;
  };
  for (const uint32_t writers : {1u, 4u, 7u, 12u, 24u}) {
    for (const bool is_random : {false, true}) {
      const TestLoad load = {.writers = writers, .fence_lines = 8, .is_random = is_random};
      const double usual = outcome_of(load).rate;
      for (const auto which : {&DeviceParameters::issue_dirty_ns, &DeviceParameters::fence_ns,
                               &DeviceParameters::drain_ns, &DeviceParameters::media_write_ns,
                               &DeviceParameters::partial_factor, &DeviceParameters::crowd_factor}) {
        EXPECT_LE(outcome_of(load, slower(which, 2)).rate, 1.01 * usual) << writers;
      }
      EXPECT_LT(outcome_of(load, slower(&DeviceParameters::media_write_ns, 20)).rate, 0.5 * usual);
      if (writers == 1)
        EXPECT_LT(outcome_of(load, slower(&DeviceParameters::issue_dirty_ns, 4)).rate, 0.5 * usual);
      TestLoad busy = load;
      busy.compute_ns = 20'000;
      EXPECT_LT(outcome_of(busy).rate, usual);
    }
  }
}

TEST(DeviceModelTest, WritersThatPauseOrAreClosedAreNoCrowd) {
  DeviceModel model({});
  EXPECT_EQ(model.active_writers(0), 0u);
  const uint32_t one = model.open_writer(), other = model.open_writer();
  EXPECT_EQ(model.active_writers(0), 0u);
  const double flushed_ns = model.flush(one, 1, true, 1000);
  EXPECT_EQ(model.active_writers(flushed_ns), 1u);
  model.flush(other, 2, true, flushed_ns + 4000);
  EXPECT_EQ(model.active_writers(flushed_ns + 4100), 2u);
  EXPECT_EQ(model.active_writers(flushed_ns + 5001), 1u);
  model.close_writer(other);
  EXPECT_EQ(model.active_writers(flushed_ns + 5001), 0u);
  // A new writer in its place.
  EXPECT_EQ(model.open_writer(), other);
  EXPECT_EQ(model.active_writers(flushed_ns + 4100), 1u);
  // Computing so long between fences, 24 writers are hardly ever two at a time.
  const Outcome alone = outcome_of({.writers = 1, .compute_ns = 100'000});
  const Outcome together = outcome_of({.writers = 24, .compute_ns = 100'000});
  EXPECT_NEAR(together.rate, 24 * alone.rate, 0.02 * together.rate);
}

TEST(DeviceModelTest, WhoWaitsIsActiveHoweverLong) {
  DeviceModel model(plain_device());
  const uint32_t writer = model.open_writer();
  double now_ns = 0;
  for (uint64_t line = 0; line < 1000; ++line) now_ns = model.flush(writer, 8 * line, true, now_ns);
  EXPECT_EQ(model.active_writers(50'000), 1u);
  EXPECT_EQ(model.active_writers(model.fence(writer, now_ns)), 0u);
}

TEST(DeviceModelTest, ThereAreOnlySoManyWriters) {
  DeviceModel model({});
  for (uint32_t i = 0; i < DeviceModel::kMaxWriters; ++i) EXPECT_EQ(model.open_writer(), i);
  EXPECT_EQ(model.open_writer(), DeviceModel::kMaxWriters);
  model.close_writer(17);
  EXPECT_EQ(model.open_writer(), 17u);
}

// Threads run in pieces, one after another: what each does comes late for the model when another has run ahead.
TEST(DeviceModelTest, CallsThatComeLateFindWhatTheDeviceCouldHaveDone) {
  constexpr double kPiece = 2000;
  for (const uint32_t writers : {1u, 2u, 4u, 7u}) {
    const TestLoad load = {.writers = writers};
    const double in_order = outcome_of(load).rate;
    DeviceModel model({});
    double now_ns[8] = {};
    uint64_t next[8] = {};
    uint64_t lines = 0;
    for (uint32_t i = 0; i < writers; ++i) model.open_writer();
    for (double until_ns = kPiece; until_ns < kLong; until_ns += kPiece) {
      for (uint32_t i = 0; i < writers; ++i) {
        for (; now_ns[i] < until_ns; lines += 4) {
          for (int n = 0; n < 4; ++n)
            now_ns[i] = model.flush(i, (uint64_t{i} << 32) + next[i]++, true, now_ns[i], writers);
          now_ns[i] = model.fence(i, now_ns[i]);
        }
      }
    }
    const double late = static_cast<double>(lines) / kLong * 1e9;
    EXPECT_NEAR(late, in_order, 0.03 * in_order) << writers;
    EXPECT_LE(model.statistics().busy_ns, kLong + kPiece);
    EXPECT_EQ(model.statistics().late_lines > 0, writers > 1);
  }
}

TEST(DeviceModelTest, NoMoreIsDoneLateThanThereWasTimeFor) {
  DeviceParameters parameters = plain_device();
  parameters.late_most_ns = 1000;
  DeviceModel model(parameters);
  const uint32_t ahead = model.open_writer(), late = model.open_writer();
  model.flush(ahead, 1, true, 10'000 - parameters.issue_dirty_ns);
  // Ten lines of 100 ns fit into the idle time that is kept.
  for (uint64_t line = 0; line < 20; ++line) model.flush(late, 100 * line, true, 5000);
  EXPECT_EQ(model.statistics().late_lines, 10u);
  EXPECT_GT(model.fence(late, 5000), 10'000);
  // Fewer fit if the writer is less late: it may only use the idle time since then.
  DeviceModel another(parameters);
  another.open_writer();
  another.open_writer();
  another.flush(ahead, 1, true, 10'000 - parameters.issue_dirty_ns);
  for (uint64_t line = 0; line < 20; ++line) another.flush(late, 100 * line, true, 9940);
  EXPECT_EQ(another.statistics().late_lines, 0u);
}

TEST(DeviceModelTest, TheSameCallsHaveTheSameResults) {
  for (const bool is_random : {false, true}) {
    const TestLoad load = {.writers = 9, .fence_lines = 3, .is_random = is_random, .compute_ns = 70};
    const Outcome one = outcome_of(load), other = outcome_of(load);
    EXPECT_EQ(one.rate, other.rate);
    EXPECT_EQ(one.statistics.media_writes, other.statistics.media_writes);
    EXPECT_EQ(one.statistics.busy_ns, other.statistics.busy_ns);
    EXPECT_EQ(one.statistics.taken_until_ns, other.statistics.taken_until_ns);
  }
}

}  // namespace
}  // namespace persist
