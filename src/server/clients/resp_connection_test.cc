// Transcripts of the commands about connections.
#include "server/clients/test_resp_client.h"

namespace server {
namespace {

using RespConnectionTest = RespClientTest;

TEST_F(RespConnectionTest, PingEchoSelect) {
  EXPECT_EQ(ask("PING\r\nPING a\r\nPING a b\r\nECHO b"),
            "+PONG\r\n$1\r\na\r\n-ERR wrong number of arguments for 'ping' command\r\n$1\r\nb\r\n");
  EXPECT_EQ(ask("SELECT 0\r\nSELECT 1\r\nSELECT a"),
            "+OK\r\n-ERR DB index is out of range\r\n-ERR value is not an integer or out of range\r\n");
}

TEST_F(RespConnectionTest, HelloTellsOfTheServer) {
  EXPECT_EQ(ask("HELLO"),
            "*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n:2\r\n"
            "$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n"
            "$7\r\nmodules\r\n*0\r\n");
  EXPECT_EQ(ask("HELLO 3 SETNAME me\r\nCLIENT GETNAME\r\nHELLO 4\r\nHELLO 2 WHAT"),
            "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n:3\r\n"
            "$2\r\nid\r\n:2\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n"
            "$7\r\nmodules\r\n*0\r\n$2\r\nme\r\n-NOPROTO unsupported protocol version\r\n"
            "-ERR Syntax error in HELLO option 'WHAT'\r\n");
}

TEST_F(RespConnectionTest, HelloMayAuthenticate) {
  settings.accounts = Accounts::of_password("secret");
  EXPECT_TRUE(ask("HELLO 3").starts_with("-NOAUTH HELLO must be called"));
  EXPECT_TRUE(ask("HELLO 3 AUTH default wrong").starts_with("-WRONGPASS "));
  const std::string got = ask("HELLO 3 AUTH default secret\r\nGET k");
  EXPECT_TRUE(got.starts_with("%7\r\n")) << got;
  EXPECT_TRUE(got.ends_with("_\r\n")) << got;
}

TEST_F(RespConnectionTest, Names) {
  EXPECT_EQ(ask("CLIENT GETNAME\r\nCLIENT SETNAME me\r\nCLIENT GETNAME\r\nRESET\r\nCLIENT GETNAME"),
            "$-1\r\n+OK\r\n$2\r\nme\r\n+RESET\r\n$-1\r\n");
  EXPECT_EQ(answer({"CLIENT", "SETNAME", "a b"}),
            "-ERR Client names cannot contain spaces, newlines or special characters.\r\n");
  EXPECT_EQ(ask("CLIENT ID\r\nCLIENT NO-EVICT ON\r\nCLIENT NO-EVICT A"),
            ":3\r\n+OK\r\n-ERR syntax error\r\n");
  EXPECT_EQ(ask("CLIENT SETINFO LIB-NAME lib\r\nCLIENT SETINFO LIB-VER 1.0\r\nCLIENT SETINFO A b"),
            "+OK\r\n+OK\r\n-ERR Unrecognized option 'A'\r\n");
}

TEST_F(RespConnectionTest, ResetTakesAllBack) {
  const std::string got = ask("HELLO 3\r\nRESET\r\nGET k");
  EXPECT_TRUE(got.ends_with("+RESET\r\n$-1\r\n")) << got;
}

TEST_F(RespConnectionTest, RepliesMayBeLeftOut) {
  EXPECT_EQ(ask("CLIENT REPLY OFF\r\nSET k v\r\nGET k\r\nNOPE\r\nCLIENT REPLY ON\r\nGET k"),
            "+OK\r\n$1\r\nv\r\n");
  EXPECT_EQ(ask("CLIENT REPLY SKIP\r\nGET k\r\nGET k\r\nCLIENT REPLY WHAT"),
            "$1\r\nv\r\n-ERR syntax error\r\n");
  EXPECT_EQ(ask("CLIENT REPLY OFF\r\nCLIENT REPLY SKIP\r\nPING\r\nPING\r\nCLIENT REPLY ON"), "+OK\r\n");
}

TEST_F(RespConnectionTest, AValueThatIsNotSentIsNotRead) {
  set("k", std::string(1'000'000, 'v'));
  const uint64_t before = store->counts().use.got_bytes;
  EXPECT_EQ(ask("CLIENT REPLY OFF\r\nGET k\r\nGETRANGE k 0 -1\r\nCLIENT REPLY ON"), "+OK\r\n");
  EXPECT_LT(store->counts().use.got_bytes - before, 1'000'000u) << "its first piece has to be, twice";
}

TEST_F(RespConnectionTest, ConnectionsAreListed) {
  const std::string line =
      "id=1 addr=127.0.0.1:4711 laddr=127.0.0.1:6379 name=me age=0 idle=0 flags=N db=0 sub=0 psub=0 ssub=0 "
      "multi=-1 cmd=client|info user=default lib-name=lib lib-ver=\n";
  talk([&](int other) {
    exchange(other, "CLIENT SETNAME me\r\nCLIENT SETINFO LIB-NAME lib\r\n", "+OK\r\n+OK\r\n");
    say(other, "CLIENT INFO\r\nCLIENT LIST\r\nCLIENT LIST TYPE pubsub\r\nCLIENT LIST ID 1\r\nQUIT\r\n");
    const std::string got = hear(other);
    EXPECT_TRUE(got.find(line) != std::string::npos) << got;
    EXPECT_TRUE(got.find("\n\r\n$0\r\n\r\n$") != std::string::npos) << got;
    EXPECT_TRUE(got.find("cmd=client|list") != std::string::npos) << got;
  });
  const std::string got = ask("HELLO 3\r\nCLIENT INFO");
  EXPECT_TRUE(got.find("\r\ntxt:id=2 addr=") != std::string::npos) << got;
}

TEST_F(RespConnectionTest, ConnectionsAreKilled) {
  EXPECT_EQ(
      ask("CLIENT KILL 1.2.3.4:5\r\nCLIENT KILL ID 77\r\nCLIENT KILL ID 1\r\nCLIENT KILL USER me\r\nPING"),
      "-ERR No such client\r\n:0\r\n:0\r\n-ERR No such user 'me'\r\n+PONG\r\n");
  EXPECT_EQ(ask("CLIENT KILL TYPE normal SKIPME no\r\nPING"), ":1\r\n");
  EXPECT_EQ(ask("CLIENT KILL 127.0.0.1:4711\r\nPING"), "+OK\r\n");
}

TEST_F(RespConnectionTest, WhoIsKilledHearsNothingMore) {
  talk_on<3>([](const std::array<int, 3>& others) {
    for (const int other : others) exchange(other, "PING\r\n", "+PONG\r\n");
    exchange(others[0], "CLIENT KILL ID 2\r\n", ":1\r\n");
    EXPECT_EQ(hear(others[1]), "");
    exchange(others[2], "PING\r\n", "+PONG\r\n");
    exchange(others[0], "CLIENT KILL TYPE normal\r\n", ":1\r\n");
    EXPECT_EQ(hear(others[2]), "");
    exchange(others[0], "CLIENT KILL ID 2\r\nPING\r\n", ":0\r\n+PONG\r\n");
  });
}

TEST_F(RespConnectionTest, WhoIsNoUserAnyMoreMayBeKilledByName) {
  settings.accounts = *Accounts::parse("alice:one\nsecret\n");
  talk_on<2>([&](const std::array<int, 2>& others) {
    exchange(others[0], "AUTH alice one\r\n", "+OK\r\n");
    exchange(others[1], "AUTH secret\r\n", "+OK\r\n");
    hub->change_accounts(Accounts::of_password("secret"));
    exchange(others[1], "CLIENT KILL USER alice\r\n", ":1\r\n");
    EXPECT_EQ(hear(others[0]), "");
    exchange(others[1], "CLIENT KILL USER alice\r\n", "-ERR No such user 'alice'\r\n");
  });
}

// The command never has to wait.
TEST_F(RespConnectionTest, WhoAsksForManyKeysIsKilledInTheMiddleOfThem) {
  std::string many = "*300001\r\n$6\r\nEXISTS\r\n";
  for (int i = 0; i < 300'000; ++i) many += bulk("key" + std::to_string(i));
  const auto list_first = [](int other) {
    say(other, "CLIENT LIST ID 1\r\n");
    std::string head;
    while (!head.ends_with("\r\n")) head += hear(other, 1);
    return hear(other, std::stoul(head.substr(1)) + 2);
  };
  talk_on<2>([&](const std::array<int, 2>& others) {
    for (const int other : others) exchange(other, "PING\r\n", "+PONG\r\n");
    say(others[0], many);
    while (!list_first(others[1]).contains(" cmd=exists ")) {
    }
    exchange(others[1], "CLIENT KILL ID 1\r\n", ":1\r\n");
    EXPECT_EQ(hear(others[0]), "");
  });
}

TEST_F(RespConnectionTest, OthersAreListed) {
  talk_on<2>([&](const std::array<int, 2>& others) {
    exchange(others[0], "PING\r\n", "+PONG\r\n");
    clock.move(3000);
    say(others[0], "CLIENT LIST\r\nQUIT\r\n");
    const std::string got = hear(others[0]);
    const size_t first = got.find("id=1 addr="), second = got.find("\nid=2 addr=");
    EXPECT_LT(first, second) << got;
    EXPECT_LT(second, got.size()) << got;
    EXPECT_NE(got.find("age=3 idle=0 "), std::string::npos) << got;
    EXPECT_NE(got.find("age=3 idle=3 "), std::string::npos) << got;
  });
}

TEST_F(RespConnectionTest, ThoseThatAreAskedForAreListed) {
  talk_on<3>([&](const std::array<int, 3>& others) {
    for (const int other : others) exchange(other, "PING\r\n", "+PONG\r\n");
    say(others[0], "CLIENT LIST ID 9 3 1 3 -1\r\nQUIT\r\n");
    const std::string got = hear(others[0]);
    EXPECT_NE(got.find("id=1 addr="), std::string::npos) << got;
    EXPECT_EQ(got.find("id=2 addr="), std::string::npos) << got;
    EXPECT_NE(got.find("id=3 addr="), std::string::npos) << got;
    EXPECT_EQ(std::ranges::count(got, '\n'), 5) << "one line for each\n" << got;
  });
}

TEST_F(RespConnectionTest, HelpIsGiven) {
  EXPECT_TRUE(ask("CLIENT HELP").starts_with("*23\r\n+CLIENT <subcommand>"));
}

}  // namespace
}  // namespace server
