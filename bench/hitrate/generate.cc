#include "hitrate/generate.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace hitrate {
namespace {

class Random {
 public:
  uint64_t next() { return base::mix(state_ += base::kMixStep); }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_ = 0;
};

// One of `count`, by a number that is random.
uint64_t scaled(uint64_t random, uint64_t count) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(random) * count >> 64);
}

// Numbers from 0 on by Zipf's law, as YCSB draws them (Gray, Sundaresan, Englert, Baclawski, Weinberger: Quickly generating
// billion-record synthetic databases, SIGMOD 1994).
class Zipf {
 public:
  explicit Zipf(uint64_t items) : items_(static_cast<double>(items)) {
    for (uint64_t i = 1; i <= items; ++i) zeta_ += std::pow(static_cast<double>(i), -kExponent);
    eta_ = (1 - std::pow(2 / items_, 1 - kExponent)) / (1 - second_ / zeta_);
  }
  uint64_t draw(Random& random) const {
    const double unit = random.unit(), share = unit * zeta_;
    if (share < 1) return 0;
    if (share < second_) return 1;
    return static_cast<uint64_t>(items_ * std::pow(eta_ * unit - eta_ + 1, 1 / (1 - kExponent)));
  }

 private:
  static constexpr double kExponent = 0.99;
  double items_, zeta_ = 0, eta_ = 0;
  double second_ = 1 + std::pow(0.5, kExponent);
};

// What a trace over a B-tree consists of.
struct Load {
  std::string_view name;
  uint64_t lookups, items, leaves;
  uint64_t inner_nodes = 0, upper_nodes = 0;
  uint64_t scans = 0, scan_pages = 0;
  uint64_t shifts = 0, shift_items = 0;

  Load divided(uint64_t by) const {
    const auto part = [by](uint64_t whole) { return whole == 0 ? 0 : std::max<uint64_t>(whole / by, 1); };
    return {name,  part(lookups),    part(items), part(leaves),     part(inner_nodes), part(upper_nodes),
            scans, part(scan_pages), shifts,      part(shift_items)};
  }
};

// Numbers that the paper leaves open were chosen so that policies hit as often as others have seen.
constexpr uint64_t kItems = 3'000'000, kPages = 574'882;
constexpr Load kLoads[] = {
    {.name = "zipfleaf", .lookups = 3'918'848, .items = kItems, .leaves = kPages},
    {.name = "zipf",
     .lookups = kItems,
     .items = kItems,
     .leaves = 592'000,
     .inner_nodes = 4'400,
     .upper_nodes = 100},
    {.name = "zipfscan",
     .lookups = 3'918'848,
     .items = kItems,
     .leaves = kPages,
     .scans = 12,
     .scan_pages = 70'000},
    {.name = "zipfshift",
     .lookups = 3'918'848,
     .items = kItems / 2,
     .leaves = kPages / 2,
     .shifts = 7,
     .shift_items = 8'000},
};
constexpr double kInnerReads = 0.306, kLowestInner = 0.85;
constexpr uint64_t kLoopPages = 1'011, kLoopAccesses = 505'500;

Trace trace_of(const Load& load, uint64_t most) {
  TraceBuilder builder(most);
  Random random;
  const Zipf zipf(load.items);
  const uint64_t first_inner = load.leaves, first_upper = first_inner + load.inner_nodes;
  const uint64_t first_scanned = first_upper + load.upper_nodes;
  uint64_t shifts = 0, scanned = 0;
  for (uint64_t i = 0; i < load.lookups; ++i) {
    // In the middle of each of so many parts of the trace a scan.
    if (scanned < load.scans * load.scan_pages &&
        i >= (2 * (scanned / load.scan_pages) + 1) * load.lookups / (2 * load.scans))
      for (uint64_t page = 0; page < load.scan_pages; ++page) builder.add(first_scanned + scanned++);
    if (shifts < load.shifts && i >= (shifts + 1) * load.lookups / (load.shifts + 1)) ++shifts;
    const uint64_t place = base::mix(zipf.draw(random) + shifts * load.shift_items);
    if (load.inner_nodes > 0 && random.unit() < kInnerReads) {
      if (random.unit() < kLowestInner)
        builder.add(first_inner + scaled(place, load.inner_nodes));
      else
        builder.add(first_upper + scaled(place, load.upper_nodes));
    }
    builder.add(scaled(place, load.leaves));
  }
  return builder.take();
}

Trace loop(uint64_t divisor, uint64_t most) {
  TraceBuilder builder(most);
  const uint64_t pages = std::max<uint64_t>(kLoopPages / divisor, 1);
  for (uint64_t i = 0; i < kLoopAccesses / divisor; ++i) builder.add(i % pages);
  return builder.take();
}

}  // namespace

base::Expected<Trace> generate(std::string_view words, uint64_t most) {
  const size_t slash = words.find('/');
  const std::string_view name = words.substr(0, slash);
  uint64_t divisor = 1;
  if (slash != std::string_view::npos) {
    const char* const end = words.data() + words.size();
    const auto [stop, wrong] = std::from_chars(words.data() + slash + 1, end, divisor);
    if (wrong != std::errc() || stop != end || divisor == 0 || divisor > 10'000)
      return base::failure(EINVAL, "'", words.substr(0, 60),
                           "' is no part of a trace: give NAME/N with N from 1 to 10000");
  }
  if (name == "loop") return loop(divisor, most);
  for (const Load& load : kLoads)
    if (name == load.name) return trace_of(load.divided(divisor), most);
  return base::failure(EINVAL, "no trace is called '", name.substr(0, 40),
                       "'; there are zipfleaf, zipf, zipfscan, zipfshift and loop, and FORMAT:FILE");
}

}  // namespace hitrate
