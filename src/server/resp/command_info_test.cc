#include "server/resp/command_info.h"

#include <gtest/gtest.h>

#include <string>

namespace server::resp {
namespace {

template <class Write>
std::string written(Protocol protocol, Write write) {
  std::string buffer(8192, '!');
  ReplyWriter reply(buffer, protocol);
  write(reply);
  EXPECT_FALSE(reply.is_full());
  return std::string(reply.view());
}

TEST(CommandInfo, OfACommand) {
  const auto write = [](ReplyWriter& reply) { write_command_info(reply, command_of(CommandId::kGet)); };
  EXPECT_EQ(written(Protocol::kResp2, write),
            "*10\r\n$3\r\nget\r\n:2\r\n*2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n"
            "*3\r\n+@read\r\n+@string\r\n+@fast\r\n*0\r\n*0\r\n*0\r\n");
  EXPECT_EQ(written(Protocol::kResp3, write),
            "*10\r\n$3\r\nget\r\n:2\r\n~2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n"
            "~3\r\n+@read\r\n+@string\r\n+@fast\r\n*0\r\n*0\r\n*0\r\n");
}

TEST(CommandInfo, OfATransaction) {
  EXPECT_EQ(written(Protocol::kResp2,
                    [](ReplyWriter& reply) { write_command_info(reply, command_of(CommandId::kExec)); }),
            "*10\r\n$4\r\nexec\r\n:1\r\n*4\r\n+noscript\r\n+loading\r\n+stale\r\n+skip_slowlog\r\n"
            ":0\r\n:0\r\n:0\r\n*2\r\n+@slow\r\n+@transaction\r\n*0\r\n*0\r\n*0\r\n");
  EXPECT_EQ(written(Protocol::kResp2,
                    [](ReplyWriter& reply) { write_command_docs(reply, command_of(CommandId::kUnwatch)); }),
            "$7\r\nunwatch\r\n*4\r\n$7\r\nsummary\r\n$30\r\nForgets which keys are watched\r\n"
            "$5\r\ngroup\r\n$12\r\ntransactions\r\n");
}

TEST(CommandInfo, OfAContainer) {
  const std::string text = written(Protocol::kResp2, [](ReplyWriter& reply) {
    write_command_info(reply, command_of(CommandId::kConfig));
  });
  EXPECT_TRUE(text.starts_with(
      "*10\r\n$6\r\nconfig\r\n:-2\r\n*0\r\n:0\r\n:0\r\n:0\r\n*1\r\n+@slow\r\n*0\r\n*0\r\n"
      "*4\r\n*10\r\n$10\r\nconfig|get\r\n:-3\r\n*4\r\n+admin\r\n+noscript\r\n+loading\r\n+stale\r\n"
      ":0\r\n:0\r\n:0\r\n*3\r\n+@admin\r\n+@slow\r\n+@dangerous\r\n*0\r\n*0\r\n*0\r\n"
      "*10\r\n$11\r\nconfig|help\r\n"))
      << text;
}

// Each bit has a name, or the reply would have fewer elements than it says.
TEST(CommandInfo, AllFlagsAndCategoriesHaveNames) {
  for (const Command& command : all_commands()) {
    const std::string text =
        written(Protocol::kResp3, [&command](ReplyWriter& reply) { write_command_info(reply, command); });
    size_t at = 0;
    for (int set = 0; set < 2; ++set) {
      at = text.find('~', at);
      ASSERT_NE(at, std::string::npos) << command.name;
      size_t count = std::stoul(text.substr(at + 1));
      at = text.find('\n', at) + 1;
      for (; count > 0; --count) {
        EXPECT_EQ(text[at], '+') << command.name;
        at = text.find('\n', at) + 1;
      }
      EXPECT_NE(text[at], '+') << command.name;
    }
  }
}

TEST(CommandInfo, Docs) {
  const auto docs_of = [](CommandId id) {
    return [id](ReplyWriter& reply) { write_command_docs(reply, command_of(id)); };
  };
  EXPECT_EQ(
      written(Protocol::kResp2, docs_of(CommandId::kStrlen)),
      "$6\r\nstrlen\r\n*4\r\n$7\r\nsummary\r\n$19\r\nHow long a value is\r\n$5\r\ngroup\r\n$6\r\nstring\r\n");
  EXPECT_EQ(
      written(Protocol::kResp3, docs_of(CommandId::kMemory)),
      "$6\r\nmemory\r\n%3\r\n$7\r\nsummary\r\n$21\r\nCommands about memory\r\n$5\r\ngroup\r\n$6\r\nserver\r\n"
      "$11\r\nsubcommands\r\n%2\r\n"
      "$11\r\nmemory|help\r\n%2\r\n$7\r\nsummary\r\n$21\r\nLists the "
      "subcommands\r\n$5\r\ngroup\r\n$6\r\nserver\r\n"
      "$12\r\nmemory|usage\r\n%2\r\n$7\r\nsummary\r\n$26\r\nHow many bytes a key "
      "takes\r\n$5\r\ngroup\r\n$6\r\nserver\r\n");
}

TEST(CommandInfo, Help) {
  EXPECT_EQ(written(Protocol::kResp2,
                    [](ReplyWriter& reply) { write_help(reply, command_of(CommandId::kMemory)); }),
            "*5\r\n+MEMORY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\r\n"
            "+HELP\r\n+    Lists the subcommands.\r\n+USAGE\r\n+    How many bytes a key takes.\r\n");
}

TEST(CommandInfo, OneAfterAnotherInASmallBuffer) {
  std::string buffer(600, '!'), all;
  ReplyWriter reply(buffer, Protocol::kResp2);
  size_t count = 0;
  for (const Command& command : all_commands()) {
    if (command.is_subcommand() || !subcommands_of(command).empty()) continue;
    const size_t mark = reply.size();
    write_command_info(reply, command);
    if (reply.is_full()) {
      reply.rewind(mark);
      all += reply.view();
      reply.rewind(0);
      write_command_info(reply, command);
    }
    ASSERT_FALSE(reply.is_full()) << command.name;
    ++count;
  }
  all += reply.view();
  size_t seen = 0;
  for (size_t at = all.find("*10\r\n"); at != std::string::npos; at = all.find("*10\r\n", at + 1)) ++seen;
  EXPECT_EQ(seen, count);
}

}  // namespace
}  // namespace server::resp
