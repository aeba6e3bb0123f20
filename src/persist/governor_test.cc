// How near the Governor comes to the best count, how soon and at what cost: over families of curves, of which it gets nothing but samples.
// It is measured against the best count of all, found by trying each.
#include "persist/governor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "persist/model/test_load.h"

namespace persist {
namespace {

// Rates by count; [0] is not used.
using Curve = std::vector<double>;

struct Bounds {
  uint32_t lower, upper;
};
constexpr Bounds kBounds[] = {{1, 1},  {1, 2},  {1, 3},  {1, 4},  {1, 8}, {1, 16},
                              {1, 24}, {2, 24}, {1, 32}, {4, 48}, {1, 64}};

// The rate of n flushers: p is the peak or determines it, q from 0 to 1 determines the shape, N is the upper bound.
struct Family {
  const char* name;
  double (*rate)(double n, double p, double q, double N);
};
const Family kFamilies[] = {
    {"triangle", [](double n, double p, double q,
                    double N) { return n <= p ? n / p : 1 - (1 - q) * (n - p) / std::max(1.0, N - p); }},
    {"saturating", [](double n, double p, double, double) { return 1 - std::exp(-n / p); }},
    {"plateau",
     [](double n, double p, double q, double N) {
       const double end = p + (N - p) * q;
       return n <= p ? n / p : n <= end ? 1 : std::pow(end / n, 1.5);
     }},
    {"hyperbolic",
     [](double n, double p, double q, double) { return n <= p ? n / p : std::pow(p / n, 0.3 + q); }},
    {"early",
     [](double n, double p, double q, double) {
       return n <= p ? std::pow(n / p, 0.7) : std::max(0.3 + 0.3 * q, 1 - 0.15 * (n - p));
     }},
    {"cliff",
     [](double n, double p, double q, double) { return n <= p ? std::pow(n / p, 0.4 + 0.5 * q) : 0.45; }},
    // The universal scalability law.
    {"contention",
     [](double n, double p, double q, double) {
       const double alpha = 0.02 + 0.3 * q, beta = (1 - alpha) / (p * p);
       return n / (1 + alpha * (n - 1) + beta * n * (n - 1));
     }},
    {"parabola", [](double n, double p, double,
                    double N) { return 1 - std::pow((n - p) / (std::max(p, N - p) * 1.05), 2); }},
    {"falling", [](double n, double, double q, double) { return std::pow(n, -0.1 - q); }},
    {"rising", [](double n, double, double q, double) { return std::pow(n, 0.1 + 0.9 * q); }},
    {"flat", [](double, double, double, double) { return 1.0; }},
    {"step",
     [](double n, double p, double q, double) {
       return n < p ? 0.5 + 0.4 * q * n / p : n < 2 * p ? 1 : 0.5;
     }},
};

double best_rate(const Curve& curve, Bounds bounds) {
  return *std::max_element(curve.begin() + bounds.lower, curve.begin() + bounds.upper + 1);
}

class World {
 public:
  enum class Noise { kNone, kUniform, kNormal };  // within 3 %, or 3 % its standard deviation
  World(Noise noise, uint64_t seed) : noise_(noise), random_(seed) {}

  // Peaks at few flushers are as frequent as at many, roughly in proportion.
  Curve curve(const Family& family, Bounds bounds, double scale) {
    const double p = bounds.lower + std::floor((bounds.upper - bounds.lower + 1) * std::pow(draw(), 1.7));
    const double q = draw();
    Curve rates(bounds.upper + 1);
    for (uint32_t n = 1; n <= bounds.upper; ++n) rates[n] = family.rate(n, p, q, bounds.upper);
    const double best = best_rate(rates, bounds);
    for (double& rate : rates) rate *= scale / best;
    return rates;
  }
  const Family& any_family() { return kFamilies[random_() % std::size(kFamilies)]; }
  double draw() { return std::uniform_real_distribution<>(0, 1)(random_); }
  double noisy(double rate) {
    switch (noise_) {
      case Noise::kNone: break;
      case Noise::kUniform: return rate * (1 + 0.03 * (2 * draw() - 1));
      case Noise::kNormal: return rate * (1 + 0.03 * std::normal_distribution<>()(random_));
    }
    return rate;
  }
  // Returns the mean rate of what ran.
  double run(Governor& governor, const Curve& curve, Bounds bounds, int samples) {
    double sum = 0;
    for (int i = 0; i < samples; ++i) {
      EXPECT_GE(governor.count(), bounds.lower);
      EXPECT_LE(governor.count(), bounds.upper);
      const double rate = curve[governor.count()];
      sum += rate;
      governor.on_sample(noisy(rate));
    }
    return sum / samples;
  }

