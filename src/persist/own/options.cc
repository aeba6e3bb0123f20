#include "persist/own/options.h"

#include <tuple>

namespace persist {
namespace {

// Does the environment's name spell the option's in upper case?
bool spells(std::string_view upper, std::string_view name) {
  if (upper.size() != name.size()) return false;
  for (size_t i = 0; i < name.size(); ++i)
    if (upper[i] != (name[i] == '_' ? '_' : static_cast<char>(name[i] - 'a' + 'A'))) return false;
  return true;
}

std::optional<uint32_t> parse_count(std::string_view text, uint32_t most) {
  if (text.empty()) return std::nullopt;
  uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = 10 * value + static_cast<uint64_t>(c - '0');
    if (value > most) return std::nullopt;
  }
  return static_cast<uint32_t>(value);
}

base::Expected<sys::LineFlush> parse_instruction(std::string_view name) {
  if (name == "best") return sys::best_line_flush();
  for (const sys::LineFlush instruction : sys::kLineFlushes) {
    if (name != sys::name_of(instruction)) continue;
    if (sys::has_line_flush(instruction)) return instruction;
    return base::failure(ENOTSUP, "instruction: this CPU has no ", name, "; give best");
  }
  return base::failure(EINVAL, "instruction: '", name, "' is none; give best, clwb, clflushopt or clflush");
}

base::Expected<Flushers::Settings> parse_flushers(std::string_view text) {
  Flushers::Settings settings;
  // Nobody has said what `most` is, which means more than a number would (flushers.h, 5).
  if (text == "auto") return settings;
  const size_t dash = text.find('-');
  const auto most = parse_count(dash == text.npos ? text : text.substr(dash + 1), Flushers::kMaxFlushers);
  const auto least = dash == text.npos ? most : parse_count(text.substr(0, dash), Flushers::kMaxFlushers);
  if (!least || !most || *least == 0 || *least > *most)
    return base::failure(EINVAL, "flushers: '", text, "' is not a number from 1 to ", Flushers::kMaxFlushers,
                         ", nor two of them with a dash; give auto");
  settings.least = *least;
  settings.most = *most;
  // A fixed number needs no measurements.
  if (*least == *most) settings.period_ns = 0;
  return settings;
}

}  // namespace

base::Expected<Options> read_environment(const char* const* environment, Options options) {
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    std::string_view variable = *environment;
    if (!variable.starts_with(kVariablePrefix)) continue;
    variable.remove_prefix(kVariablePrefix.size());
    const size_t equals = variable.find('=');
    if (equals == variable.npos) continue;
    const std::string_view name = variable.substr(0, equals);
    bool is_known = false;
#define PERSIST_OPTION(field, default_value, argument, doc) \
  if (spells(name, #field)) {                               \
    options.field = variable.substr(equals + 1);            \
    is_known = true;                                        \
  }
#include "persist/own/options.inc"
#undef PERSIST_OPTION
    if (!is_known)
      return base::failure(EINVAL, kVariablePrefix, name,
                           ": there is no such option; see spillway persist run --help");
  }
  return options;
}

base::Expected<Way> parse_way(std::string_view name) {
  for (const Way way : kWays)
    if (name == name_of(way)) return way;
  return base::failure(EINVAL, "policy: '", name,
                       "' is none; give auto, inline, epoch, decoupled or proactive");
}

base::Expected<Plan> plan(const Options& options) {
  Plan plan;
  const auto way = parse_way(options.policy);
  if (!way) return std::unexpected(way.error());
  plan.settings.way = *way;
  const auto instruction = parse_instruction(options.instruction);
  if (!instruction) return std::unexpected(instruction.error());
  plan.settings.instruction = *instruction;
  const auto flushers = parse_flushers(options.flushers);
  if (!flushers) return std::unexpected(flushers.error());
  plan.settings.flushers = *flushers;
  const auto sample = parse_count(options.sample, 1'000'000'000);
  if (!sample || *sample == 0)
    return base::failure(EINVAL, "sample: '", options.sample, "' is not a number from 1 on");
  plan.settings.sample_stores = *sample;
  for (const DomainKind kind : {DomainKind::kMemory, DomainKind::kFlushOnFail, DomainKind::kFile})
    if (options.domain == name_of(kind)) plan.found = kind;
  if (!plan.found && options.domain != "none")
    return base::failure(EINVAL, "domain: '", options.domain,
                         "' is none; give memory, flush_on_fail, file or none");
  for (const auto& [name, value, flag] : {std::tuple("dirtiness", options.dirtiness, &plan.counts_dirtiness),
                                          std::tuple("compare", options.compare, &plan.compares),
                                          std::tuple("group", options.group, &plan.settings.shares_syncs)}) {
    if (value != "0" && value != "1") return base::failure(EINVAL, name, ": '", value, "' is not 0 or 1");
    *flag = value == "1";
  }
  if (plan.counts_dirtiness && !options.record.empty())
    return base::failure(EINVAL, "dirtiness and record do not go together; leave one of them out");
  if (options.stats.size() > 1000)
    return base::failure(EINVAL, "stats: a path of ", options.stats.size(),
                         " bytes is too long; at most 1000");
  plan.stats = options.stats;
  plan.settings.counts_all = !options.stats.empty();
  plan.record = options.record;
  return plan;
}

}  // namespace persist
