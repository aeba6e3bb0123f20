// The persistence runtime's options: options.inc as a struct, and what their texts mean. A value comes from the environment
// (SPILLWAY_PERSIST_<NAME>); `spillway persist run` turns its flags into those.
#pragma once
#include <cstddef>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "persist/domain.h"
#include "persist/runtime.h"

namespace persist {

struct Options {
#define PERSIST_OPTION(name, default_value, argument, doc) std::string_view name = default_value;
#include "persist/own/options.inc"
#undef PERSIST_OPTION
};

struct OptionInfo {
  const char* name;
  const char* default_text;
  const char* argument;
  const char* doc;
};
inline constexpr OptionInfo kOptions[] = {
#define PERSIST_OPTION(name, default_value, argument, doc) {#name, default_value, argument, doc},
#include "persist/own/options.inc"
#undef PERSIST_OPTION
};
inline constexpr std::string_view kVariablePrefix = "SPILLWAY_PERSIST_";

// Sets in `options` the variables SPILLWAY_PERSIST_<NAME> of an environment block ("NAME=value" strings, null-terminated). Values stay in the block; a
// null block, as after clearenv(), has none. Errors: EINVAL: there is no such option.
base::Expected<Options> read_environment(const char* const* environment, Options options = {});

// What the options say. Errors, which name option and value: EINVAL; ENOTSUP: an instruction that the CPU does not have.
struct Plan {
  Settings settings;
  std::optional<DomainKind> found;  // what mappings become that a flush finds; none: they are left alone
  std::string_view stats, record;
  bool counts_dirtiness = false;
  bool compares = true;  // with `record`
};
base::Expected<Plan> plan(const Options& options);

// The way of that name. Errors: EINVAL.
base::Expected<Way> parse_way(std::string_view name);

}  // namespace persist