 private:
  Noise noise_;
  std::mt19937_64 random_;
};
using Noise = World::Noise;

// The fractions of the best rate that were reached.
struct Parts {
  std::vector<double> all;
  void add(double part) { all.push_back(part); }
  double worst() const { return *std::ranges::min_element(all); }
  double mean() const {
    double sum = 0;
    for (const double part : all) sum += part;
    return sum / static_cast<double>(all.size());
  }
  double share_below(double least) const {
    return static_cast<double>(std::ranges::count_if(all, [&](double part) { return part < least; })) /
           static_cast<double>(all.size());
  }
};

constexpr int kDraws = 100;
constexpr int kSearch = Governor::kMaxSearchSamples;

void for_each_draw(const std::function<void(const Family&, Bounds)>& act) {
  for (const Family& family : kFamilies)
    for (const Bounds bounds : kBounds)
      for (int i = 0; i < kDraws; ++i) act(family, bounds);
}

struct Limits {
  double worst;        // fraction of the best rate
  double share_below;  // 95 % of it
};

class GovernorNoiseTest : public testing::TestWithParam<Noise> {
 protected:
  void expect(const Parts& parts, Limits none, Limits uniform, Limits normal) {
    const Limits limits = GetParam() == Noise::kNone      ? none
                          : GetParam() == Noise::kUniform ? uniform
                                                          : normal;
    EXPECT_GE(parts.worst(), limits.worst);
    EXPECT_LE(parts.share_below(0.95), limits.share_below);
    RecordProperty("worst", std::to_string(parts.worst()));
    RecordProperty("mean", std::to_string(parts.mean()));
    RecordProperty("share_below_95", std::to_string(parts.share_below(0.95)));
  }
  World world{GetParam(), 1};
};

TEST_P(GovernorNoiseTest, TheFirstSearchEndsNearTheBestCount) {
  Parts parts;
  for_each_draw([&](const Family& family, Bounds bounds) {
    const Curve curve = world.curve(family, bounds, 1e6);
    Governor governor(bounds.lower, bounds.upper);
    world.run(governor, curve, bounds, kSearch);
    if (GetParam() == Noise::kNone) EXPECT_TRUE(governor.is_watching()) << family.name;
    parts.add(curve[governor.count()] / 1e6);
  });
  expect(parts, {.worst = 0.92, .share_below = 0.001}, {.worst = 0.88, .share_below = 0.01},
         {.worst = 0.4, .share_below = 0.025});
}

// The load changes, and with it the rate at the present count, by more than noise and 12 %: whatever the Governor is doing, even a probe.
TEST_P(GovernorNoiseTest, AfterAChangeASearchEndsNearTheBestCount) {
  Parts parts;
  for_each_draw([&](const Family& family, Bounds bounds) {
    const Curve before = world.curve(family, bounds, 1e6);
    Governor governor(bounds.lower, bounds.upper);
    world.run(governor, before, bounds, kSearch + static_cast<int>(world.draw() * 200));
    const double scale = world.draw() < 0.5 ? 6e5 : 1.7e6;
    const Curve after = world.curve(world.any_family(), bounds, scale);
    if (std::abs(after[governor.count()] / before[governor.count()] - 1) < 0.12) return;
    world.run(governor, after, bounds, kSearch);
    parts.add(after[governor.count()] / scale);
  });
  EXPECT_GT(parts.all.size(), 10'000u);
  expect(parts, {.worst = 0.3, .share_below = 0.01}, {.worst = 0.3, .share_below = 0.02},
         {.worst = 0.01, .share_below = 0.05});
}

// The same, but the rate at the present count stays as it was: only probes can tell.
TEST_P(GovernorNoiseTest, AChangeThatDoesNotShowIsFoundByProbes) {
  constexpr int kSoon = 400;
  int changes = 0, found_later = 0, samples_sum = 0;
  for_each_draw([&](const Family& family, Bounds bounds) {
    const Curve before = world.curve(family, bounds, 1e6);
    Governor governor(bounds.lower, bounds.upper);
    world.run(governor, before, bounds, 50);
    Curve after = world.curve(world.any_family(), bounds, 1e6);
    const double scale = before[governor.count()] / after[governor.count()];
    for (double& rate : after) rate *= scale;
    const double best = best_rate(after, bounds);
    if (after[governor.count()] > 0.9 * best) return;
    ++changes;
    int samples = 0;
    for (; samples < kSoon && after[governor.count()] < 0.95 * best; ++samples)
      world.run(governor, after, bounds, 1);
    samples_sum += samples;
    found_later += samples == kSoon;
  });
  EXPECT_GT(changes, 1000);
  EXPECT_LT(found_later, changes / 50);
  EXPECT_LT(samples_sum, 60 * changes);
  RecordProperty("mean_samples", std::to_string(samples_sum / changes));
  RecordProperty("found_later", std::to_string(found_later) + " of " + std::to_string(changes));
}

TEST_P(GovernorNoiseTest, ExploringCostsLessThanTwoPercentOfASteadyLoad) {
  Parts parts, of_settled;
  for (const Family& family : kFamilies) {
    for (const Bounds bounds : kBounds) {
      for (int i = 0; i < 8; ++i) {
        const Curve curve = world.curve(family, bounds, 1e6);
        Governor governor(bounds.lower, bounds.upper);
        world.run(governor, curve, bounds, kSearch);
        const double settled = curve[governor.count()];
        const double mean = world.run(governor, curve, bounds, 2000);
        parts.add(mean / 1e6);
        of_settled.add(mean / settled);
      }
    }
  }
  if (GetParam() == Noise::kNone) EXPECT_GE(of_settled.worst(), 0.98);
  EXPECT_GE(parts.mean(), 0.98);
  expect(parts, {.worst = 0.93, .share_below = 0.01}, {.worst = 0.88, .share_below = 0.02},
         {.worst = 0.8, .share_below = 0.03});
}

INSTANTIATE_TEST_SUITE_P(Noises, GovernorNoiseTest,
                         testing::Values(Noise::kNone, Noise::kUniform, Noise::kNormal),
                         [](const testing::TestParamInfo<Noise>& noise) {
                           return noise.param == Noise::kNone      ? "None"
                                  : noise.param == Noise::kUniform ? "Uniform"
                                                                   : "Normal";
                         });

uint32_t estimate_of(const Curve& curve, Bounds bounds) {
  return Governor::estimate(
      bounds.lower, bounds.upper,
      {curve[bounds.lower], curve[bounds.lower + 1], curve[bounds.upper - 1], curve[bounds.upper]});
}

TEST(GovernorTest, LinesMeetAtThePeak) {
  const auto estimate = [](double p1, double p2, double p3, double p4) {
    return Governor::estimate(1, 24, {p1, p2, p3, p4});
  };
  // Up by 1 and down by 0.5 from 8 on.
  EXPECT_EQ(estimate(1, 2, 0.5, 0), 8u);
  EXPECT_EQ(Governor::estimate(4, 27, {1, 2, 0.5, 0}), 11u);
  EXPECT_EQ(estimate(1, 2, 6, 6), 6u);     // a plateau
  EXPECT_EQ(estimate(1, 2, 9.9, 10), 8u);  // rises everywhere, more slowly at last
  EXPECT_EQ(estimate(1, 2, 23, 24), 24u);  // parallel
  EXPECT_EQ(estimate(1, 2, 20, 24), 24u);
  EXPECT_EQ(estimate(5, 5, 5, 5), 1u);
  EXPECT_EQ(estimate(24, 23, 2, 1), 1u);
  EXPECT_EQ(estimate(24, 20, 2, 1), 1u);
  EXPECT_EQ(estimate(5, 4, 6, 7), 24u);  // valleys
  EXPECT_EQ(estimate(7, 5, 5, 6), 1u);
  EXPECT_EQ(estimate(1, 2, 900, 800), 24u);  // meet outside
  EXPECT_EQ(estimate(9, 10, 9, 1), 21u);
}

// The reason for a search: two lines say nothing about what lies between them.
TEST(GovernorTest, LinesAloneLoseHalfOfTheRate) {
  constexpr Bounds kRange = {1, 24};
  const auto parts = [&](double (*rate)(double)) {
    Curve curve(kRange.upper + 1);
    for (uint32_t n = 1; n <= kRange.upper; ++n) curve[n] = rate(n);
    const double best = best_rate(curve, kRange);
    Governor governor(kRange.lower, kRange.upper);
    World(Noise::kNone, 1).run(governor, curve, kRange, kSearch);
    return std::pair(curve[estimate_of(curve, kRange)] / best, curve[governor.count()] / best);
  };
  // An early peak and a long tail: the last two samples are low and nearly level, and the first line is soon there.
  const auto [early_lines, early_search] = parts([](double n) { return n <= 6 ? n : 36 / n; });
  EXPECT_LE(early_lines, 0.5);
  EXPECT_GT(early_search, 0.99);
  // The rate goes on to rise, ever more slowly.
  const auto [saturating_lines, saturating_search] = parts([](double n) { return 1 - std::exp(-n / 8); });
  EXPECT_LT(saturating_lines, 0.75);
  EXPECT_GT(saturating_search, 0.98);
  // Everything interesting lies in the middle.
  const auto [step_lines, step_search] = parts([](double n) { return n < 5 ? 0.3 * n : n < 10 ? 3 : 0.9; });
  EXPECT_LT(step_lines, 0.5);
  EXPECT_GT(step_search, 0.99);
  // Where the lines describe the curve well, they are nearly right.
  EXPECT_GT(parts([](double n) { return n <= 7 ? n : 7 - (n - 7) / 4; }).first, 0.99);
}

// The same on the curves of a modelled device: lines in order, and random lines.
TEST(GovernorTest, LinesAloneMissThePeakOfAModelledDevice) {
  constexpr Bounds kRange = {1, 24};
  double lines_worst = 1;
  for (const TestLoad& load :
       {TestLoad{}, TestLoad{.fence_lines = 16}, TestLoad{.fence_lines = 1, .is_random = true},
        TestLoad{.is_random = true}, TestLoad{.fence_lines = 1, .compute_ns = 200}}) {
    Curve curve(kRange.upper + 1);
    for (uint32_t n = 1; n <= kRange.upper; ++n) {
      TestLoad of_n = load;
      of_n.writers = n;
      const auto device = std::make_unique<DeviceModel>(DeviceParameters{});
      curve[n] = run_virtually(*device, of_n, 3e5);
    }
    const double best = best_rate(curve, kRange);
    Governor governor(kRange.lower, kRange.upper);
    World(Noise::kNone, 1).run(governor, curve, kRange, kSearch);
    EXPECT_TRUE(governor.is_watching());
    EXPECT_GT(curve[governor.count()], 0.97 * best);
    lines_worst = std::min(lines_worst, curve[estimate_of(curve, kRange)] / best);
  }
  EXPECT_LT(lines_worst, 0.9);
  RecordProperty("lines_worst", std::to_string(lines_worst));
}

TEST(GovernorTest, FewCountsAreAllSampled) {
  const Curve curve = {0, 3, 9, 5};
  for (uint32_t lower = 1; lower <= 3; ++lower) {
    for (uint32_t upper = lower; upper <= 3; ++upper) {
      Governor governor(lower, upper);
      std::vector<uint32_t> sampled;
      for (uint32_t count = lower; count <= upper; ++count) {
        EXPECT_FALSE(governor.is_watching());
        sampled.push_back(governor.count());
        governor.on_sample(curve[governor.count()]);
      }
      std::ranges::sort(sampled);
      EXPECT_EQ(std::ranges::unique(sampled).size(), 0u);
      EXPECT_TRUE(governor.is_watching());
      EXPECT_EQ(curve[governor.count()], best_rate(curve, {lower, upper}));
    }
  }
}

TEST(GovernorTest, FewestOfCountsThatAreAlike) {
  constexpr Bounds kRange = {1, 24};
  Curve curve(kRange.upper + 1);
  for (uint32_t n = 1; n <= kRange.upper; ++n) curve[n] = n < 4 ? 25 * n : 100 + 0.03 * n;
  Governor governor(kRange.lower, kRange.upper);
  World(Noise::kNone, 1).run(governor, curve, kRange, kSearch);
  EXPECT_TRUE(governor.is_watching());
  EXPECT_EQ(governor.count(), 4u);
}

TEST(GovernorTest, WhatIsNoSampleChangesNothing) {
  Governor governor(1, 24);
  for (const double none : {0.0, -1.0, std::nan("")}) governor.on_sample(none);
  EXPECT_EQ(governor.count(), 1u);
  governor.on_sample(1);
  EXPECT_EQ(governor.count(), 2u);
  for (const double none : {0.0, -1.0, std::nan("")}) governor.on_sample(none);
  EXPECT_EQ(governor.count(), 2u);
}

// One sample that is far off is enough, and so are several that are a little off; noise is not.
TEST(GovernorTest, ChangesAreToldFromNoise) {
  const auto samples_until_search = [](double factor) {
    constexpr Bounds kRange = {1, 24};
    World world(Noise::kUniform, 5);
    Curve curve(kRange.upper + 1);
    for (uint32_t n = 1; n <= kRange.upper; ++n) curve[n] = 1e6 * (n <= 6 ? n : 6 - (n - 6) / 4.0);
    Governor governor(kRange.lower, kRange.upper);
    world.run(governor, curve, kRange, kSearch + 15);
    EXPECT_TRUE(governor.is_watching());
    for (double& rate : curve) rate *= factor;
    int samples = 0;
    for (; samples < 1000 && governor.is_watching(); ++samples) world.run(governor, curve, kRange, 1);
    return samples;
  };
  EXPECT_EQ(samples_until_search(0.7), 1);
  EXPECT_EQ(samples_until_search(1.4), 1);
  EXPECT_LE(samples_until_search(0.9), 4);
  EXPECT_LE(samples_until_search(1.1), 4);
  EXPECT_EQ(samples_until_search(1), 1000);
}

}  // namespace
}  // namespace persist
