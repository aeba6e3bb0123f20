#include "server/resp/command_info.h"

#include <bit>
#include <utility>

#include "base/text.h"
#include "server/resp/words.h"

namespace server::resp {
namespace {

struct NamedBit {
  unsigned bit;
  std::string_view name;
};

constexpr NamedBit kFlagNames[] = {
    {kWrite, "write"},
    {kReadOnly, "readonly"},
    {kDenyOom, "denyoom"},
    {kAdmin, "admin"},
    {kNoScript, "noscript"},
    {kLoading, "loading"},
    {kStale, "stale"},
    {kSkipSlowlog, "skip_slowlog"},
    {kFast, "fast"},
    {kNoAuth, "no_auth"},
    {kNoAsyncLoading, "no_async_loading"},
    {kNoMulti, "no_multi"},
    {kAllowBusy, "allow_busy"},
};

// Categories that follow from flags: bits beside those of CommandCategory.
constexpr unsigned kCategoryRead = 1 << 16;
constexpr unsigned kCategoryWrite = 1 << 17;
constexpr unsigned kCategoryFast = 1 << 18;
constexpr unsigned kCategorySlow = 1 << 19;

constexpr NamedBit kCategoryNames[] = {
    {kKeyspace, "@keyspace"},       {kCategoryRead, "@read"},   {kCategoryWrite, "@write"},
    {kString, "@string"},           {kCategoryAdmin, "@admin"}, {kCategoryFast, "@fast"},
    {kCategorySlow, "@slow"},       {kDangerous, "@dangerous"}, {kConnection, "@connection"},
    {kTransaction, "@transaction"},
};

unsigned all_categories(const Command& command) {
  unsigned categories = command.categories;
  if (command.is(kWrite)) categories |= kCategoryWrite;
  if (command.is(kReadOnly)) categories |= kCategoryRead;
  if (command.is(kAdmin)) categories |= kCategoryAdmin | kDangerous;
  return categories | (command.is(kFast) ? kCategoryFast : kCategorySlow);
}

void write_bits(ReplyWriter& reply, unsigned bits, std::span<const NamedBit> names) {
  reply.set(static_cast<unsigned>(std::popcount(bits)));
  for (const NamedBit& named : names)
    if ((bits & named.bit) != 0) reply.simple(named.name);
}

std::string_view name_of(CommandGroup group) {
  switch (group) {
    case kOfConnections: return "connection";
    case kOfStrings: return "string";
    case kOfKeys: return "generic";
    case kOfTransactions: return "transactions";
    case kOfTheServer: return "server";
  }
  std::unreachable();
}

}  // namespace

void write_command_info(ReplyWriter& reply, const Command& command) {
  reply.array(10);
  reply.bulk(command.name);
  reply.integer(command.arity);
  write_bits(reply, command.flags, kFlagNames);
  reply.integer(command.first_key);
  reply.integer(command.last_key);
  reply.integer(command.key_step);
  write_bits(reply, all_categories(command), kCategoryNames);
  reply.array(0);
  reply.array(0);
  const std::span<const Command> subcommands = subcommands_of(command);
  reply.array(subcommands.size());
  for (const Command& subcommand : subcommands) write_command_info(reply, subcommand);
}

void write_command_docs(ReplyWriter& reply, const Command& command) {
  const std::span<const Command> subcommands = subcommands_of(command);
  reply.bulk(command.name);
  reply.map(subcommands.empty() ? 2 : 3);
  reply.bulk("summary");
  reply.bulk(command.summary);
  reply.bulk("group");
  reply.bulk(name_of(command.group));
  if (subcommands.empty()) return;
  reply.bulk("subcommands");
  reply.map(subcommands.size());
  for (const Command& subcommand : subcommands) write_command_docs(reply, subcommand);
}

void write_help(ReplyWriter& reply, const Command& container) {
  base::Text<kMaxErrorBytes> line;
  const std::span<const Command> subcommands = subcommands_of(container);
  reply.array(1 + 2 * subcommands.size());
  for (const char c : container.name) line << to_upper(c);
  line << " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:";
  reply.simple(line.view());
  for (const Command& subcommand : subcommands) {
    base::Text<kMaxErrorBytes> name, summary;
    for (const char c : subcommand.name.substr(container.name.size() + 1)) name << to_upper(c);
    summary << "    " << subcommand.summary << '.';
    reply.simple(name.view());
    reply.simple(summary.view());
  }
}

}  // namespace server::resp
