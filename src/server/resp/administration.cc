#include "server/resp/administration.h"

#include <algorithm>
#include <limits>

#include "server/resp/numbers.h"
#include "server/resp/words.h"

namespace server::resp {
namespace {

// For names that stand in lists, between blanks.
bool is_printable_word(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= '!' && c <= '~'; });
}

// A name that the connection keeps, also while it is idle. `unprintable`: why another one is refused.
Accepted<std::string_view> name_to_keep(std::string_view text, const Refusal& unprintable) {
  if (text.size() > kMaxNameBytes) return refuse(Problem::kNameTooLong);
  if (!is_printable_word(text)) return std::unexpected(unprintable);
  return text;
}

Accepted<ClientType> client_type(std::string_view text) {
  if (is_word(text, "normal")) return ClientType::kNormal;
  if (is_word(text, "replica") || is_word(text, "slave")) return ClientType::kReplica;
  if (is_word(text, "pubsub")) return ClientType::kPubsub;
  if (is_word(text, "master")) return ClientType::kMaster;
  return refuse(Problem::kUnknownClientType, text);
}

// Nothing, or the one option that there is.
Accepted<bool> has_option(Arguments arguments, std::string_view option) {
  if (arguments.size() == 1) return false;
  if (arguments.size() == 2 && is_word(arguments[1], option)) return true;
  return refuse(Problem::kSyntax);
}

// An option of CLIENT KILL, with its value.
Accepted<void> take_kill_option(std::string_view option, std::string_view value, ClientKillRequest& request) {
  if (is_word(option, "id")) {
    const auto id = parse_integer(value);
    if (!id || *id < 1) return refuse(Problem::kClientIdTooSmall);
    request.id = *id;
  } else if (is_word(option, "type")) {
    const auto type = client_type(value);
    if (!type) return std::unexpected(type.error());
    request.type = *type;
  } else if (is_word(option, "addr")) {
    request.address = value;
  } else if (is_word(option, "laddr")) {
    request.own_address = value;
  } else if (is_word(option, "user")) {
    request.user = value;
  } else if (is_word(option, "skipme") && is_word(value, "yes")) {
    request.skips_own = true;
  } else if (is_word(option, "skipme") && is_word(value, "no")) {
    request.skips_own = false;
  } else {
    return refuse(Problem::kSyntax);
  }
  return {};
}

}  // namespace

Accepted<std::optional<std::string_view>> parse_ping(Arguments arguments) {
  if (arguments.size() > 2) return refuse(Problem::kWrongArity, command_of(CommandId::kPing).name);
  if (arguments.size() == 1) return std::nullopt;
  return arguments[1];
}

Accepted<Credentials> parse_auth(Arguments arguments) {
  if (arguments.size() > 3) return refuse(Problem::kSyntax);
  if (arguments.size() == 2) return Credentials{.password = arguments[1]};
  return Credentials{.user = arguments[1], .password = arguments[2]};
}

Accepted<HelloRequest> parse_hello(Arguments arguments) {
  HelloRequest request;
  if (arguments.size() >= 2) {
    const auto version = parse_integer(arguments[1]);
    if (!version) return refuse(Problem::kProtocolNotAnInteger);
    if (*version != 2 && *version != 3) return refuse(Problem::kUnsupportedProtocol);
    request.protocol = *version == 2 ? Protocol::kResp2 : Protocol::kResp3;
  }
  for (size_t i = 2; i < arguments.size(); ++i) {
    const size_t left_count = arguments.size() - i - 1;
    if (is_word(arguments[i], "auth") && left_count >= 2) {
      request.credentials = Credentials{.user = arguments[i + 1], .password = arguments[i + 2]};
      i += 2;
    } else if (is_word(arguments[i], "setname") && left_count >= 1) {
      const auto name = name_to_keep(arguments[++i], {Problem::kClientName});
      if (!name) return std::unexpected(name.error());
      request.name = *name;
    } else {
      return refuse(Problem::kHelloOption, arguments[i]);
    }
  }
  return request;
}

Accepted<uint32_t> parse_select(Arguments arguments, uint32_t database_count) {
  const auto index = parse_integer(arguments[1]);
  if (!index) return refuse(Problem::kNotAnInteger);
  if (*index < std::numeric_limits<int>::min() || *index > std::numeric_limits<int>::max())
    return refuse(Problem::kNotAnInt);
  if (*index < 0 || *index >= database_count) return refuse(Problem::kDatabaseOutOfRange);
  return static_cast<uint32_t>(*index);
}

Accepted<std::string_view> parse_client_setname(Arguments arguments) {
  return name_to_keep(arguments[2], {Problem::kClientName});
}

Accepted<LibraryFact> parse_client_setinfo(Arguments arguments) {
  LibraryFact fact;
  if (is_word(arguments[2], "lib-name"))
    fact.what = LibraryFact::What::kName;
  else if (is_word(arguments[2], "lib-ver"))
    fact.what = LibraryFact::What::kVersion;
  else
    return refuse(Problem::kUnrecognizedOption, arguments[2]);
  const auto text = name_to_keep(arguments[3], {Problem::kLibraryFact, arguments[2]});
  if (!text) return std::unexpected(text.error());
  fact.text = *text;
  return fact;
}

