// Transcripts of the commands about the server.
#include <sys/ioctl.h>

#include <chrono>

#include "server/clients/test_resp_client.h"

namespace server {
namespace {

using RespAdministrationTest = RespClientTest;

TEST_F(RespAdministrationTest, CommandsAreTold) {
  const std::string count = ask("COMMAND COUNT");
  EXPECT_EQ("*" + count.substr(1), ask("COMMAND").substr(0, count.size()));
  EXPECT_EQ(ask("COMMAND INFO get none"),
            "*2\r\n*10\r\n$3\r\nget\r\n:2\r\n*2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n*3\r\n+@read\r\n"
            "+@string\r\n+@fast\r\n*0\r\n*0\r\n*0\r\n$-1\r\n");
  EXPECT_TRUE(ask("COMMAND DOCS get none").starts_with("*2\r\n$3\r\nget\r\n*4\r\n$7\r\nsummary\r\n"));
  EXPECT_EQ("*" + std::to_string(2 * std::stoi(count.substr(1))) + "\r\n",
            ask("COMMAND DOCS").substr(0, count.size() + 1));
  EXPECT_EQ(ask("COMMAND GETKEYS MSET a 1 b 2\r\nCOMMAND GETKEYS PING a b\r\nCOMMAND GETKEYS NOPE a"),
            "*2\r\n$1\r\na\r\n$1\r\nb\r\n-ERR The command has no key arguments\r\n"
            "-ERR Invalid command specified\r\n");
}

TEST_F(RespAdministrationTest, SettingsAreTold) {
  settings.memory_bytes = 1000;
  settings.accounts = {};
  EXPECT_EQ(
      ask("CONFIG GET maxmemory\r\nCONFIG GET save appendonly none\r\nCONFIG GET requirepass"),
      "*2\r\n$9\r\nmaxmemory\r\n$4\r\n1000\r\n*4\r\n$10\r\nappendonly\r\n$3\r\nyes\r\n$4\r\nsave\r\n$0\r\n"
      "\r\n*0\r\n");
  EXPECT_EQ(ask("CONFIG GET MAX*-POLICY\r\nCONFIG GET timeout\r\nCONFIG GET databases"),
            "*2\r\n$16\r\nmaxmemory-policy\r\n$10\r\nnoeviction\r\n*2\r\n$7\r\ntimeout\r\n$1\r\n0\r\n"
            "*2\r\n$9\r\ndatabases\r\n$1\r\n1\r\n");
}

TEST_F(RespAdministrationTest, OthersAreAnsweredWhileLongPatternsAreComparedWithSettings) {
  const std::string pattern = "*[" + std::string(100'000, '#') + "]";
  std::string asked = "*22\r\n" + bulk("CONFIG") + bulk("GET");
  for (int i = 0; i < 20; ++i) asked += bulk(pattern);
  EXPECT_TRUE(answers_others_meanwhile(asked, std::chrono::milliseconds(20), "*0\r\n"));
}

// The socket has room for the whole answer, so the command never waits: others run only where it yields.
TEST_F(RespAdministrationTest, OthersAreAnsweredWhileAClientIsToldOfManyCommands) {
  constexpr int kNames = 25'000;
  std::string asked = "*" + std::to_string(2 + kNames) + "\r\n" + bulk("COMMAND") + bulk("INFO");
  std::string answered = "*" + std::to_string(kNames) + "\r\n";
  for (int i = 0; i < kNames; ++i) {
    asked += bulk("none");
    answered += "$-1\r\n";
  }
  bool was_meanwhile = false;
  // On a busy machine the other client may ask too late.
  for (int round = 0; round < 100 && !was_meanwhile; ++round)
    talk_on<2>([&](const std::array<int, 2>& others) {
      say(others[0], asked);
      pollfd first = {.fd = others[0], .events = POLLIN, .revents = 0};
      EXPECT_EQ(::poll(&first, 1, 30'000), 1) << "the answer has begun";
      exchange(others[1], "PING\r\n", "+PONG\r\n");
      int bytes = 0;
      EXPECT_EQ(::ioctl(others[0], FIONREAD, &bytes), 0);
      was_meanwhile = static_cast<size_t>(bytes) < answered.size();
      EXPECT_TRUE(hear(others[0], answered.size()) == answered);
    });
  EXPECT_TRUE(was_meanwhile);
}

// memcached's -l says nothing of where Redis' clients are served, and Redis reads an empty value as all
// interfaces.
TEST_F(RespAdministrationTest, WhereOtherClientsAreServedIsNotTold) {
  settings.interface = "127.0.0.1";
  EXPECT_EQ(ask("CONFIG GET bind"), "*0\r\n");
}

TEST_F(RespAdministrationTest, SettingsAreNotChanged) {
  EXPECT_EQ(ask("CONFIG SET databases 1\r\nCONFIG SET databases 2\r\nCONFIG SET nope 1\r\nCONFIG SET a b c"),
            "+OK\r\n-ERR CONFIG SET failed (possibly related to argument 'databases') - can't set immutable "
            "config\r\n-ERR Unknown option or number of arguments for CONFIG SET - 'nope'\r\n"
            "-ERR syntax error\r\n");
}

TEST_F(RespAdministrationTest, CountersBeginAnew) {
  ask("GET k");
  EXPECT_NE(ask("INFO stats").find("keyspace_misses:1\r\n"), std::string::npos);
  EXPECT_EQ(ask("CONFIG RESETSTAT"), "+OK\r\n");
  EXPECT_NE(ask("INFO stats").find("keyspace_misses:0\r\n"), std::string::npos);
}

TEST_F(RespAdministrationTest, OthersAreAnsweredBetweenManyInfosThatComeInOnePiece) {
  std::string asked = "CLIENT REPLY OFF\r\n";
  for (int i = 0; i < 2500; ++i) asked += "INFO\n";
  asked += "CLIENT REPLY ON\r\n";
  ASSERT_LT(asked.size(), Stream::kInputBytes);
  EXPECT_TRUE(answers_others_meanwhile(asked, std::chrono::milliseconds(5), "+OK\r\n"));
}

TEST_F(RespAdministrationTest, InfoHasSections) {
  const std::string got = ask("INFO");
  for (const char* title :
       {"# Server\r\nredis_version:7.0.15\r\n", "\r\n\r\n# Clients\r\nconnected_clients:1\r\n", "# Memory",
        "# Persistence\r\nloading:0\r\n", "# Stats", "# Replication\r\nrole:master\r\n", "# CPU", "# Cluster",
        "# Keyspace\r\n"})
    EXPECT_NE(got.find(title), std::string::npos) << title << got;
  EXPECT_NE(got.find("\r\nrdb_last_bgsave_status:ok\r\n"), std::string::npos);
  EXPECT_EQ(ask("INFO cluster nope REPLICATION"),
            "$80\r\n# Replication\r\nrole:master\r\nconnected_slaves:0\r\n\r\n# "
            "Cluster\r\ncluster_enabled:0\r\n\r\n");
  EXPECT_EQ(ask("INFO nope"), "$0\r\n\r\n");
  set("k", "v");
  EXPECT_NE(ask("INFO keyspace").find("db0:keys=1,expires=0,avg_ttl=0\r\n"), std::string::npos);
}

TEST_F(RespAdministrationTest, AllIsFlushed) {
  for (const char* flush : {"FLUSHALL", "FLUSHDB", "FLUSHALL ASYNC", "FLUSHDB SYNC"}) {
    set("k", "v");
    EXPECT_EQ(ask(std::string(flush) + "\r\nGET k\r\nDBSIZE"), "+OK\r\n$-1\r\n:0\r\n") << flush;
  }
  EXPECT_EQ(ask("FLUSHALL NOW"), "-ERR syntax error\r\n");
}

TEST_F(RespAdministrationTest, NothingIsLeftToBeSaved) {
  EXPECT_EQ(ask("SAVE\r\nBGSAVE\r\nBGSAVE SCHEDULE\r\nBGSAVE a\r\nLASTSAVE"),
            "+OK\r\n+Background saving started\r\n+Background saving started\r\n-ERR syntax error\r\n:" +
                std::to_string(now_ms() / 1000) + "\r\n");
}

TEST_F(RespAdministrationTest, MemoryOfKeys) {
  set("k", "v");
  EXPECT_EQ(ask("MEMORY USAGE k\r\nMEMORY USAGE none\r\nMEMORY USAGE k SAMPLES a"),
            ":512\r\n$-1\r\n-ERR value is not an integer or out of range\r\n");
}

TEST_F(RespAdministrationTest, TheTimeIsTold) {
  const std::string seconds = std::to_string(now_ms() / 1000),
                    micros = std::to_string(now_ms() % 1000 * 1000);
  EXPECT_EQ(ask("TIME"), "*2\r\n" + bulk(seconds) + bulk(micros));
}

TEST_F(RespAdministrationTest, TheServerIsNotEndedUnlessClientsMay) {
  const std::string refusal = "-NOPERM clients may not end this server (--enable-shutdown)\r\n";
  EXPECT_EQ(ask("SHUTDOWN\r\nSHUTDOWN NOW NOSAVE\r\nSHUTDOWN ABORT\r\nSHUTDOWN AT ONCE\r\nPING"),
            refusal + refusal + refusal + "-ERR syntax error\r\n+PONG\r\n");
  EXPECT_EQ(hub->end_wanted(), Hub::End::kNo);
}

TEST_F(RespAdministrationTest, TheServerIsEnded) {
  settings.takes_shutdown = true;
  EXPECT_EQ(ask("SHUTDOWN ABORT\r\nSHUTDOWN SAVE NOSAVE"),
            "-ERR No shutdown in progress.\r\n-ERR syntax error\r\n");
  EXPECT_EQ(hub->end_wanted(), Hub::End::kNo);
  EXPECT_EQ(ask("SHUTDOWN NOSAVE\r\nPING"), "");
  EXPECT_EQ(hub->end_wanted(), Hub::End::kDrained);
  EXPECT_EQ(ask("SHUTDOWN NOW"), "");
  EXPECT_EQ(hub->end_wanted(), Hub::End::kAtOnce);
}

}  // namespace
}  // namespace server
