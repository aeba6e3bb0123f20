// Commands: which ones are served, and which one a request is for. The table is commands.inc.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "server/resp/refusal.h"

namespace server::resp {

enum class CommandId : uint8_t {
#define COMMAND(id, ...) id,
#include "server/resp/commands.inc"
#undef COMMAND
};

// Flags of a command. Only some mean something here; COMMAND tells all of them as Redis does.
enum CommandFlag : uint16_t {
  kWrite = 1 << 0,     // may change data
  kReadOnly = 1 << 1,  // reads data and changes none
  kDenyOom = 1 << 2,   // may need memory or storage
  kAdmin = 1 << 3,
  kNoScript = 1 << 4,
  kLoading = 1 << 5,
  kStale = 1 << 6,
  kFast = 1 << 7,    // takes the same time however much data there is
  kNoAuth = 1 << 8,  // may be given before a password
  kNoAsyncLoading = 1 << 9,
  kNoMulti = 1 << 10,  // not within a transaction
  kAllowBusy = 1 << 11,
  kSkipSlowlog = 1 << 12,
};

// Categories of a command, as access lists name them.
enum CommandCategory : uint8_t {
  kKeyspace = 1 << 0,
  kString = 1 << 1,
  kConnection = 1 << 2,
  kDangerous = 1 << 3,
  kCategoryAdmin = 1 << 4,
  kTransaction = 1 << 5,
};

enum CommandGroup : uint8_t { kOfConnections, kOfStrings, kOfKeys, kOfTransactions, kOfTheServer };

struct Command {
  CommandId id;
  CommandGroup group;
  std::string_view name;  // in lower case; "config|get" of a subcommand
  int arity;
  unsigned flags;
  unsigned categories;
  int first_key;  // 0: no keys
  int last_key;   // negative: from the end, -1 is the last argument
  int key_step;
  std::string_view summary;

  bool is(CommandFlag flag) const { return (flags & flag) != 0; }
  bool takes(size_t argument_count) const {
    return arity >= 0 ? argument_count == static_cast<size_t>(arity)
                      : argument_count >= static_cast<size_t>(-arity);
  }
  bool is_subcommand() const { return name.contains('|'); }
};

// In the order of their ids; subcommands behind their container.
std::span<const Command> all_commands();
const Command& command_of(CommandId id);
// Empty: it is no container.
std::span<const Command> subcommands_of(const Command& command);

// Finds a command by its whole name, as "config|get", whatever the case of the letters. Null: there is none.
const Command* find_by_name(std::string_view name);
// The same for a subcommand: "config" and "get".
const Command* find_by_name(std::string_view container, std::string_view subcommand);

// The command that a request is for; that it takes so many arguments has been checked. Refused: kUnknownCommand,
// kUnknownSubcommand, kHttp, kWrongArity. REQUIRES: there is an argument.
Accepted<const Command*> find_command(Arguments arguments);

// Which arguments are keys: `first`, and every `step`, below `end`.
struct KeyRange {
  size_t first = 0;
  size_t end = 0;
  size_t step = 1;
};
// Empty: the command has no keys. REQUIRES: it takes so many arguments.
KeyRange key_range(const Command& command, size_t argument_count);

// Is argument `i` stored as a value, or as part of one?
bool is_value(const Command& command, size_t i);

}  // namespace server::resp