Accepted<Replies> parse_client_reply(Arguments arguments) {
  if (is_word(arguments[2], "on")) return Replies::kOn;
  if (is_word(arguments[2], "off")) return Replies::kOff;
  if (is_word(arguments[2], "skip")) return Replies::kSkipNext;
  return refuse(Problem::kSyntax);
}

Accepted<bool> parse_client_switch(Arguments arguments) {
  if (is_word(arguments[2], "on")) return true;
  if (is_word(arguments[2], "off")) return false;
  return refuse(Problem::kSyntax);
}

Accepted<ClientListRequest> parse_client_list(Arguments arguments) {
  ClientListRequest request;
  if (arguments.size() == 2) return request;
  if (arguments.size() == 4 && is_word(arguments[2], "type")) {
    const auto type = client_type(arguments[3]);
    if (!type) return std::unexpected(type.error());
    request.type = *type;
    return request;
  }
  if (arguments.size() == 3 || !is_word(arguments[2], "id")) return refuse(Problem::kSyntax);
  request.ids = arguments.subspan(3);
  for (const std::string_view id : *request.ids)
    if (!parse_integer(id)) return refuse(Problem::kNotAClientId);
  return request;
}

Accepted<ClientKillRequest> parse_client_kill(Arguments arguments) {
  ClientKillRequest request;
  if (arguments.size() == 3) {
    request.answers_ok = true;
    request.skips_own = false;
    request.address = arguments[2];
    return request;
  }
  for (size_t i = 2; i < arguments.size(); i += 2) {
    if (i + 1 == arguments.size()) return refuse(Problem::kSyntax);
    if (const auto taken = take_kill_option(arguments[i], arguments[i + 1], request); !taken)
      return std::unexpected(taken.error());
  }
  return request;
}

Accepted<KeyRange> parse_command_getkeys(Arguments arguments) {
  const Arguments other = arguments.subspan(2);
  const auto found = find_command(other);
  if (!found && found.error().problem != Problem::kWrongArity) return refuse(Problem::kNoSuchCommand);
  // Whether it has keys is checked before how many arguments it takes.
  const Command* command = found ? *found : find_by_name(found.error().what);
  if (command->first_key == 0) return refuse(Problem::kNoKeys);
  if (!found) return refuse(Problem::kArityOfOther);
  KeyRange keys = key_range(*command, other.size());
  keys.first += 2;
  keys.end += 2;
  return keys;
}

Accepted<Arguments> parse_config_set(Arguments arguments) {
  const Arguments pairs = arguments.subspan(2);
  if (pairs.size() % 2 != 0) return refuse(Problem::kSyntax);
  return pairs;
}

Accepted<bool> parse_flush(Arguments arguments) {
  if (arguments.size() == 2 && is_word(arguments[1], "sync")) return false;
  return has_option(arguments, "async");
}

Accepted<bool> parse_bgsave(Arguments arguments) { return has_option(arguments, "schedule"); }

Accepted<ShutdownRequest> parse_shutdown(Arguments arguments) {
  ShutdownRequest request;
  for (const std::string_view option : arguments.subspan(1)) {
    if (is_word(option, "save"))
      request.saves = true;
    else if (is_word(option, "nosave"))
      request.saves_nothing = true;
    else if (is_word(option, "now"))
      request.is_at_once = true;
    else if (is_word(option, "force"))
      request.is_forced = true;
    else if (is_word(option, "abort"))
      request.is_taken_back = true;
    else
      return refuse(Problem::kSyntax);
  }
  const bool has_others = request.saves || request.saves_nothing || request.is_at_once || request.is_forced;
  if ((request.is_taken_back && has_others) || (request.saves && request.saves_nothing))
    return refuse(Problem::kSyntax);
  return request;
}

Accepted<std::string_view> parse_memory_usage(Arguments arguments) {
  for (size_t i = 3; i < arguments.size(); i += 2) {
    if (i + 1 == arguments.size() || !is_word(arguments[i], "samples")) return refuse(Problem::kSyntax);
    const auto samples = parse_integer(arguments[i + 1]);
    if (!samples) return refuse(Problem::kNotAnInteger);
    if (*samples < 0) return refuse(Problem::kSyntax);
  }
  return arguments[2];
}

Accepted<WaitRequest> parse_wait(Arguments arguments) {
  const auto replica_count = parse_integer(arguments[1]);
  if (!replica_count) return refuse(Problem::kNotAnInteger);
  const auto timeout_ms = parse_integer(arguments[2]);
  if (!timeout_ms) return refuse(Problem::kTimeoutNotAnInteger);
  if (*timeout_ms < 0) return refuse(Problem::kTimeoutNegative);
  return WaitRequest{.replica_count = *replica_count, .timeout_ms = *timeout_ms};
}

}  // namespace server::resp
