#include "storage/opening/device_settings.h"

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
  uint8_t operations;  // to which it can happen
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

// The settings of spdk:, and an example.
constexpr std::string_view kSpdkSettings[] = {
    "pci=", "tcp=", "rdma=", "nqn=", "ns=", "qd=", "timeout=", "bounce="};
constexpr const char* kSpdkExample = "spdk:tcp=127.0.0.1:4420,nqn=NAME,ns=1, or spdk:pci=0000:01:00.0,ns=1";

// Printable, without spaces, and short enough for SpdkTarget.
bool is_word(std::string_view text, size_t most_bytes) {
  for (char c : text)
    if (c <= ' ' || c > '~') return false;
  return !text.empty() && text.size() <= most_bytes;
}

// "0000:01:00.0"
bool is_pci_address(std::string_view text) {
  constexpr std::string_view kForm = "xxxx:xx:xx.x";
  if (text.size() != kForm.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool is_digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    if (kForm[i] == 'x' ? !is_digit : c != kForm[i]) return false;
  }
  return true;
}

// "127.0.0.1:4420", "[::1]:4420"
base::Expected<void> parse_host(std::string_view what, std::string_view text, SpdkParameters& spdk) {
  const size_t colon = text.rfind(':');
  std::string_view host = text.substr(0, colon);
  const bool is_bracketed = host.starts_with('[') && host.ends_with(']');
  if (is_bracketed) host = host.substr(1, host.size() - 2);
  if (colon == std::string_view::npos || !is_word(host, sizeof SpdkTarget::address - 1) ||
      (!is_bracketed && host.find_first_of(":[]") != std::string_view::npos))
    return failure(EINVAL, "storage: ", what, ": '", Shown(text), "' should be HOST:PORT, or [HOST]:PORT");
  spdk.address = host;
  spdk.port = text.substr(colon + 1);
  auto number = parse_count("port", spdk.port, 1, 65535);
  if (!number || spdk.port.size() > 5)
    return failure(EINVAL, "storage: ", what, ": '", Shown(text),
                   "' does not end with a port from 1 to 65535");
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

bool begins_with_spdk_setting(std::string_view text) {
  for (std::string_view setting : kSpdkSettings)
    if (text.starts_with(setting)) return true;
  return false;
}

base::Expected<void> parse_spdk_settings(std::string_view text, SpdkParameters& spdk, size_t& depth) {
  size_t address_count = 0;
  for (bool more = true; more;) {
    const Split item = split_at(text, ",");
    more = item.found;
    text = item.after;
    const Split setting = split_at(item.before, "=");
    const auto number = [&](uint64_t least, uint64_t most, auto& to) -> base::Expected<void> {
      auto count = parse_count(setting.before, setting.after, least, most);
      if (!count) return std::unexpected(count.error());
      to = static_cast<std::remove_reference_t<decltype(to)>>(*count);
      return {};
    };
    base::Expected<void> parsed;
    if (!setting.found || !begins_with_spdk_setting(item.before)) {
      return failure(EINVAL, "storage: '", Shown(item.before), "' is not a setting of spdk; write ",
                     kSpdkExample);
    } else if (setting.before == "pci") {
      ++address_count;
      spdk.transport = SpdkTransport::kPcie;
      spdk.address = setting.after;
      if (!is_pci_address(setting.after))
        return failure(EINVAL, "storage: pci: '", Shown(setting.after), "' should be like 0000:01:00.0");
    } else if (setting.before == "tcp" || setting.before == "rdma") {
      ++address_count;
      spdk.transport = setting.before == "tcp" ? SpdkTransport::kTcp : SpdkTransport::kRdma;
      parsed = parse_host(setting.before, setting.after, spdk);
    } else if (setting.before == "nqn") {
      spdk.nqn = setting.after;
      if (!is_word(spdk.nqn, sizeof SpdkTarget::nqn - 1) || !spdk.nqn.starts_with("nqn."))
        return failure(EINVAL, "storage: nqn: '", Shown(spdk.nqn),
                       "' is not a name of a subsystem: nqn.YYYY-MM....");
    } else if (setting.before == "ns") {
      parsed = number(1, 0xffff'fffe, spdk.namespace_id);
    } else if (setting.before == "qd") {
      parsed = number(1, kMaxQueueDepth, depth);
    } else if (setting.before == "timeout") {
      parsed = number(1, 3600, spdk.timeout_seconds);
    } else {
      parsed = number(0, 1, spdk.bounces);
    }
    if (!parsed) return parsed;
  }
  if (address_count != 1)
    return failure(EINVAL, "storage: spdk: needs one of pci=, tcp= and rdma=; write ", kSpdkExample);
  if (spdk.nqn.empty() != (spdk.transport == SpdkTransport::kPcie))
    return failure(EINVAL, "storage: spdk: nqn= goes with tcp= and rdma=, and they need it; write ",
                   kSpdkExample);
  return {};
}

}  // namespace storage
