// Transcripts of the commands that read and change values.
#include "server/clients/test_resp_client.h"

namespace server {
namespace {

using RespStringsTest = RespClientTest;

TEST_F(RespStringsTest, Set) {
  EXPECT_EQ(ask("SET k v\r\nGET k"), "+OK\r\n$1\r\nv\r\n");
  EXPECT_EQ(ask("SET k w NX\r\nSET new w NX\r\nSET none w XX\r\nSET k w XX\r\nGET k"),
            "$-1\r\n+OK\r\n$-1\r\n+OK\r\n$1\r\nw\r\n");
  EXPECT_EQ(
      ask("SET k x GET\r\nSET fresh x GET\r\nSET k y NX GET\r\nSET other y NX GET\r\nGET k\r\nGET other"),
      "$1\r\nw\r\n$-1\r\n$1\r\nx\r\n$-1\r\n$1\r\nx\r\n$1\r\ny\r\n");
  EXPECT_EQ(ask("SET k v EX 10\r\nTTL k\r\nSET k w KEEPTTL\r\nTTL k\r\nSET k x\r\nTTL k"),
            "+OK\r\n:10\r\n+OK\r\n:10\r\n+OK\r\n:-1\r\n");
  EXPECT_EQ(ask("SET k v PXAT 1000\r\nGET k\r\nSET k v EX 0\r\nSET k v NX XX\r\nSET k v EX a"),
            "+OK\r\n$-1\r\n-ERR invalid expire time in 'set' command\r\n-ERR syntax error\r\n"
            "-ERR value is not an integer or out of range\r\n");
}

TEST_F(RespStringsTest, ValuesAndKeysMayHaveAnyBytes) {
  const std::string any("a\0\r\n\xff", 5), zero("\0", 1);
  EXPECT_EQ(answer(request({"SET", zero, any}) + request({"GET", zero}) + request({"SET", "", ""}) +
                   request({"GET", ""})),
            "+OK\r\n" + bulk(any) + "+OK\r\n$0\r\n\r\n");
}

TEST_F(RespStringsTest, OtherSets) {
  EXPECT_EQ(ask("SETNX k v\r\nSETNX k w\r\nGET k"), ":1\r\n:0\r\n$1\r\nv\r\n");
  EXPECT_EQ(ask("SETEX k 10 w\r\nTTL k\r\nPSETEX k 1500 x\r\nPTTL k\r\nSETEX k 0 w"),
            "+OK\r\n:10\r\n+OK\r\n:1500\r\n-ERR invalid expire time in 'setex' command\r\n");
  EXPECT_EQ(ask("GETSET k y\r\nGETSET none z\r\nGET k\r\nTTL k"), "$1\r\nx\r\n$-1\r\n$1\r\ny\r\n:-1\r\n");
}

TEST_F(RespStringsTest, ManyLargeValuesAreAnsweredInOrder) {
  const std::string value(200'000, 'v');
  set("k", value);
  set("l", "small");
  const std::string all = "$-1\r\n" + bulk("small") + bulk(value);
  EXPECT_TRUE(ask("MGET n l k k k k k k k n l k") == "*12\r\n" + all + bulk(value) + bulk(value) +
                                                         bulk(value) + bulk(value) + bulk(value) +
                                                         bulk(value) + all);
}

TEST_F(RespStringsTest, GetAndMore) {
  set("k", "value");
  EXPECT_EQ(ask("GETEX k EX 100\r\nTTL k\r\nGETEX k\r\nTTL k\r\nGETEX k PERSIST\r\nTTL k\r\nGETEX none EX 1"),
            "$5\r\nvalue\r\n:100\r\n$5\r\nvalue\r\n:100\r\n$5\r\nvalue\r\n:-1\r\n$-1\r\n");
  // An invalid time matters only for a key that is there.
  EXPECT_EQ(ask("GETEX none EX 0\r\nGETEX none EX x\r\nGETEX none EX\r\nGETEX k EX 0"),
            "$-1\r\n$-1\r\n-ERR syntax error\r\n-ERR invalid expire time in 'getex' command\r\n");
  EXPECT_EQ(ask("GETDEL k\r\nGETDEL k\r\nGET k"), "$5\r\nvalue\r\n$-1\r\n$-1\r\n");
}

TEST_F(RespStringsTest, Ranges) {
  set("k", "Hello World");
  EXPECT_EQ(
      ask("GETRANGE k 0 4\r\nGETRANGE k -5 -1\r\nGETRANGE k 5 2\r\nGETRANGE none 0 -1\r\nGETRANGE k a 1"),
      "$5\r\nHello\r\n$5\r\nWorld\r\n$0\r\n\r\n$0\r\n\r\n-ERR value is not an integer or out of range\r\n");
  EXPECT_EQ(ask("SETRANGE k 6 Redis\r\nGET k\r\nSETRANGE none 2 a\r\nSETRANGE k -1 a\r\nSTRLEN none"),
            ":11\r\n$11\r\nHello Redis\r\n:3\r\n-ERR offset is out of range\r\n:3\r\n");
  EXPECT_EQ(answer({"GET", "none"}), bulk(std::string_view("\0\0a", 3)));
  EXPECT_EQ(answer({"SETRANGE", "empty", "0", ""}), ":0\r\n");
  EXPECT_EQ(ask("EXISTS empty\r\nSETRANGE k 536870911 ab"),
            ":0\r\n-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n");
}

TEST_F(RespStringsTest, PartsOfLargeValues) {
  std::string large(200'000, 'x');
  large.replace(150'000, 3, "abc");
  set("k", large);
  EXPECT_EQ(ask("GETRANGE k 149999 150003"), "$5\r\nxabcx\r\n");
  EXPECT_TRUE(ask("GETRANGE k 0 -1") == bulk(large));
  EXPECT_EQ(ask("APPEND k yz\r\nSTRLEN k\r\nINCR k"),
            ":200002\r\n:200002\r\n-ERR value is not an integer or out of range\r\n");
}

TEST_F(RespStringsTest, Append) {
  EXPECT_EQ(ask("APPEND k Hello\r\nAPPEND k World\r\nGET k"), ":5\r\n:10\r\n$10\r\nHelloWorld\r\n");
}

TEST_F(RespStringsTest, Numbers) {
  EXPECT_EQ(ask("INCR n\r\nINCRBY n 9\r\nDECR n\r\nDECRBY n 20\r\nGET n"),
            ":1\r\n:10\r\n:9\r\n:-11\r\n$3\r\n-11\r\n");
  EXPECT_EQ(
      ask("SET n 9223372036854775807\r\nINCR n\r\nSET n a\r\nINCR n\r\nINCRBY n b"),
      "+OK\r\n-ERR increment or decrement would overflow\r\n+OK\r\n"
      "-ERR value is not an integer or out of range\r\n-ERR value is not an integer or out of range\r\n");
  EXPECT_EQ(ask("DECRBY n -9223372036854775808"), "-ERR decrement would overflow\r\n");
  EXPECT_EQ(ask("SET n 1 EX 10\r\nINCR n\r\nTTL n"), "+OK\r\n:2\r\n:10\r\n");
}

TEST_F(RespStringsTest, FloatingNumbers) {
  EXPECT_EQ(ask("SET f 10.50\r\nINCRBYFLOAT f 0.1\r\nINCRBYFLOAT f -5\r\nGET f\r\nINCRBYFLOAT none 5.0e3"),
            "+OK\r\n$4\r\n10.6\r\n$3\r\n5.6\r\n$3\r\n5.6\r\n$4\r\n5000\r\n");
  EXPECT_EQ(ask("SET f a\r\nINCRBYFLOAT f 1\r\nINCRBYFLOAT none b\r\nINCRBYFLOAT none inf"),
            "+OK\r\n-ERR value is not a valid float\r\n-ERR value is not a valid float\r\n"
            "-ERR increment would produce NaN or Infinity\r\n");
}

TEST_F(RespStringsTest, ManyKeys) {
  EXPECT_EQ(
      ask("MSET a 1 b 2\r\nMGET a none b\r\nMSET a 1 b"),
      "+OK\r\n*3\r\n$1\r\n1\r\n$-1\r\n$1\r\n2\r\n-ERR wrong number of arguments for 'mset' command\r\n");
  EXPECT_EQ(
      ask("MSETNX c 3\r\nMSETNX c 4\r\nMSETNX d 4 e 5 d 6\r\nMSETNX f 7 e 8\r\nMSETNX f\r\nMGET c d e f"),
      ":1\r\n:0\r\n:1\r\n:0\r\n-ERR wrong number of arguments for 'msetnx' command\r\n"
      "*4\r\n$1\r\n3\r\n$1\r\n6\r\n$1\r\n5\r\n$-1\r\n");
  std::string requests = "*201\r\n$4\r\nMGET\r\n", expected = "*200\r\n";
  for (int i = 0; i < 200; ++i) {
    const std::string key = "key" + std::to_string(i);
    set(key, key);
    requests += bulk(key);
    expected += bulk(key);
  }
  EXPECT_EQ(answer(requests), expected);
}

TEST_F(RespStringsTest, KeysThatAreTooLongAreRefused) {
  const std::string key(70'000, 'k');
  const std::string got = answer(request({"SET", key, "v"}) + request({"MGET", key, "none"}) + "PING\r\n");
  EXPECT_TRUE(got.starts_with("-ERR ")) << got;
  EXPECT_TRUE(got.ends_with("\r\n$-1\r\n+PONG\r\n")) << got;
}

TEST_F(RespStringsTest, NullsOfTheLaterProtocol) {
  const std::string got = ask("HELLO 3\r\nGET k\r\nMGET k\r\nGETDEL k\r\nSET k v XX");
  EXPECT_TRUE(got.ends_with("_\r\n*1\r\n_\r\n_\r\n_\r\n")) << got;
}

}  // namespace
}  // namespace server
