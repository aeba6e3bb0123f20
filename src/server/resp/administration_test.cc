#include "server/resp/administration.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace server::resp {
namespace {

using Words = std::vector<std::string_view>;

const Refusal kBadSyntax = {Problem::kSyntax};

TEST(Administration, Ping) {
  EXPECT_EQ(*parse_ping(Words{"PING"}), std::nullopt);
  EXPECT_EQ(*parse_ping(Words{"PING", ""}), "");
  EXPECT_EQ(*parse_ping(Words{"PING", "hello"}), "hello");
  EXPECT_EQ(parse_ping(Words{"PING", "a", "b"}).error(), (Refusal{Problem::kWrongArity, "ping"}));
}

TEST(Administration, Auth) {
  const auto password = parse_auth(Words{"AUTH", "secret"});
  EXPECT_EQ(password->user, "default");
  EXPECT_EQ(password->password, "secret");
  const auto both = parse_auth(Words{"AUTH", "me", "secret"});
  EXPECT_EQ(both->user, "me");
  EXPECT_EQ(both->password, "secret");
  EXPECT_EQ(parse_auth(Words{"AUTH", "a", "b", "c"}).error(), kBadSyntax);
}

Accepted<HelloRequest> hello(const Words& request) { return parse_hello(request); }

TEST(Administration, Hello) {
  const auto plain = hello({"HELLO"});
  EXPECT_FALSE(plain->protocol || plain->credentials || plain->name);
  EXPECT_EQ(hello({"HELLO", "2"})->protocol, Protocol::kResp2);
  const auto all = hello({"HELLO", "3", "auth", "me", "secret", "SETNAME", "here"});
  EXPECT_EQ(all->protocol, Protocol::kResp3);
  EXPECT_EQ(all->credentials->user, "me");
  EXPECT_EQ(all->credentials->password, "secret");
  EXPECT_EQ(all->name, "here");
  EXPECT_EQ(hello({"HELLO", "3", "SETNAME", ""})->name, "");
}

TEST(Administration, HelloRefused) {
  for (const char* version : {"1", "4", "0", "-2", "9223372036854775807"})
    EXPECT_EQ(hello({"HELLO", version}).error(), Refusal{Problem::kUnsupportedProtocol}) << version;
  for (const char* version : {"x", "", "3.0", "AUTH"})
    EXPECT_EQ(hello({"HELLO", version}).error(), Refusal{Problem::kProtocolNotAnInteger}) << version;
  EXPECT_EQ(hello({"HELLO", "3", "AUTH", "me"}).error(), (Refusal{Problem::kHelloOption, "AUTH"}));
  EXPECT_EQ(hello({"HELLO", "3", "SETNAME"}).error(), (Refusal{Problem::kHelloOption, "SETNAME"}));
  EXPECT_EQ(hello({"HELLO", "3", "foo"}).error(), (Refusal{Problem::kHelloOption, "foo"}));
  EXPECT_EQ(hello({"HELLO", "3", "SETNAME", "a b"}).error(), Refusal{Problem::kClientName});
}

TEST(Administration, Select) {
  EXPECT_EQ(parse_select(Words{"SELECT", "0"}, 1), 0u);
  EXPECT_EQ(parse_select(Words{"SELECT", "15"}, 16), 15u);
  for (const char* index : {"16", "-1", "2147483647", "-2147483648"})
    EXPECT_EQ(parse_select(Words{"SELECT", index}, 16).error(), Refusal{Problem::kDatabaseOutOfRange})
        << index;
  for (const char* index : {"2147483648", "-2147483649"})
    EXPECT_EQ(parse_select(Words{"SELECT", index}, 16).error(), Refusal{Problem::kNotAnInt}) << index;
  for (const char* index : {"", "x", "01", "9223372036854775808"})
    EXPECT_EQ(parse_select(Words{"SELECT", index}, 16).error(), Refusal{Problem::kNotAnInteger}) << index;
}

TEST(Administration, NamesOfClients) {
  EXPECT_EQ(parse_client_setname(Words{"CLIENT", "SETNAME", "a-b!~"}), "a-b!~");
  EXPECT_EQ(parse_client_setname(Words{"CLIENT", "SETNAME", ""}), "");
  for (const char* name : {"a b", "a\n", "\x7f", "\xc3\xa4", "\t"})
    EXPECT_EQ(parse_client_setname(Words{"CLIENT", "SETNAME", name}).error(), Refusal{Problem::kClientName});
  const auto name = parse_client_setinfo(Words{"CLIENT", "SETINFO", "LIB-NAME", "redis-py"});
  EXPECT_EQ(name->what, LibraryFact::What::kName);
  EXPECT_EQ(name->text, "redis-py");
  const auto version = parse_client_setinfo(Words{"CLIENT", "SETINFO", "lib-ver", "5.0"});
  EXPECT_EQ(version->what, LibraryFact::What::kVersion);
  EXPECT_EQ(parse_client_setinfo(Words{"CLIENT", "SETINFO", "lib", "x"}).error(),
            (Refusal{Problem::kUnrecognizedOption, "lib"}));
  EXPECT_EQ(parse_client_setinfo(Words{"CLIENT", "SETINFO", "lib-ver", "a b"}).error(),
            (Refusal{Problem::kLibraryFact, "lib-ver"}));
}

// A client may stay connected for long without asking for anything.
TEST(Administration, NamesAreBounded) {
  const std::string longest(kMaxNameBytes, 'a'), longer = longest + 'a';
  EXPECT_EQ(parse_client_setname(Words{"CLIENT", "SETNAME", longest}), longest);
  EXPECT_EQ(hello({"HELLO", "3", "SETNAME", longest})->name, longest);
  EXPECT_EQ(parse_client_setinfo(Words{"CLIENT", "SETINFO", "LIB-NAME", longest})->text, longest);
  const Refusal too_long = {Problem::kNameTooLong};
  EXPECT_EQ(parse_client_setname(Words{"CLIENT", "SETNAME", longer}).error(), too_long);
  EXPECT_EQ(hello({"HELLO", "3", "SETNAME", longer}).error(), too_long);
  for (const char* what : {"LIB-NAME", "LIB-VER"})
    EXPECT_EQ(parse_client_setinfo(Words{"CLIENT", "SETINFO", what, longer}).error(), too_long);
}

TEST(Administration, SwitchesOfClients) {
  EXPECT_EQ(parse_client_reply(Words{"CLIENT", "REPLY", "on"}), Replies::kOn);
  EXPECT_EQ(parse_client_reply(Words{"CLIENT", "REPLY", "OFF"}), Replies::kOff);
  EXPECT_EQ(parse_client_reply(Words{"CLIENT", "REPLY", "Skip"}), Replies::kSkipNext);
  EXPECT_EQ(parse_client_reply(Words{"CLIENT", "REPLY", "x"}).error(), kBadSyntax);
  EXPECT_EQ(parse_client_switch(Words{"CLIENT", "NO-EVICT", "on"}), true);
  EXPECT_EQ(parse_client_switch(Words{"CLIENT", "NO-TOUCH", "off"}), false);
  EXPECT_EQ(parse_client_switch(Words{"CLIENT", "NO-TOUCH", "skip"}).error(), kBadSyntax);
}

TEST(Administration, ListsOfClients) {
  const auto all = parse_client_list(Words{"CLIENT", "LIST"});
  EXPECT_FALSE(all->type || all->ids);
  EXPECT_EQ(parse_client_list(Words{"CLIENT", "LIST", "TYPE", "slave"})->type, ClientType::kReplica);
  EXPECT_EQ(parse_client_list(Words{"CLIENT", "LIST", "type", "pubsub"})->type, ClientType::kPubsub);
  const Words ids = {"CLIENT", "LIST", "ID", "1", "-5"};
  const auto some = parse_client_list(ids);
  ASSERT_TRUE(some->ids.has_value());
  ASSERT_EQ(some->ids->size(), 2u);
  EXPECT_EQ((*some->ids)[1], "-5");
  EXPECT_EQ(parse_client_list(Words{"CLIENT", "LIST", "ID", "1", "x"}).error(),
            Refusal{Problem::kNotAClientId});
  EXPECT_EQ(parse_client_list(Words{"CLIENT", "LIST", "TYPE", "x"}).error(),
            (Refusal{Problem::kUnknownClientType, "x"}));
  for (const Words& request :
       {Words{"CLIENT", "LIST", "ID"}, Words{"CLIENT", "LIST", "TYPE"}, Words{"CLIENT", "LIST", "x", "y"},
        Words{"CLIENT", "LIST", "TYPE", "normal", "ID"}})
    EXPECT_EQ(parse_client_list(request).error(), kBadSyntax) << request.back();
}

TEST(Administration, KillsOfClients) {
  const auto old_form = parse_client_kill(Words{"CLIENT", "KILL", "127.0.0.1:5"});
  EXPECT_TRUE(old_form->answers_ok);
  EXPECT_FALSE(old_form->skips_own);
  EXPECT_EQ(old_form->address, "127.0.0.1:5");
  const auto all = parse_client_kill(Words{"CLIENT", "KILL", "ID", "7", "TYPE", "normal", "ADDR", "a",
                                           "LADDR", "b", "USER", "me", "SKIPME", "no"});
  EXPECT_FALSE(all->answers_ok);
  EXPECT_FALSE(all->skips_own);
  EXPECT_EQ(all->id, 7);
  EXPECT_EQ(all->type, ClientType::kNormal);
  EXPECT_EQ(all->address, "a");
  EXPECT_EQ(all->own_address, "b");
  EXPECT_EQ(all->user, "me");
  EXPECT_TRUE(parse_client_kill(Words{"CLIENT", "KILL", "ID", "7"})->skips_own);
  EXPECT_TRUE(parse_client_kill(Words{"CLIENT", "KILL", "SKIPME", "yes"})->skips_own);
  for (const char* id : {"0", "-1", "x", ""})
    EXPECT_EQ(parse_client_kill(Words{"CLIENT", "KILL", "ID", id}).error(),
              Refusal{Problem::kClientIdTooSmall});
  EXPECT_EQ(parse_client_kill(Words{"CLIENT", "KILL", "TYPE", "x"}).error(),
            (Refusal{Problem::kUnknownClientType, "x"}));
  for (const Words& request : {Words{"CLIENT", "KILL", "SKIPME", "x"}, Words{"CLIENT", "KILL", "x", "y"},
                               Words{"CLIENT", "KILL", "ID", "7", "ADDR"}})
    EXPECT_EQ(parse_client_kill(request).error(), kBadSyntax) << request.back();
}

TEST(Administration, KeysOfOtherCommands) {
  const auto keys = [](const Words& request) { return parse_command_getkeys(request); };
  const auto mset = keys({"COMMAND", "GETKEYS", "MSET", "a", "1", "b", "2"});
  EXPECT_EQ(mset->first, 3u);
  EXPECT_EQ(mset->end, 7u);
  EXPECT_EQ(mset->step, 2u);
  EXPECT_EQ(keys({"COMMAND", "GETKEYS", "memory", "usage", "k"})->first, 4u);
  EXPECT_EQ(keys({"COMMAND", "GETKEYS", "foo", "k"}).error(), Refusal{Problem::kNoSuchCommand});
  EXPECT_EQ(keys({"COMMAND", "GETKEYS", "config", "foo"}).error(), Refusal{Problem::kNoSuchCommand});
  EXPECT_EQ(keys({"COMMAND", "GETKEYS", "post", "k"}).error(), Refusal{Problem::kNoSuchCommand});
  EXPECT_EQ(keys({"COMMAND", "GETKEYS", "PING", "x"}).error(), Refusal{Problem::kNoKeys});
  EXPECT_EQ(keys({"COMMAND", "GETKEYS", "ECHO", "x", "y"}).error(), Refusal{Problem::kNoKeys});
  EXPECT_EQ(keys({"COMMAND", "GETKEYS", "GET", "x", "y"}).error(), Refusal{Problem::kArityOfOther});
}

TEST(Administration, Settings) {
  const Words request = {"CONFIG", "SET", "maxmemory", "1gb", "timeout", "5"};
  const auto pairs = parse_config_set(request);
  ASSERT_EQ(pairs->size(), 4u);
  EXPECT_EQ((*pairs)[2], "timeout");
  EXPECT_EQ(parse_config_set(Words{"CONFIG", "SET", "a", "b", "c"}).error(), kBadSyntax);
}

TEST(Administration, FlushesAndSaves) {
  EXPECT_EQ(parse_flush(Words{"FLUSHALL"}), false);
  EXPECT_EQ(parse_flush(Words{"FLUSHALL", "SYNC"}), false);
  EXPECT_EQ(parse_flush(Words{"FLUSHDB", "async"}), true);
  EXPECT_EQ(parse_flush(Words{"FLUSHDB", "x"}).error(), kBadSyntax);
  EXPECT_EQ(parse_flush(Words{"FLUSHDB", "ASYNC", "SYNC"}).error(), kBadSyntax);
  EXPECT_EQ(parse_bgsave(Words{"BGSAVE"}), false);
  EXPECT_EQ(parse_bgsave(Words{"BGSAVE", "Schedule"}), true);
  EXPECT_EQ(parse_bgsave(Words{"BGSAVE", "x"}).error(), kBadSyntax);
  EXPECT_EQ(parse_bgsave(Words{"BGSAVE", "schedule", "x"}).error(), kBadSyntax);
}

TEST(Administration, Shutdown) {
  const auto plain = parse_shutdown(Words{"SHUTDOWN"});
  EXPECT_FALSE(plain->saves || plain->saves_nothing || plain->is_at_once || plain->is_forced ||
               plain->is_taken_back);
  const auto nosave = parse_shutdown(Words{"SHUTDOWN", "nosave", "NOW", "force"});
  EXPECT_TRUE(nosave->saves_nothing && nosave->is_at_once && nosave->is_forced);
  EXPECT_FALSE(nosave->saves);
  EXPECT_TRUE(parse_shutdown(Words{"SHUTDOWN", "SAVE"})->saves);
  EXPECT_TRUE(parse_shutdown(Words{"SHUTDOWN", "abort"})->is_taken_back);
  for (const Words& request : {Words{"SHUTDOWN", "SAVE", "NOSAVE"}, Words{"SHUTDOWN", "ABORT", "NOW"},
                               Words{"SHUTDOWN", "FORCE", "ABORT"}, Words{"SHUTDOWN", "x"}})
    EXPECT_EQ(parse_shutdown(request).error(), kBadSyntax) << request.back();
}

TEST(Administration, MemoryAndWait) {
  EXPECT_EQ(parse_memory_usage(Words{"MEMORY", "USAGE", "k"}), "k");
  EXPECT_EQ(parse_memory_usage(Words{"MEMORY", "USAGE", "k", "SAMPLES", "0"}), "k");
  EXPECT_EQ(parse_memory_usage(Words{"MEMORY", "USAGE", "k", "samples", "x"}).error(),
            Refusal{Problem::kNotAnInteger});
  for (const Words& request :
       {Words{"MEMORY", "USAGE", "k", "SAMPLES", "-1"}, Words{"MEMORY", "USAGE", "k", "SAMPLES"},
        Words{"MEMORY", "USAGE", "k", "x", "1"}})
    EXPECT_EQ(parse_memory_usage(request).error(), kBadSyntax) << request.back();
  const auto wait = parse_wait(Words{"WAIT", "-1", "100"});
  EXPECT_EQ(wait->replica_count, -1);
  EXPECT_EQ(wait->timeout_ms, 100);
  EXPECT_EQ(parse_wait(Words{"WAIT", "x", "y"}).error(), Refusal{Problem::kNotAnInteger});
  EXPECT_EQ(parse_wait(Words{"WAIT", "1", "1.5"}).error(), Refusal{Problem::kTimeoutNotAnInteger});
  EXPECT_EQ(parse_wait(Words{"WAIT", "1", "-1"}).error(), Refusal{Problem::kTimeoutNegative});
}

}  // namespace
}  // namespace server::resp
