#include "storage/device_settings.h"

#include <type_traits>

namespace storage {
namespace {

using base::failure;

struct OperationName {
  std::string_view name;
  uint8_t operations;
};
constexpr OperationName kOperationNames[] = {
    {"read", operation_bit(Operation::kRead)},
    {"write", operation_bit(Operation::kWrite)},
    {"discard", operation_bit(Operation::kDiscard)},
    {"flush", operation_bit(Operation::kFlush)},
    {"any", kAllOperations},
};

struct EffectName {
  std::string_view name;
  FaultRule::Effect effect;
  int error;
  uint8_t operations;  // that it can happen to
};
constexpr uint8_t kTransfers = operation_bit(Operation::kRead) | operation_bit(Operation::kWrite);
constexpr EffectName kEffectNames[] = {
    {"eio", FaultRule::Effect::kError, EIO, kAllOperations},
    {"enospc", FaultRule::Effect::kError, ENOSPC, kAllOperations},
    {"torn", FaultRule::Effect::kTorn, EIO, operation_bit(Operation::kWrite)},
    {"short", FaultRule::Effect::kShort, 0, kTransfers},
    {"split", FaultRule::Effect::kSplit, 0, kTransfers},
    {"delay_polls", FaultRule::Effect::kDelayPolls, 0, kAllOperations},
    {"delay_us", FaultRule::Effect::kDelayUs, 0, kAllOperations},
};

// Largest number in a fault: delays stay bounded (10 s), and sums of them cannot overflow.
constexpr uint64_t kMaxFaultNumber = 1'000'000'000'000;
constexpr uint64_t kMaxDelay = 10'000'000;

// "1/1000", "@5", "@5+", "%5"
base::Expected<void> parse_when(std::string_view what, std::string_view text, FaultRule& rule) {
  Split chance = split_at(text, "/");
  std::string_view number = text;
  if (chance.found) {
    rule.when = FaultRule::When::kChance;
    number = chance.before;
    auto m = parse_count(what, chance.after, 1, kMaxFaultNumber);
    if (!m) return std::unexpected(m.error());
    rule.m = *m;
  } else if (text.starts_with('@')) {
    bool later_too = text.ends_with('+');
    rule.when = later_too ? FaultRule::When::kFrom : FaultRule::When::kAt;
    number.remove_prefix(1);
    if (later_too) number.remove_suffix(1);
  } else if (text.starts_with('%')) {
    rule.when = FaultRule::When::kEvery;
    number.remove_prefix(1);
  } else {
    return failure(EINVAL, "storage: ", Shown(what), ": '", Shown(text),
                   "' does not say when; write N/M, @N, @N+ or %N");
  }
  auto n = parse_count(what, number, 1, chance.found ? rule.m : kMaxFaultNumber);
  if (!n) return std::unexpected(n.error());
  rule.n = *n;
  return {};
}

// "read_eio=1/1000", "any_delay_polls=%3x8"
base::Expected<FaultRule> parse_rule(std::string_view key, std::string_view value) {
  Split names = split_at(key, "_");
  const OperationName* operation = nullptr;
  for (const OperationName& candidate : kOperationNames)
    if (candidate.name == names.before) operation = &candidate;
  const EffectName* effect = nullptr;
  for (const EffectName& candidate : kEffectNames)
    if (candidate.name == names.after) effect = &candidate;
  if (operation == nullptr || effect == nullptr || (operation->operations & effect->operations) == 0) {
    return failure(EINVAL, "storage: '", Shown(key),
                   "' is not a fault; write seed, or one of read, write, discard, ",
                   "flush, any with _eio, _enospc, _torn, _short, _split, _delay_polls, _delay_us");
  }
  FaultRule rule;
  rule.operations = operation->operations & effect->operations;
  rule.effect = effect->effect;
  rule.error = effect->error;
  Split parts = split_at(value, "x");
  bool delays = rule.effect == FaultRule::Effect::kDelayPolls || rule.effect == FaultRule::Effect::kDelayUs;
  if (delays != parts.found) {
    return failure(EINVAL, "storage: ", Shown(key), ": '", Shown(value), "' should ",
                   delays ? "end with how long, such as x100" : "have no x: only delays do");
  }
  if (delays) {
    auto amount = parse_count(key, parts.after, 1, kMaxDelay);
    if (!amount) return std::unexpected(amount.error());
    rule.amount = *amount;
  }
  if (auto when = parse_when(key, parts.before, rule); !when) return std::unexpected(when.error());
  return rule;
}

base::Expected<void> parse_distribution(std::string_view name, LatencyParameters& latency) {
  using Distribution = LatencyParameters::Distribution;
  if (name == "fixed") {
    latency.distribution = Distribution::kFixed;
  } else if (name == "uniform") {
    latency.distribution = Distribution::kUniform;
  } else if (name == "exp") {
    latency.distribution = Distribution::kExponential;
  } else {
    return failure(EINVAL, "storage: dist: '", Shown(name), "' is not one; there are fixed, uniform and exp");
  }
  return {};
}

}  // namespace

base::Expected<uint64_t> parse_count(std::string_view what, std::string_view text, uint64_t least,
                                     uint64_t most) {
  uint64_t value = 0;
  bool good = !text.empty() && text.size() <= 19;
  for (char c : text) {
    if (c < '0' || c > '9') good = false;
    if (good) value = value * 10 + static_cast<uint64_t>(c - '0');
  }
  if (good && value >= least && value <= most) return value;
  return failure(EINVAL, "storage: ", Shown(what), ": '", Shown(text), "' is not a whole number from ", least,
                 " to ", most);
}

base::Expected<void> parse_faults(std::string_view text, FaultSchedule& schedule) {
  for (bool more = true; more;) {
    Split item = split_at(text, ",");
    more = item.found;
    text = item.after;
    Split fault = split_at(item.before, "=");
    if (fault.before == "seed" && fault.found) {
      auto seed = parse_count("seed", fault.after, 0, ~uint64_t{0} >> 1);
      if (!seed) return std::unexpected(seed.error());
      schedule.seed = *seed;
      continue;
    }
    auto rule = parse_rule(fault.before, fault.after);
    if (!rule) return std::unexpected(rule.error());
    if (schedule.rule_count == FaultSchedule::kMaxRules)
      return failure(EINVAL, "storage: more than ", FaultSchedule::kMaxRules, " faults");
    schedule.add(*rule);
  }
  return {};
}

// "us=80,channels=8,mbps=2000,dist=exp,seed=7,sleep=1"
base::Expected<void> parse_latency_settings(std::string_view text, LatencyParameters& latency) {
  bool mean_given = false;
  for (bool more = true; more;) {
    Split item = split_at(text, ",");
    more = item.found;
    text = item.after;
    const Split setting = split_at(item.before, "=");
    auto number = [&](uint64_t least, uint64_t most, auto& to) -> base::Expected<void> {
      auto count = parse_count(setting.before, setting.after, least, most);
      if (!count) return std::unexpected(count.error());
      to = static_cast<std::remove_reference_t<decltype(to)>>(*count);
      return {};
    };
    base::Expected<void> parsed;
    if (setting.before == "us" && setting.found) {
      parsed = number(0, LatencyParameters::kMaxMeanUs, latency.mean_us);
      mean_given = true;
    } else if (setting.before == "channels" && setting.found) {
      parsed = number(1, LatencyParameters::kMaxChannels, latency.channel_count);
    } else if (setting.before == "mbps" && setting.found) {
      parsed = number(1, LatencyParameters::kMaxMegabytesPerSecond, latency.megabytes_per_second);
    } else if (setting.before == "seed" && setting.found) {
      parsed = number(0, ~uint64_t{0} >> 1, latency.seed);
    } else if (setting.before == "sleep" && setting.found) {
      parsed = number(0, 1, latency.sleeps);
    } else if (setting.before == "dist" && setting.found) {
      parsed = parse_distribution(setting.after, latency);
    } else {
      parsed = failure(
          EINVAL, "storage: '", Shown(item.before),
          "' is not a setting of latency; there are us=N, channels=N, mbps=N, dist=NAME, seed=N and sleep=1");
    }
    if (!parsed) return parsed;
  }
  if (!mean_given) return failure(EINVAL, "storage: latency: the mean is missing; write us=N");
  return {};
}

}  // namespace storage
