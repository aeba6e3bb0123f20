// Programs for a Machine: all short ones, and random ones.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "machine.h"

namespace persist_semantics {

// The slow tier: longer programs, and more of them.
inline const bool is_long = getenv("SPILLWAY_TEST_LONG") != nullptr;

// What programs are made of. If lines are alike, it does not matter which is which; otherwise there are two, at a page's edge, which are also flushed together.
struct Space {
  uint32_t lines, threads;
  bool are_alike = true;
};

using Programs = std::function<void(const std::vector<Step>&)>;

// Every program of `length` steps of at most these threads on at most these lines; only one of those that differ just by the numbers of threads, or of lines that are alike.
inline void for_each_program(size_t length, const Space& space, const Programs& take) {
  std::vector<Step::Act> acts = {Step::kStore, Step::kFlush, Step::kFlushOrdered, Step::kFence};
  if (!space.are_alike) acts.push_back(Step::kFlushTwo);
  std::vector<Step> steps;
  const std::function<void(uint32_t, uint32_t)> extend = [&](uint32_t used_lines, uint32_t used_threads) {
    if (steps.size() == length) return take(steps);
    for (uint32_t t = 0; t < std::min(space.threads, used_threads + 1); ++t)
      for (const Step::Act act : acts) {
        const bool is_of_a_line = act != Step::kFence && act != Step::kFlushTwo;
        const uint32_t lines = is_of_a_line ? std::min(space.lines, used_lines + 1) : 1;
        for (uint32_t line = 0; line < lines; ++line) {
          steps.push_back({act, static_cast<uint8_t>(t), line});
          extend(std::max(used_lines, is_of_a_line ? line + 1 : 0), std::max(used_threads, t + 1));
          steps.pop_back();
        }
      }
  };
  extend(space.are_alike ? 0 : space.lines, 0);
}

// Runs all of them on one machine, so that each finds the state that the programs before it left.
inline void check_all(Machine& machine, size_t length, const Space& space) {
  size_t count = 0;
  for_each_program(length, space, [&](const std::vector<Step>& steps) {
    if (testing::Test::HasFailure()) return;
    for (const Step& step : steps) machine.run(step);
    const std::string why = why_not(machine.device().take_log(), space.lines);
    ASSERT_EQ(why, "") << text_of(steps);
    for (uint8_t t = 0; t < space.threads; ++t) machine.run({Step::kFence, t});
    machine.device().take_log();
    ++count;
  });
  EXPECT_GT(count, 1000u);
}

// How many of 64 random steps are fences, and how many are flushes of two lines.
struct Shares {
  uint64_t fences = 4, two = 0;
};

inline Step random_step(std::mt19937_64& random, uint32_t lines, uint32_t threads,
                        const Shares& shares = {}) {
  const auto line = static_cast<uint32_t>(random() % lines);
  const auto thread = static_cast<uint8_t>(random() % threads);
  const uint64_t draw = random() % 64;
  if (draw < 1) return {Step::kWay, thread, static_cast<uint32_t>(random() % 5)};
  if (draw < 2) return random() % 2 == 0 ? Step{Step::kRemove, thread, line} : Step{Step::kLeave, thread};
  if (draw < 4) return {Step::kFlushOrdered, thread, line};
  if (draw < 4 + shares.fences) return {Step::kFence, thread};
  if (draw < 36) return {Step::kStore, thread, line};
  if (draw >= 64 - shares.two && line / 2 * 2 + 1 < lines) return {Step::kFlushTwo, thread, line / 2 * 2};
  return {Step::kFlush, thread, line};
}

// Each thread runs 300 random steps, at the same time as the other one.
inline void run_at_once(Machine& machine, uint64_t seed, uint32_t lines, const Shares& shares = {}) {
  std::vector<std::thread> threads;
  for (uint8_t t = 0; t < Machine::kThreads; ++t)
    threads.emplace_back([&, t] {
      std::mt19937_64 random(2 * seed + t);
      for (size_t i = 0; i < 300; ++i) {
        Step step = random_step(random, lines, 1, shares);
        if (step.act == Step::kRemove) continue;  // the other thread flushes meanwhile
        step.thread = t;
        machine.run(step);
      }
      machine.run({Step::kFence, t});
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace persist_semantics
