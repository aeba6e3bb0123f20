// The runtime's options: options.inc as a struct, and its parser.
//
// A value comes from the environment (SPILLWAY_<NAME>); `spillway run` turns its flags into those
// variables, so that a program started without it takes the same options.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/error.h"

namespace base {

inline constexpr size_t kOptionTextBytes = 512;

enum class OptionKind { kSize, kCount, kFlag, kText };

struct OptionText {
  char text[kOptionTextBytes];
  std::string_view view() const { return text; }
};

namespace option_types {
using size = uint64_t;
using count = uint64_t;
using flag = uint64_t;
using text = OptionText;
}  // namespace option_types

struct Options {
#define OPTION(name, kind, default_value, argument, doc) option_types::kind name = {default_value};
#include "base/options.inc"
#undef OPTION
};

struct OptionInfo {
  const char* name;  // the field, "min_alloc"; the flag is --min-alloc, the variable SPILLWAY_MIN_ALLOC
  OptionKind kind;
  const char* default_text;
  const char* argument;  // "SIZE"; empty for a flag
  const char* doc;
};
size_t option_count();
const OptionInfo& option_info(size_t i);

// Reads "12", "64K" or "4GiB": an integer with an optional K, M, G or T (powers of 1024, in either case), and an optional B or iB behind that. "1.5G" is
// refused. Errors: EINVAL, the message shows the text.
Expected<uint64_t> parse_size(std::string_view text);

// Sets the option called `name` (field name) from text. Errors: EINVAL, message names option and value.
Expected<void> set_option(Options& options, std::string_view name, std::string_view value);

// Checks the rules that a value's own parser cannot know: the budget (kMinMemoryBytes up to what the machine has), the page size, names such as the policy's,
// and how many pages and servers there may be. Errors: EINVAL, the message names option and value.
inline constexpr uint64_t kMinMemoryBytes = uint64_t{1} << 20;
inline constexpr uint64_t kMinPageBytes = uint64_t{4} << 10;
inline constexpr uint64_t kMaxPageBytes = uint64_t{2} << 20;
inline constexpr uint64_t kMaxReadAheadPages = 15;
inline constexpr uint64_t kMaxPrefetchPages = 256;
inline constexpr uint64_t kMaxMappedPages = 8192;  // the kernel's 65,530 mappings are about 32,000 such pages
inline constexpr uint64_t kMaxSatcPages = uint64_t{1} << 28;  // their sets are 6 GiB
inline constexpr uint64_t kMaxServers = 16;
Expected<void> check_options(const Options& options, uint64_t machine_memory_bytes);

// The budget if none is asked for and `free_bytes` of memory are free.
uint64_t default_memory_bytes(const Options& options, uint64_t free_bytes);

// The policies of policies.inc.
enum class PolicyKind : uint8_t {
#define POLICY(kind, name, class) kind,
#include "base/policies.inc"
};
const char* name_of(PolicyKind kind);
inline constexpr PolicyKind kPolicyKinds[] = {
#define POLICY(kind, name, class) PolicyKind::kind,
#include "base/policies.inc"
};
// The policy that is asked for; nullopt: one is chosen while the program runs. REQUIRES, as do the next two: check_options() has succeeded.
std::optional<PolicyKind> policy_kind(const Options& options);

// The most that the budget may be raised to. REQUIRES: options.memory > 0.
uint64_t most_memory_bytes(const Options& options, uint64_t machine_memory_bytes);

// How many servers to start on a machine with `cpu_count` processors.
uint64_t server_count(const Options& options, uint64_t cpu_count);

// The prefix of the options' variables.
inline constexpr std::string_view kVariablePrefix = "SPILLWAY_";

// Variables with this prefix that are not options: they belong to other parts of Spillway, and may be set where a spilled program runs.
struct OthersVariable {
  std::string_view name;   // without the prefix; a name that ends in "_" stands for all that begin with it
  std::string_view whose;  // the part that reads them, as the page of options puts it
};
std::span<const OthersVariable> others_variables();

// Reads every SPILLWAY_<NAME> of an environment block ("NAME=value" strings, null-terminated).
// An unknown SPILLWAY_ variable is an error (EINVAL), so that a misspelt one is noticed; variables of other parts are skipped.
Expected<void> read_options_from_environment(Options& options, const char* const* environment);

// Removes all SPILLWAY_ variables from an environment block. For programs that run with other rights than the user who started them: that user
// must not choose which files they write. The programs that they start do not see the variables either.
void forget_settings(char** environment);

}  // namespace base
