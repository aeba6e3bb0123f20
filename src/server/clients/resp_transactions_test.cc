// Transcripts of transactions, and of what other clients do meanwhile.
#include <atomic>
#include <thread>

#include "server/clients/test_resp_client.h"

namespace server {
namespace {

const std::string kQueued = "+QUEUED\r\n";
const std::string kAborted = "-EXECABORT Transaction discarded because of previous errors.\r\n";

class RespTransactionsTest : public RespClientTest {
 protected:
  // Sends the words, and returns all that is answered.
  static std::string hear_all(int descriptor, const std::string& words) {
    const std::string end = "$3\r\nend\r\n";
    say(descriptor, words + "ECHO end\r\n");
    std::string heard;
    while (!heard.ends_with(end)) {
      const std::string more = hear(descriptor, 1);
      if (more.empty()) return heard + "(and the end of the connection)";
      heard += more;
    }
    return heard.substr(0, heard.size() - end.size());
  }
};

TEST_F(RespTransactionsTest, RequestsAreQueuedAndCarriedOut) {
  EXPECT_EQ(
      ask("MULTI\r\nSET k 1\r\nINCR k\r\nGET k\r\nGET none\r\nEXEC\r\nGET k"),
      "+OK\r\n" + kQueued + kQueued + kQueued + kQueued + "*4\r\n+OK\r\n:2\r\n$1\r\n2\r\n$-1\r\n$1\r\n2\r\n");
  EXPECT_EQ(ask("MULTI\r\nEXEC"), "+OK\r\n*0\r\n");
  EXPECT_EQ(ask("MULTI\r\nMGET k none\r\nPING\r\nexec"),
            "+OK\r\n" + kQueued + kQueued + "*2\r\n*2\r\n$1\r\n2\r\n$-1\r\n+PONG\r\n");
}

TEST_F(RespTransactionsTest, AllOfManyKeysOrNoneIsSetWithinThemToo) {
  EXPECT_EQ(ask("MULTI\r\nMSETNX a 1 b 2\r\nMSETNX b 3 c 4\r\nEXEC\r\nMGET a b c"),
            "+OK\r\n" + kQueued + kQueued + "*2\r\n:1\r\n:0\r\n*3\r\n$1\r\n1\r\n$1\r\n2\r\n$-1\r\n");
}

TEST_F(RespTransactionsTest, NoneOfManyKeysIsSetIfOneIsRefused) {
  EXPECT_EQ(answer({"MSETNX", "a", "1", std::string(70'000, 'k'), "2"}),
            "-ERR a key of 70000 bytes; give at most 65535\r\n");
  settings.value_bytes_max = 1000;
  EXPECT_EQ(answer({"MSETNX", "a", "1", "b", std::string(1001, 'x')}),
            "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n");
  EXPECT_EQ(ask("EXISTS a b"), ":0\r\n");
}

// Of two clients that set the same keys, one succeeds.
TEST_F(RespTransactionsTest, AllOfManyKeysOrNoneIsSet) {
  talk_on<2>([&](const std::array<int, 2>& others) {
    std::string requests, answers[2];
    for (int i = 0; i < 200; ++i) {
      const std::string a = "a" + std::to_string(i), b = "b" + std::to_string(i);
      requests += "MSETNX " + a + " 1 " + b + " 1\r\nMSETNX " + b + " 1 " + a + " 1\r\n";
    }
    std::thread asks([&] { answers[1] = hear_all(others[1], requests); });
    answers[0] = hear_all(others[0], requests);
    asks.join();
    int set_count = 0;
    for (const std::string& answered : answers) {
      EXPECT_EQ(answered.size(), size_t{400} * 4);
      set_count += static_cast<int>(std::ranges::count(answered, '1'));
    }
    EXPECT_EQ(set_count, 200);
  });
}

TEST_F(RespTransactionsTest, NothingIsDoneBeforeExec) {
  EXPECT_EQ(ask("MULTI\r\nSET k v\r\nDEL other"), "+OK\r\n" + kQueued + kQueued) << "its client has gone";
  EXPECT_EQ(ask("GET k"), "$-1\r\n");
  EXPECT_EQ(ask("MULTI\r\nSET k v\r\nDISCARD\r\nGET k"), "+OK\r\n" + kQueued + "+OK\r\n$-1\r\n");
  EXPECT_EQ(ask("MULTI\r\nSET k v\r\nRESET\r\nGET k\r\nEXEC"),
            "+OK\r\n" + kQueued + "+RESET\r\n$-1\r\n-ERR EXEC without MULTI\r\n");
  EXPECT_EQ(ask("MULTI\r\nSET k v\r\nQUIT\r\nEXEC"), "+OK\r\n" + kQueued + "+OK\r\n");
  EXPECT_EQ(ask("GET k"), "$-1\r\n");
  talk_on<2>([&](const std::array<int, 2>& others) {
    exchange(others[0], "CLIENT ID\r\nMULTI\r\nSET k v\r\n", ":7\r\n+OK\r\n" + kQueued);
    exchange(others[1], "CLIENT KILL ID 7\r\n", ":1\r\n");
    EXPECT_EQ(hear(others[0]), "");
    exchange(others[1], "GET k\r\n", "$-1\r\n");
  });
}

TEST_F(RespTransactionsTest, WhatIsOutOfPlaceIsRefused) {
  EXPECT_EQ(ask("EXEC\r\nDISCARD\r\nUNWATCH\r\nWATCH"),
            "-ERR EXEC without MULTI\r\n-ERR DISCARD without MULTI\r\n+OK\r\n"
            "-ERR wrong number of arguments for 'watch' command\r\n");
  EXPECT_EQ(ask("MULTI\r\nMULTI\r\nWATCH k\r\nSET k v\r\nEXEC"),
            "+OK\r\n-ERR MULTI calls can not be nested\r\n-ERR WATCH inside MULTI is not allowed\r\n" +
                kQueued + "*1\r\n+OK\r\n")
      << "these do not spoil the transaction";
}

TEST_F(RespTransactionsTest, ARequestThatCannotBeQueuedSpoilsIt) {
  const std::string wrong[][2] = {
      {"NOPE", "-ERR unknown command 'NOPE', with args beginning with: \r\n"},
      {"GET", "-ERR wrong number of arguments for 'get' command\r\n"},
      {"CONFIG NOPE", "-ERR unknown subcommand 'NOPE'. Try CONFIG HELP.\r\n"},
      {"DISCARD x", "-ERR wrong number of arguments for 'discard' command\r\n"},
      {"MULTI x", "-ERR wrong number of arguments for 'multi' command\r\n"},
      {"WATCH", "-ERR wrong number of arguments for 'watch' command\r\n"},
      {"UNWATCH k", "-ERR wrong number of arguments for 'unwatch' command\r\n"},
      {"SAVE", "-ERR Command not allowed inside a transaction\r\n"},
      {"SHUTDOWN", "-ERR Command not allowed inside a transaction\r\n"},
  };
  for (const auto& [words, refusal] : wrong)
    EXPECT_EQ(ask("MULTI\r\nSET k v\r\n" + words + "\r\nSET k w\r\nEXEC\r\nEXEC\r\nGET k"),
              "+OK\r\n" + kQueued + refusal + kQueued + kAborted + "-ERR EXEC without MULTI\r\n$-1\r\n")
        << words;
  EXPECT_EQ(ask("NOPE\r\nMULTI\r\nEXEC"),
            "-ERR unknown command 'NOPE', with args beginning with: \r\n+OK\r\n*0\r\n")
      << "one before MULTI does not";
}

TEST_F(RespTransactionsTest, AnExecThatIsRefusedEndsIt) {
  const std::string refusal =
      "-EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command\r\n";
  EXPECT_EQ(ask("MULTI\r\nSET k v\r\nEXEC x\r\nGET k\r\nEXEC"),
            "+OK\r\n" + kQueued + refusal + "$-1\r\n-ERR EXEC without MULTI\r\n");
  EXPECT_EQ(ask("SET k 1\r\nWATCH k\r\nSET k 2\r\nexec x\r\nMULTI\r\nEXEC"),
            "+OK\r\n+OK\r\n+OK\r\n" + refusal + "+OK\r\n*0\r\n")
      << "nothing is watched any more, either";
}

TEST_F(RespTransactionsTest, AValueThatIsTooLongSpoilsIt) {
  settings.value_bytes_max = 100'000;
  EXPECT_EQ(answer(request({"MULTI"}) + request({"SET", "a", std::string(100'001, 'x')}) +
                   request({"SET", "b", "1"}) + request({"EXEC"}) + request({"GET", "b"})),
            "+OK\r\n-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n" + kQueued + kAborted +
                "$-1\r\n");
}

TEST_F(RespTransactionsTest, ARequestThatFailsStopsNoOther) {
  EXPECT_EQ(ask("MULTI\r\nSET k a\r\nINCR k\r\nSET k b EX x\r\nAPPEND k b\r\nEXEC\r\nGET k"),
            "+OK\r\n" + kQueued + kQueued + kQueued + kQueued +
                "*4\r\n+OK\r\n-ERR value is not an integer or out of range\r\n"
                "-ERR value is not an integer or out of range\r\n:2\r\n$2\r\nab\r\n");
}

TEST_F(RespTransactionsTest, RequestsMayComeInPiecesAndBeLarge) {
  const std::string large(100'000, 'x'), other(9000, 'y');
  const std::string requests = request({"MULTI"}) + request({"SET", "a", large}) +
                               request({"MSET", "b", other, "c", "1"}) + request({"GET", "a"}) +
                               request({"STRLEN", "b"}) + request({"GETRANGE", "a", "99998", "-1"}) +
                               request({"EXEC"}) + request({"GET", "c"});
  const std::string expected = "+OK\r\n" + kQueued + kQueued + kQueued + kQueued + kQueued +
                               "*5\r\n+OK\r\n+OK\r\n" + bulk(large) + ":9000\r\n" + bulk("xx") + bulk("1");
  EXPECT_TRUE(answer(requests) == expected);
  EXPECT_TRUE(answer(requests, 333) == expected);
  EXPECT_TRUE(answer(requests, 4099) == expected);
}

// Requests of one kind are executed together, but in their order.
TEST_F(RespTransactionsTest, ManyGetsAndSets) {
  std::string requests = request({"MULTI"}), queued = "+OK\r\n", answers = "*400\r\n";
  const auto is_set = [](int i) { return i < 200 || i % 3 == 0; };
  for (int i = 0; i < 400; ++i) {
    const std::string key = "key" + std::to_string(i % 150);
    requests += is_set(i) ? request({"SET", key, "value" + std::to_string(i)}) : request({"GET", key});
    queued += kQueued;
    int set_last = i;  // the request that has set the key last
    while (set_last % 150 != i % 150 || !is_set(set_last)) --set_last;
    answers += is_set(i) ? "+OK\r\n" : bulk("value" + std::to_string(set_last));
  }
  EXPECT_EQ(answer(requests + request({"EXEC"})), queued + answers);
}

TEST_F(RespTransactionsTest, WhatListsKeysSeesWhatIsBeforeIt) {
  EXPECT_EQ(
      ask("MULTI\r\nSET a 1\r\nKEYS *\r\nDBSIZE\r\nSCAN 0\r\nRANDOMKEY\r\nFLUSHALL\r\nDBSIZE\r\nEXEC"),
      "+OK\r\n" + kQueued + kQueued + kQueued + kQueued + kQueued + kQueued + kQueued +
          "*7\r\n+OK\r\n*1\r\n$1\r\na\r\n:1\r\n*2\r\n$1\r\n0\r\n*1\r\n$1\r\na\r\n$1\r\na\r\n+OK\r\n:0\r\n");
}

TEST_F(RespTransactionsTest, TheLaterProtocol) {
  EXPECT_TRUE(ask("HELLO 3\r\nWATCH k\r\nMULTI\r\nGET none\r\nCONFIG GET databases\r\nEXEC")
                  .ends_with("+OK\r\n+OK\r\n" + kQueued + kQueued +
                             "*2\r\n_\r\n%1\r\n$9\r\ndatabases\r\n$1\r\n1\r\n"));
  EXPECT_TRUE(ask("HELLO 3\r\nWATCH k\r\nSET k v\r\nMULTI\r\nEXEC").ends_with("+OK\r\n+OK\r\n+OK\r\n_\r\n"));
}

TEST_F(RespTransactionsTest, RepliesMayBeLeftOut) {
  EXPECT_EQ(
      ask("CLIENT REPLY OFF\r\nMULTI\r\nSET k v\r\nGET k\r\nINCR n\r\nEXEC\r\nCLIENT REPLY ON\r\nMGET k n"),
      "+OK\r\n*2\r\n$1\r\nv\r\n$1\r\n1\r\n");
}

TEST_F(RespTransactionsTest, PasswordsComeFirst) {
  settings.accounts = Accounts::of_password("secret");
  EXPECT_EQ(ask("MULTI\r\nEXEC\r\nAUTH secret\r\nMULTI\r\nGET k\r\nAUTH wrong\r\nEXEC"),
            "-NOAUTH Authentication required.\r\n"
            "-EXECABORT Transaction discarded because of: NOAUTH Authentication required.\r\n+OK\r\n+OK\r\n" +
                kQueued + kQueued +
                "*2\r\n$-1\r\n-WRONGPASS invalid username-password pair or user is disabled.\r\n");
}

TEST_F(RespTransactionsTest, AWatchedKeyThatHasChangedStopsIt) {
  struct Case {
    std::string changes;  // made between WATCH and MULTI, where k is there, and none is not
    bool is_done = false;
    bool is_by_any = true;  // by its own client or another one; false: by its own only
  };
  const Case cases[] = {
      {"", true},
      {"GET k\r\nGET none\r\nTTL k\r\nDEL none\r\n", true},
      {"SET other v\r\nDEL other\r\n", true},
      {"SET k w\r\n"},
      {"SET k v\r\n"},  // as it was
      {"DEL k\r\n"},
      {"DEL k\r\nSET k v\r\n"},
      {"EXPIRE k 100\r\n"},
      {"EXPIRE k 100\r\nPERSIST k\r\n"},
      {"APPEND k v\r\n"},
      {"MSET other 1 k 2\r\n"},
      {"SET none v\r\n"},
      {"INCR none\r\n"},
      {"FLUSHALL\r\n"},
      {"SET none v\r\nDEL none\r\n", true},  // unlike Redis
      {"SET k w\r\nWATCH k\r\n", false, false},
      {"SET k w\r\nUNWATCH\r\n", true, false},
      {"SET k w\r\nMULTI\r\nDISCARD\r\n", true, false},
      {"SET k w\r\nRESET\r\n", true, false},
      {"SET k w\r\nMULTI\r\nEXEC\r\n", true, false},  // that EXEC was stopped
      {"SET k w\r\nEXEC\r\n", false, false},          // that EXEC had no MULTI
  };
  for (const Case& each : cases)
    for (const size_t who : {0, 1}) {
      if (who == 1 && !each.is_by_any) continue;
      SCOPED_TRACE(each.changes);
      talk_on<2>([&](const std::array<int, 2>& others) {
        exchange(others[0], "FLUSHALL\r\nSET k v\r\nWATCH k none\r\n", "+OK\r\n+OK\r\n+OK\r\n");
        hear_all(others[who], each.changes);
        exchange(others[0], "MULTI\r\nSET seen 1\r\nEXEC\r\nGET seen\r\n",
                 "+OK\r\n" + kQueued + (each.is_done ? "*1\r\n+OK\r\n$1\r\n1\r\n" : "*-1\r\n$-1\r\n"));
        exchange(others[0], "MULTI\r\nEXEC\r\n", "+OK\r\n*0\r\n");  // nothing is watched any more
      });
    }
}

TEST_F(RespTransactionsTest, AWatchedKeyThatHasExpiredStopsIt) {
  talk([&](int other) {
    exchange(other, "SET k v PX 1000\r\nWATCH k\r\n", "+OK\r\n+OK\r\n");
    clock.move(999);
    exchange(other, "MULTI\r\nEXEC\r\nWATCH k\r\n", "+OK\r\n*0\r\n+OK\r\n");
    clock.move(1);
    exchange(other, "MULTI\r\nEXEC\r\nWATCH k\r\n", "+OK\r\n*-1\r\n+OK\r\n");
    clock.move(1000);
    exchange(other, "MULTI\r\nEXEC\r\n", "+OK\r\n*0\r\n");
  });
}

// A client may watch a key before each change, make none, and go on like that for as long as the connection
// lasts.
TEST_F(RespTransactionsTest, AKeyThatIsWatchedAgainIsOne) {
  const std::string key(60'000, 'k');
  std::string watches, expected;
  for (int i = 0; i < 1200; ++i) {  // more than 64 MiB of keys
    watches += request({"WATCH", key});
    expected += "+OK\r\n";
  }
  EXPECT_EQ(answer(watches), expected);
}

TEST_F(RespTransactionsTest, ToWatchAKeyIsNoGet) {
  const std::string heard =
      ask("SET k v\r\nWATCH k none\r\nMULTI\r\nEXEC\r\nMSETNX none 1 k 2\r\nINFO stats");
  EXPECT_TRUE(heard.contains("\r\nkeyspace_hits:0\r\nkeyspace_misses:0\r\n")) << heard;
}

TEST_F(RespTransactionsTest, ItsClientIsListedAsInOne) {
  talk_on<2>([&](const std::array<int, 2>& others) {
    const auto list_first = [&] { return hear_all(others[1], "CLIENT LIST ID 1\r\n"); };
    exchange(others[0], "PING\r\n", "+PONG\r\n");
    EXPECT_NE(list_first().find(" flags=N db=0 sub=0 psub=0 ssub=0 multi=-1 "), std::string::npos);
    exchange(others[0], "MULTI\r\n", "+OK\r\n");
    EXPECT_NE(list_first().find(" flags=x db=0 sub=0 psub=0 ssub=0 multi=0 "), std::string::npos);
    exchange(others[0], "GET k\r\nGET k\r\n", kQueued + kQueued);
    EXPECT_NE(list_first().find(" flags=x db=0 sub=0 psub=0 ssub=0 multi=2 "), std::string::npos);
    exchange(others[0], "EXEC\r\n", "*2\r\n$-1\r\n$-1\r\n");
    EXPECT_NE(list_first().find(" flags=N db=0 sub=0 psub=0 ssub=0 multi=-1 "), std::string::npos);
  });
}

TEST_F(RespTransactionsTest, ItsRequestsAreBounded) {
  std::string requests = request({"MULTI"}) + request({"SET", "k", "v"}), expected = "+OK\r\n" + kQueued;
  const std::string large = request({"SET", "large", std::string(1 << 20, 'x')});
  for (int i = 0; i < 66; ++i) {
    requests += large;
    expected += i == 63 ? "-ERR the transaction is too large\r\n" : kQueued;
  }
  EXPECT_EQ(answer(requests + request({"EXEC"}) + request({"GET", "k"})), expected + kAborted + "$-1\r\n");
}

TEST_F(RespTransactionsTest, ItsAnswersAreBounded) {
  set("large", std::string(1 << 20, 'x'));
  std::string requests = request({"MULTI"}), queued = "+OK\r\n";
  for (int i = 0; i < 65; ++i) {
    requests += i % 2 == 0 ? request({"GET", "large"}) : request({"GETRANGE", "large", "0", "-1"});
    queued += kQueued;
  }
  requests += request({"SET", "k", "v"}) + request({"EXEC"}) + request({"GET", "k"});
  EXPECT_EQ(answer(requests),
            queued + kQueued +
                "-ERR the answers of the transaction, which was carried out, have more than "
                "67108864 bytes\r\n$1\r\nv\r\n");
}

TEST_F(RespTransactionsTest, WhoTakesNoAnswersHoldsNobodyUp) {
  const std::string large(1 << 20, 'x');
  set("large", large);
  talk_on<2>([&](const std::array<int, 2>& others) {
    std::string requests = request({"MULTI"}), expected = "+OK\r\n";
    for (int i = 0; i < 40; ++i) requests += request({"GET", "large"}), expected += kQueued;
    requests += request({"SET", "done", "1"}) + request({"EXEC"});
    expected += kQueued + "*41\r\n";
    for (int i = 0; i < 40; ++i) expected += bulk(large);
    say(others[0], requests);
    while (hear_all(others[1], "GET done\r\n") != "$1\r\n1\r\n") {
    }
    EXPECT_EQ(hear_all(others[1], "MULTI\r\nINCR done\r\nEXEC\r\n"), "+OK\r\n" + kQueued + "*1\r\n:2\r\n");
    EXPECT_TRUE(hear(others[0], expected.size() + 5) == expected + "+OK\r\n");
  });
}

TEST_F(RespTransactionsTest, OthersSeeAllOfItOrNothing) {
  constexpr int kTransactions = 20, kPairs = 100;
  set("a", "0");
  set("b", "0");
  talk_on<2>([&](const std::array<int, 2>& others) {
    std::atomic<bool> is_over{false};
    int torn = 0;
    std::thread looks_on([&] {
      do {
        const std::string both = hear_all(others[1], "MGET a b\r\n");  // *2 $1 5 $1 5
        const std::string values = both.substr(std::min<size_t>(both.size(), 4));
        torn += values.substr(0, values.size() / 2) != values.substr(values.size() / 2);
      } while (!is_over);
    });
    std::string transaction = "MULTI\r\n";
    for (int i = 0; i < kPairs; ++i) transaction += "INCR a\r\nINCR b\r\n";
    for (int i = 0; i < kTransactions; ++i)
      EXPECT_TRUE(hear_all(others[0], transaction + "EXEC\r\n").contains("*200\r\n:"));
    is_over = true;
    looks_on.join();
    EXPECT_EQ(torn, 0);
    exchange(others[1], "MGET a b\r\n", "*2\r\n$4\r\n2000\r\n$4\r\n2000\r\n");
  });
}

}  // namespace
}  // namespace server
