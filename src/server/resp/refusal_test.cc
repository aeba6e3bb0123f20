#include "server/resp/refusal.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace server::resp {
namespace {

std::string written(const Refusal& refusal, const std::vector<std::string_view>& arguments = {"x"}) {
  std::array<char, kMaxErrorBytes> buffer;
  ReplyWriter reply(buffer, Protocol::kResp2);
  write_refusal(reply, refusal, arguments);
  EXPECT_FALSE(reply.is_full());
  return std::string(reply.view());
}

TEST(Refusal, Texts) {
  EXPECT_EQ(written({Problem::kSyntax}), "-ERR syntax error\r\n");
  EXPECT_EQ(written({Problem::kNotAnInteger}), "-ERR value is not an integer or out of range\r\n");
  EXPECT_EQ(written({Problem::kNotAFloat}), "-ERR value is not a valid float\r\n");
  EXPECT_EQ(written({Problem::kNoAuth}), "-NOAUTH Authentication required.\r\n");
  EXPECT_EQ(written({Problem::kWrongPassword}),
            "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
  EXPECT_EQ(written({Problem::kUnsupportedProtocol}), "-NOPROTO unsupported protocol version\r\n");
  EXPECT_EQ(written({Problem::kHttp}), "");
}

TEST(Refusal, TextsThatNameSomething) {
  EXPECT_EQ(written({Problem::kWrongArity, "config|get"}),
            "-ERR wrong number of arguments for 'config|get' command\r\n");
  EXPECT_EQ(written({Problem::kInvalidExpire, "set"}), "-ERR invalid expire time in 'set' command\r\n");
  EXPECT_EQ(written({Problem::kUnsupportedOption, "yx"}), "-ERR Unsupported option yx\r\n");
  EXPECT_EQ(written({Problem::kHelloOption, "a%b"}), "-ERR Syntax error in HELLO option 'a%b'\r\n");
  EXPECT_EQ(written({Problem::kHelloOption, "a\r\nb"}), "-ERR Syntax error in HELLO option 'a  b'\r\n");
  EXPECT_EQ(written({Problem::kHelloOption, std::string_view("a\0b", 3)}),
            "-ERR Syntax error in HELLO option 'a'\r\n");
  EXPECT_EQ(written({Problem::kHelloOption, std::string(200, 'a')}),
            "-ERR Syntax error in HELLO option '" + std::string(128, 'a') + "'\r\n");
}

TEST(Refusal, UnknownCommands) {
  const Refusal unknown = {Problem::kUnknownCommand};
  EXPECT_EQ(written(unknown, {"foo"}), "-ERR unknown command 'foo', with args beginning with: \r\n");
  EXPECT_EQ(written(unknown, {"Foo", "a", "b c"}),
            "-ERR unknown command 'Foo', with args beginning with: 'a' 'b c' \r\n");
  EXPECT_EQ(written(unknown, {"", "\r\n"}), "-ERR unknown command '', with args beginning with: '  ' \r\n");
  const std::string a(200, 'a'), b(100, 'b');
  EXPECT_EQ(written(unknown, {a, a, "c"}), "-ERR unknown command '" + a.substr(0, 128) +
                                               "', with args beginning with: '" + a.substr(0, 128) +
                                               "' \r\n");
  EXPECT_EQ(written(unknown, {"x", b, a, "c"}),
            "-ERR unknown command 'x', with args beginning with: '" + b + "' '" + a.substr(0, 25) + "' \r\n");
  const std::vector<std::string_view> many(1000, "");
  EXPECT_EQ(written(unknown, many).size(), written(unknown, {""}).size() + 43 * 3);
}

TEST(Refusal, UnknownSubcommands) {
  const Refusal unknown = {Problem::kUnknownSubcommand};
  EXPECT_EQ(written(unknown, {"config", "foo", "bar"}),
            "-ERR unknown subcommand 'foo'. Try CONFIG HELP.\r\n");
  EXPECT_EQ(written(unknown, {"Client", std::string(300, 'x')}),
            "-ERR unknown subcommand '" + std::string(128, 'x') + "'. Try CLIENT HELP.\r\n");
}

// Whatever is refused, the reply is one line that fits.
TEST(Refusal, AllFit) {
  const std::string longest(1000, '%');
  const std::vector<std::string_view> arguments = {longest, longest, longest};
  constexpr Problem kAll[] = {
#define PROBLEM(id, text) Problem::id,
#include "server/resp/problems.inc"
#undef PROBLEM
  };
  for (const Problem problem : kAll) {
    const std::string text = written({problem, longest}, arguments);
    if (problem == Problem::kHttp) continue;
    EXPECT_TRUE(text.starts_with("-") && text.ends_with("\r\n")) << text;
    EXPECT_EQ(text.find_first_of("\r\n"), text.size() - 2) << text;
    EXPECT_LT(text.size(), kMaxErrorBytes) << "cut off: " << text;
    const std::string code = text.substr(1, text.find(' ') - 1);
    EXPECT_TRUE(code == "ERR" || code == "NOAUTH" || code == "NOPERM" || code == "WRONGPASS" ||
                code == "NOPROTO" || code == "EXECABORT")
        << text;
  }
}

}  // namespace
}  // namespace server::resp
