#include "server/resp/command.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/resp/words.h"

namespace server::resp {
namespace {

using Words = std::vector<std::string_view>;

// The name of the command that the request is for.
std::string_view found(const Words& request) {
  const auto command = find_command(request);
  EXPECT_TRUE(command.has_value()) << request[0];
  return command ? (*command)->name : "";
}

Refusal refused(const Words& request) {
  const auto command = find_command(request);
  EXPECT_FALSE(command.has_value()) << request[0];
  return command ? Refusal{Problem::kSyntax} : command.error();
}

TEST(Command, TheTableIsInOrder) {
  std::set<std::string_view> names;
  const Command* container = nullptr;
  size_t i = 0;
  for (const Command& command : all_commands()) {
    EXPECT_EQ(std::to_underlying(command.id), i++);
    EXPECT_EQ(&command_of(command.id), &command);
    EXPECT_TRUE(names.insert(command.name).second) << command.name;
    EXPECT_TRUE(is_word(command.name, command.name)) << "not in lower case";
    EXPECT_NE(command.arity, 0) << command.name;
    EXPECT_FALSE(command.is(kWrite) && command.is(kReadOnly)) << command.name;
    EXPECT_FALSE(command.summary.empty() || command.summary.ends_with('.')) << command.name;
    if (!command.is_subcommand()) {
      container = &command;
      continue;
    }
    ASSERT_NE(container, nullptr);
    EXPECT_TRUE(command.name.starts_with(std::string(container->name) + "|")) << command.name;
    EXPECT_GE(std::abs(command.arity), 2) << command.name;
    EXPECT_EQ(command.group, container->group) << command.name;
  }
  EXPECT_GT(names.size(), 80u);
}

TEST(Command, AllAreFoundInEitherCase) {
  for (const Command& command : all_commands()) {
    std::string upper, mixed;
    for (const char c : command.name) {
      upper += to_upper(c);
      mixed += upper.size() % 2 == 0 ? to_upper(c) : c;
    }
    EXPECT_EQ(find_by_name(command.name), &command);
    EXPECT_EQ(find_by_name(upper), &command);
    EXPECT_EQ(find_by_name(mixed), &command);
    EXPECT_EQ(find_by_name(upper + "x"), nullptr);
  }
}

TEST(Command, WhatIsNoName) {
  for (const char* name :
       {"", "x", "ge", "gets", "get ", " get", "lolwut", "eval", "subscribe", "multis", "config|", "|get",
        "config|foo", "get|get", "averyveryverylongname", "debug|sleep"})
    EXPECT_EQ(find_by_name(name), nullptr) << name;
  EXPECT_EQ(find_by_name(std::string_view("get\0", 4)), nullptr);
  EXPECT_EQ(find_by_name(std::string(100000, 'g')), nullptr);
}

TEST(Command, Subcommands) {
  EXPECT_EQ(found({"CONFIG", "GET", "maxmemory"}), "config|get");
  EXPECT_EQ(found({"client", "No-Evict", "on"}), "client|no-evict");
  EXPECT_EQ(found({"COMMAND"}), "command");
  EXPECT_EQ(found({"COMMAND", "docs"}), "command|docs");
  EXPECT_EQ(found({"object", "help"}), "object|help");
  EXPECT_EQ(subcommands_of(command_of(CommandId::kGet)).size(), 0u);
  EXPECT_EQ(subcommands_of(command_of(CommandId::kSet)).size(), 0u);
  EXPECT_EQ(subcommands_of(command_of(CommandId::kConfigGet)).size(), 0u);
  const auto subcommands = subcommands_of(command_of(CommandId::kConfig));
  ASSERT_EQ(subcommands.size(), 4u);
  EXPECT_EQ(subcommands.front().name, "config|get");
  EXPECT_EQ(subcommands.back().name, "config|set");
  EXPECT_EQ(subcommands_of(command_of(CommandId::kTime)).size(), 0u) << "the last row";
}

TEST(Command, Unknown) {
  EXPECT_EQ(refused({"foo"}), Refusal{Problem::kUnknownCommand});
  EXPECT_EQ(refused({""}), Refusal{Problem::kUnknownCommand});
  EXPECT_EQ(refused({"config|get", "x"}), Refusal{Problem::kUnknownCommand});
  EXPECT_EQ(refused({"config|get"}), Refusal{Problem::kUnknownCommand});
  EXPECT_EQ(refused({"config", "foo"}), Refusal{Problem::kUnknownSubcommand});
  EXPECT_EQ(refused({"config", ""}), Refusal{Problem::kUnknownSubcommand});
  EXPECT_EQ(refused({"command", "foo"}), Refusal{Problem::kUnknownSubcommand});
  EXPECT_EQ(refused({"client", std::string_view("id\0", 3)}), Refusal{Problem::kUnknownSubcommand});
}

TEST(Command, WhatBrowsersSend) {
  EXPECT_EQ(refused({"POST", "/", "HTTP/1.1"}), Refusal{Problem::kHttp});
  EXPECT_EQ(refused({"Host:", "127.0.0.1:6379"}), Refusal{Problem::kHttp});
  EXPECT_EQ(refused({"POST/"}), Refusal{Problem::kUnknownCommand});
}

TEST(Command, NumbersOfArguments) {
  EXPECT_EQ(refused({"GET"}), (Refusal{Problem::kWrongArity, "get"}));
  EXPECT_EQ(refused({"Get", "a", "b"}), (Refusal{Problem::kWrongArity, "get"}));
  EXPECT_EQ(refused({"SET", "k"}), (Refusal{Problem::kWrongArity, "set"}));
  EXPECT_EQ(refused({"config"}), (Refusal{Problem::kWrongArity, "config"}));
  EXPECT_EQ(refused({"config", "get"}), (Refusal{Problem::kWrongArity, "config|get"}));
  EXPECT_EQ(refused({"client", "id", "x"}), (Refusal{Problem::kWrongArity, "client|id"}));
  for (const Command& command : all_commands()) {
    const size_t least = static_cast<size_t>(std::abs(command.arity));
    EXPECT_TRUE(command.takes(least)) << command.name;
    EXPECT_FALSE(command.takes(least - 1)) << command.name;
    EXPECT_EQ(command.takes(least + 1), command.arity < 0) << command.name;
    EXPECT_EQ(command.takes(1 << 20), command.arity < 0) << command.name;
  }
}

std::vector<size_t> keys(CommandId id, size_t argument_count) {
  std::vector<size_t> places;
  const KeyRange range = key_range(command_of(id), argument_count);
  for (size_t i = range.first; i < range.end; i += range.step) places.push_back(i);
  return places;
}

TEST(Command, Keys) {
  using Places = std::vector<size_t>;
  EXPECT_EQ(keys(CommandId::kPing, 1), Places{});
  EXPECT_EQ(keys(CommandId::kGet, 2), Places{1});
  EXPECT_EQ(keys(CommandId::kSet, 9), Places{1});
  EXPECT_EQ(keys(CommandId::kDel, 4), (Places{1, 2, 3}));
  EXPECT_EQ(keys(CommandId::kMset, 5), (Places{1, 3}));
  EXPECT_EQ(keys(CommandId::kMemoryUsage, 5), Places{2});
  EXPECT_EQ(keys(CommandId::kWatch, 3), (Places{1, 2}));
  for (const Command& command : all_commands()) {
    const size_t count = static_cast<size_t>(std::abs(command.arity));
    const KeyRange range = key_range(command, count);
    EXPECT_LE(range.end, count) << command.name;
    EXPECT_EQ(range.first < range.end, command.first_key != 0) << command.name;
  }
}

TEST(Command, Values) {
  const auto values = [](CommandId id, size_t argument_count) {
    std::vector<size_t> places;
    for (size_t i = 0; i < argument_count; ++i)
      if (is_value(command_of(id), i)) places.push_back(i);
    return places;
  };
  using Places = std::vector<size_t>;
  EXPECT_EQ(values(CommandId::kSet, 6), Places{2});
  EXPECT_EQ(values(CommandId::kSetex, 4), Places{3});
  EXPECT_EQ(values(CommandId::kSetrange, 4), Places{3});
  EXPECT_EQ(values(CommandId::kMset, 5), (Places{2, 4}));
  EXPECT_EQ(values(CommandId::kGet, 2), Places{});
  for (const Command& command : all_commands())
    for (size_t i = 0; i < 8; ++i) {
      if (!is_value(command, i)) continue;
      EXPECT_TRUE(command.is(kWrite) && command.is(kDenyOom)) << command.name;
      const KeyRange range = key_range(command, command.arity < 0 ? 9 : static_cast<size_t>(command.arity));
      EXPECT_TRUE(i < range.first || i >= range.end || (i - range.first) % range.step != 0) << command.name;
    }
}

}  // namespace
}  // namespace server::resp
