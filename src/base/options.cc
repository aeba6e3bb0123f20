#include "base/options.h"

#include <algorithm>
#include <bit>
#include <initializer_list>

#include "base/check.h"

namespace base {
namespace {

namespace kind_of {
constexpr OptionKind size = OptionKind::kSize;
constexpr OptionKind count = OptionKind::kCount;
constexpr OptionKind flag = OptionKind::kFlag;
constexpr OptionKind text = OptionKind::kText;
}  // namespace kind_of

constexpr OptionInfo kInfo[] = {
#define OPTION(name, kind, default_value, argument, doc) \
  {#name, kind_of::kind, #default_value, argument, doc},
#include "base/options.inc"
#undef OPTION
};

// The number that the digits spell. Error: there are none, too many, or other characters.
std::expected<uint64_t, int> parse_number(std::string_view digits) {
  if (digits.empty() || digits.size() > 19) return std::unexpected(EINVAL);
  uint64_t value = 0;
  for (char c : digits) {
    if (c < '0' || c > '9') return std::unexpected(EINVAL);
    value = value * 10 + static_cast<uint64_t>(c - '0');
  }
  return value;
}

Expected<void> set_value(uint64_t& field, const OptionInfo& info, std::string_view value) {
  if (info.kind == OptionKind::kSize) {
    auto size = parse_size(value);
    if (!size) return failure(EINVAL, info.name, ": ", size.error().message);
    field = *size;
    return {};
  }
  auto number = parse_number(value);
  if (!number || (info.kind == OptionKind::kFlag && *number > 1)) {
    return failure(EINVAL, info.name, ": '", value, "' is not ",
                   info.kind == OptionKind::kFlag ? "0 or 1" : "a whole number");
  }
  field = *number;
  return {};
}

Expected<void> set_value(OptionText& field, const OptionInfo& info, std::string_view value) {
  if (value.size() >= sizeof field.text)
    return failure(EINVAL, info.name, ": longer than ", sizeof field.text - 1, " bytes");
  for (size_t i = 0; i < value.size(); ++i) field.text[i] = value[i];
  field.text[value.size()] = 0;
  return {};
}

constexpr std::string_view kAutomatic = "auto";

std::optional<PolicyKind> find_policy(std::string_view name) {
  for (const PolicyKind kind : kPolicyKinds)
    if (name == name_of(kind)) return kind;
  return std::nullopt;
}

// Does the environment name (without the prefix) spell the field name in upper case?
bool spells(std::string_view upper, std::string_view name) {
  if (upper.size() != name.size()) return false;
  for (size_t i = 0; i < name.size(); ++i) {
    char c = name[i] >= 'a' && name[i] <= 'z' ? static_cast<char>(name[i] - 'a' + 'A') : name[i];
    if (upper[i] != c) return false;
  }
  return true;
}

// To add one: a line here, and `make docs`. tests/docs/check_variables.py says which are missing.
constexpr OthersVariable kOthersVariables[] = {
    {"COMPILER_", "spillcc, while a build runs what it has built"},
    {"PERSIST_", "the [persistence runtime](persist.md#options), which may be in the same process"},
    {"PASSWORD", "[`spillway serve`](server.md#options)"},
    {"SERVE", "its [unit of systemd](install.md#a-server)"},
    {"PREFIX", "the build of the [Python package](kv-api.md#python)"},
    {"TEST_", "Spillway's own tests"},
};

// Does the environment name (without the prefix) belong to another part of Spillway?
bool is_others(std::string_view upper) {
  return std::ranges::any_of(kOthersVariables, [&](const OthersVariable& others) {
    return others.name.ends_with('_') ? upper.starts_with(others.name) : upper == others.name;
  });
}

}  // namespace

size_t option_count() { return sizeof kInfo / sizeof kInfo[0]; }

const OptionInfo& option_info(size_t i) {
  CHECK_LT(i, option_count());
  return kInfo[i];
}

std::span<const OthersVariable> others_variables() { return kOthersVariables; }

Expected<uint64_t> parse_size(std::string_view text) {
  std::string_view digits = text;
  unsigned shift = 0;
  auto ends_with_letter = [&](char lower) { return !digits.empty() && (digits.back() | 0x20) == lower; };
  bool needs_unit = false;  // "iB" stands after a unit only
  if (ends_with_letter('b')) {
    digits.remove_suffix(1);
    needs_unit = ends_with_letter('i');
    if (needs_unit) digits.remove_suffix(1);
  }
  static constexpr char kUnits[] = {'k', 'm', 'g', 't'};
  for (unsigned i = 0; i < 4; ++i) {
    if (!ends_with_letter(kUnits[i])) continue;
    digits.remove_suffix(1);
    shift = 10 * (i + 1);
    break;
  }
  auto number = parse_number(digits);
  if (!number || (needs_unit && shift == 0) || (*number << shift) >> shift != *number)
    return failure(EINVAL, "'", text, "' is not a size; write a whole number with K, M, G or T, such as 4G");
  return *number << shift;
}

Expected<void> set_option(Options& options, std::string_view name, std::string_view value) {
  size_t i = 0;
#define OPTION(field, kind, default_value, argument, doc)               \
  if (name == #field) return set_value(options.field, kInfo[i], value); \
  ++i;
#include "base/options.inc"
#undef OPTION
  return failure(EINVAL, "no option is called '", name, "'; see spillway run --help");
}

Expected<void> check_options(const Options& options, uint64_t machine_memory_bytes) {
  // 0 asks for the default.
  if (options.memory != 0 && options.memory < kMinMemoryBytes) {
    return failure(EINVAL, "memory: ", Bytes{options.memory}, " is below the least budget; give at least ",
                   Bytes{kMinMemoryBytes});
  }
  if (options.memory > machine_memory_bytes) {
    return failure(EINVAL, "memory: ", Bytes{options.memory}, " is more than the machine's ",
                   machine_memory_bytes >> 20, "M; give less");
  }
  if (options.memory_most != 0 && options.memory_most < kMinMemoryBytes)
    return failure(EINVAL, "memory_most: ", Bytes{options.memory_most},
                   " is below the least budget; give at least ", Bytes{kMinMemoryBytes});
  if (options.memory_most != 0 && options.memory_most < options.memory)
    return failure(EINVAL, "memory_most: ", Bytes{options.memory_most}, " is less than memory, ",
                   Bytes{options.memory}, "; give more, or leave it out");
  if (options.memory_most > machine_memory_bytes)
    return failure(EINVAL, "memory_most: ", Bytes{options.memory_most}, " is more than the machine's ",
                   machine_memory_bytes >> 20, "M; give less");
  if (options.page < kMinPageBytes || options.page > kMaxPageBytes || !std::has_single_bit(options.page)) {
    return failure(EINVAL, "page: ", Bytes{options.page}, " is not a power of two from ",
                   Bytes{kMinPageBytes}, " to ", Bytes{kMaxPageBytes});
  }
  if (options.policy.view() != kAutomatic && !find_policy(options.policy.view())) {
    Text<128> names;
    names << kAutomatic;
    for (const PolicyKind kind : kPolicyKinds)
      names << (kind == kPolicyKinds[std::size(kPolicyKinds) - 1] ? " or " : ", ") << name_of(kind);
    return failure(EINVAL, "policy: '", options.policy.view(), "' is not known; give ", names.view());
  }
  const auto is_one_of = [](std::string_view name, const OptionText& value,
                            std::initializer_list<std::string_view> words,
                            const char* all) -> Expected<void> {
    for (const std::string_view word : words)
      if (value.view() == word) return {};
    return failure(EINVAL, name, ": '", value.view(), "' is not known; give ", all);
  };
  if (auto known = is_one_of("satc_levels", options.satc_levels, {"both", "private", "direct", "none"},
                             "both, private, direct or none");
      !known)
    return known;
  if (auto known =
          is_one_of("satc_policy", options.satc_policy, {"clock", "lru", "random"}, "clock, lru or random");
      !known)
    return known;
  if (auto known = is_one_of("log_format", options.log_format, {"text", "json"}, "text or json"); !known)
    return known;
  const auto most = [](std::string_view name, uint64_t value, uint64_t limit) -> Expected<void> {
    if (value > limit) return failure(EINVAL, name, ": ", value, " is too many; give at most ", limit);
    return {};
  };
  const std::string_view servers = options.servers.view();
  if (const auto number = parse_number(servers); servers != kAutomatic && (!number || *number > kMaxServers))
    return failure(EINVAL, "servers: '", servers, "' is not ", kAutomatic, " or a number up to ",
                   kMaxServers);
  if (auto fits = most("read_ahead", options.read_ahead, kMaxReadAheadPages); !fits) return fits;
  if (auto fits = most("prefetch", options.prefetch, kMaxPrefetchPages); !fits) return fits;
  if (auto fits = most("satc_private", options.satc_private, kMaxSatcPages); !fits) return fits;
  return most("mapped_pages", options.mapped_pages, kMaxMappedPages);
}

const char* name_of(PolicyKind kind) {
  static constexpr const char* kNames[] = {
#define POLICY(kind, name, class) name,
#include "base/policies.inc"
  };
  return kNames[static_cast<uint8_t>(kind)];
}

std::optional<PolicyKind> policy_kind(const Options& options) { return find_policy(options.policy.view()); }

uint64_t default_memory_bytes(const Options& options, uint64_t free_bytes) {
  return options.memory_most != 0 ? std::min(free_bytes / 2, options.memory_most) : free_bytes / 2;
}

uint64_t most_memory_bytes(const Options& options, uint64_t machine_memory_bytes) {
  constexpr uint64_t kTimes = 4;
  if (options.memory_most != 0) return std::max(options.memory_most, options.memory);
  return std::max(options.memory, std::min(kTimes * options.memory, machine_memory_bytes));
}

// Where processors are few, a server takes one from the threads that it serves (docs/benchmarks.md, `delegation`).
uint64_t server_count(const Options& options, uint64_t cpu_count) {
  constexpr uint64_t kFewCpus = 16, kCpusPerServer = 8;
  if (options.servers.view() != kAutomatic) return *parse_number(options.servers.view());
  if (cpu_count < kFewCpus) return 0;
  return cpu_count / kCpusPerServer < kMaxServers ? cpu_count / kCpusPerServer : kMaxServers;
}

Expected<void> read_options_from_environment(Options& options, const char* const* environment) {
  for (; *environment != nullptr; ++environment) {
    std::string_view entry = *environment;
    if (!entry.starts_with(kVariablePrefix)) continue;
    entry.remove_prefix(kVariablePrefix.size());
    size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    std::string_view upper = entry.substr(0, equals);
    if (is_others(upper)) continue;
    std::string_view value = entry.substr(equals + 1);
    size_t i = 0;
    while (i < option_count() && !spells(upper, kInfo[i].name)) ++i;
    if (i == option_count())
      return failure(EINVAL, "no option is called ", kVariablePrefix, upper, "; see spillway run --help");
    if (auto set = set_option(options, kInfo[i].name, value); !set) return set;
  }
  return {};
}

void forget_settings(char** environment) {
  char** to = environment;
  for (char** from = environment; *from != nullptr; ++from)
    if (!std::string_view(*from).starts_with(kVariablePrefix)) *to++ = *from;
  *to = nullptr;
}

}  // namespace base
