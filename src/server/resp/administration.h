// Arguments of the commands about connections and the server: with their options, checked as Redis checks
// them. As arguments.h.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "server/resp/command.h"

namespace server::resp {

// PING. Its message, if it has one. Refused: kWrongArity.
Accepted<std::optional<std::string_view>> parse_ping(Arguments arguments);

struct Credentials {
  std::string_view user = "default";
  std::string_view password;
};

// AUTH, whose user may be left out. Refused: kSyntax.
Accepted<Credentials> parse_auth(Arguments arguments);

// Bounds the name of a connection, and what a client says of its library. Redis has no bound, but connections keep
// them.
inline constexpr size_t kMaxNameBytes = 1024;

// HELLO.
struct HelloRequest {
  std::optional<Protocol> protocol;  // none: the protocol stays as it is
  std::optional<Credentials> credentials;
  std::optional<std::string_view> name;  // of the connection; empty: it has none any more
};
// All is checked before anything is done. Refused: kProtocolNotAnInteger, kUnsupportedProtocol, kClientName,
// kNameTooLong, kHelloOption.
Accepted<HelloRequest> parse_hello(Arguments arguments);

// SELECT: a database below the count. Refused: kNotAnInteger, kNotAnInt, kDatabaseOutOfRange.
Accepted<uint32_t> parse_select(Arguments arguments, uint32_t database_count);

// CLIENT SETNAME. The name; empty: none any more. Refused: kClientName, kNameTooLong.
Accepted<std::string_view> parse_client_setname(Arguments arguments);

// CLIENT SETINFO.
struct LibraryFact {
  enum class What : uint8_t { kName, kVersion };
  What what = What::kName;
  std::string_view text;
};
// Refused: kUnrecognizedOption, kLibraryFact, kNameTooLong.
Accepted<LibraryFact> parse_client_setinfo(Arguments arguments);

// CLIENT REPLY. Refused: kSyntax.
enum class Replies : uint8_t { kOn, kOff, kSkipNext };
Accepted<Replies> parse_client_reply(Arguments arguments);

// CLIENT NO-EVICT, CLIENT NO-TOUCH: on? Refused: kSyntax.
Accepted<bool> parse_client_switch(Arguments arguments);

// What connections are for. All here are kNormal.
enum class ClientType : uint8_t { kNormal, kReplica, kPubsub, kMaster };

// CLIENT LIST: connections of the type, or with one of the numbers, each of which parse_integer() takes, or all.
struct ClientListRequest {
  std::optional<ClientType> type;
  std::optional<Arguments> ids;
};
// Refused: kUnknownClientType, kNotAClientId, kSyntax.
Accepted<ClientListRequest> parse_client_list(Arguments arguments);

// CLIENT KILL: connections that meet all conditions given.
struct ClientKillRequest {
  // CLIENT KILL ip:port, which is answered with OK or kNoSuchClient; other forms are answered with how many there were.
  bool answers_ok = false;
  bool skips_own = true;
  std::optional<std::string_view> address;  // ip:port
  std::optional<std::string_view> own_address;
  std::optional<int64_t> id;
  std::optional<ClientType> type;
  std::optional<std::string_view> user;  // the caller, which knows the users, refuses others: kNoSuchUser
};
// Refused: kClientIdTooSmall, kUnknownClientType, kSyntax.
Accepted<ClientKillRequest> parse_client_kill(Arguments arguments);

// COMMAND GETKEYS: which of its own arguments are the other command's keys. Refused: kNoSuchCommand, kNoKeys,
// kArityOfOther.
Accepted<KeyRange> parse_command_getkeys(Arguments arguments);

// CONFIG SET: names and values in turn. Refused: kSyntax.
Accepted<Arguments> parse_config_set(Arguments arguments);

// FLUSHDB, FLUSHALL: may it be done later? Refused: kSyntax.
Accepted<bool> parse_flush(Arguments arguments);

// BGSAVE: may it begin later? Refused: kSyntax.
Accepted<bool> parse_bgsave(Arguments arguments);

// SHUTDOWN.
struct ShutdownRequest {
  bool saves = false;
  bool saves_nothing = false;
  bool is_at_once = false;  // does not wait for replicas
  bool is_forced = false;   // also if saving fails
  bool is_taken_back = false;
};
// Refused: kSyntax.
Accepted<ShutdownRequest> parse_shutdown(Arguments arguments);

// MEMORY USAGE: the key. Refused: kNotAnInteger, kSyntax.
Accepted<std::string_view> parse_memory_usage(Arguments arguments);

// WAIT.
struct WaitRequest {
  int64_t replica_count = 0;
  int64_t timeout_ms = 0;  // 0: none
};
// Refused: kNotAnInteger, kTimeoutNotAnInteger, kTimeoutNegative.
Accepted<WaitRequest> parse_wait(Arguments arguments);

}  // namespace server::resp
