// Which function of a RespClient carries out which command (resp_client.h).
#include <utility>

#include "server/clients/resp_client.h"

namespace server {

using resp::CommandId;

struct RespClient::Handlers {
  using Handler = void (*)(RespClient& client, const Command& command, Arguments arguments);
  struct Row {
    CommandId id;
    Handler handler;
  };
  static const Row kRows[];

  // Calls the function, which takes the command, the arguments, or neither.
  template <auto kFunction>
  static void call(RespClient& client, const Command& command, Arguments arguments) {
    if constexpr (requires { (client.*kFunction)(command, arguments); })
      (client.*kFunction)(command, arguments);
    else if constexpr (requires { (client.*kFunction)(arguments); })
      (client.*kFunction)(arguments);
    else
      (client.*kFunction)();
  }
  static consteval Handler of(CommandId id);
};

constexpr RespClient::Handlers::Row RespClient::Handlers::kRows[] = {
    {CommandId::kPing, call<&RespClient::ping>},
    {CommandId::kEcho, call<&RespClient::echo>},
    {CommandId::kAuth, call<&RespClient::authenticate>},
    {CommandId::kHello, call<&RespClient::hello>},
    {CommandId::kSelect, call<&RespClient::select>},
    {CommandId::kQuit, call<&RespClient::quit>},
    {CommandId::kReset, call<&RespClient::reset>},
    {CommandId::kClientGetname, call<&RespClient::tell_name>},
    {CommandId::kClientHelp, call<&RespClient::help>},
    {CommandId::kClientId, call<&RespClient::tell_number>},
    {CommandId::kClientInfo, call<&RespClient::tell_client>},
    {CommandId::kClientKill, call<&RespClient::kill_clients>},
    {CommandId::kClientList, call<&RespClient::list_clients>},
    {CommandId::kClientNoEvict, call<&RespClient::set_no_evict>},
    {CommandId::kClientNoTouch, call<&RespClient::set_no_touch>},
    {CommandId::kClientReply, call<&RespClient::set_replies>},
    {CommandId::kClientSetinfo, call<&RespClient::set_library>},
    {CommandId::kClientSetname, call<&RespClient::set_name>},

    {CommandId::kAppend, call<&RespClient::append>},
    {CommandId::kDecr, call<&RespClient::add>},
    {CommandId::kDecrby, call<&RespClient::add>},
    {CommandId::kGet, call<&RespClient::get_one>},
    {CommandId::kGetdel, call<&RespClient::get_and_remove>},
    {CommandId::kGetex, call<&RespClient::get_and_expire>},
    {CommandId::kGetrange, call<&RespClient::get_range>},
    {CommandId::kGetset, call<&RespClient::set>},
    {CommandId::kIncr, call<&RespClient::add>},
    {CommandId::kIncrby, call<&RespClient::add>},
    {CommandId::kIncrbyfloat, call<&RespClient::add_float>},
    {CommandId::kMget, call<&RespClient::get_all>},
    {CommandId::kMset, call<&RespClient::set_all>},
    {CommandId::kMsetnx, call<&RespClient::set_all>},
    {CommandId::kPsetex, call<&RespClient::set>},
    {CommandId::kSet, call<&RespClient::set>},
    {CommandId::kSetex, call<&RespClient::set>},
    {CommandId::kSetnx, call<&RespClient::set>},
    {CommandId::kSetrange, call<&RespClient::set_range>},
    {CommandId::kStrlen, call<&RespClient::string_length>},

    {CommandId::kDel, call<&RespClient::remove>},
    {CommandId::kExists, call<&RespClient::count_present>},
    {CommandId::kExpire, call<&RespClient::expire>},
    {CommandId::kExpireat, call<&RespClient::expire>},
    {CommandId::kExpiretime, call<&RespClient::tell_expiry>},
    {CommandId::kKeys, call<&RespClient::list_keys>},
    {CommandId::kObjectEncoding, call<&RespClient::tell_object>},
    {CommandId::kObjectFreq, call<&RespClient::tell_object>},
    {CommandId::kObjectHelp, call<&RespClient::help>},
    {CommandId::kObjectIdletime, call<&RespClient::tell_object>},
    {CommandId::kObjectRefcount, call<&RespClient::tell_object>},
    {CommandId::kPersist, call<&RespClient::persist>},
    {CommandId::kPexpire, call<&RespClient::expire>},
    {CommandId::kPexpireat, call<&RespClient::expire>},
    {CommandId::kPexpiretime, call<&RespClient::tell_expiry>},
    {CommandId::kPttl, call<&RespClient::tell_expiry>},
    {CommandId::kRandomkey, call<&RespClient::any_key>},
    {CommandId::kScan, call<&RespClient::scan>},
    {CommandId::kTouch, call<&RespClient::count_present>},
    {CommandId::kTtl, call<&RespClient::tell_expiry>},
    {CommandId::kType, call<&RespClient::tell_type>},
    {CommandId::kUnlink, call<&RespClient::remove>},
    {CommandId::kWait, call<&RespClient::wait>},

    {CommandId::kDiscard, call<&RespClient::discard_transaction>},
    {CommandId::kExec, call<&RespClient::execute_transaction>},
    {CommandId::kMulti, call<&RespClient::begin_transaction>},
    {CommandId::kUnwatch, call<&RespClient::unwatch>},
    {CommandId::kWatch, call<&RespClient::watch>},

    {CommandId::kBgsave, call<&RespClient::background_save>},
    {CommandId::kCommand, call<&RespClient::command_infos>},
    {CommandId::kCommandCount, call<&RespClient::count_commands>},
    {CommandId::kCommandDocs, call<&RespClient::command_docs>},
    {CommandId::kCommandGetkeys, call<&RespClient::command_keys>},
    {CommandId::kCommandHelp, call<&RespClient::help>},
    {CommandId::kCommandInfo, call<&RespClient::command_infos>},
    {CommandId::kConfigGet, call<&RespClient::get_config>},
    {CommandId::kConfigHelp, call<&RespClient::help>},
    {CommandId::kConfigResetstat, call<&RespClient::reset_counts>},
    {CommandId::kConfigSet, call<&RespClient::set_config>},
    {CommandId::kDbsize, call<&RespClient::count_keys>},
    {CommandId::kDebug, call<&RespClient::refuse_debug>},
    {CommandId::kFlushall, call<&RespClient::flush>},
    {CommandId::kFlushdb, call<&RespClient::flush>},
    {CommandId::kInfo, call<&RespClient::info>},
    {CommandId::kLastsave, call<&RespClient::tell_last_save>},
    {CommandId::kMemoryHelp, call<&RespClient::help>},
    {CommandId::kMemoryUsage, call<&RespClient::memory_usage>},
    {CommandId::kSave, call<&RespClient::save>},
    {CommandId::kShutdown, call<&RespClient::shut_down>},
    {CommandId::kTime, call<&RespClient::tell_time>},
    // find_command() never returns these, but one of their subcommands.
    {CommandId::kClient, nullptr},
    {CommandId::kConfig, nullptr},
    {CommandId::kMemory, nullptr},
    {CommandId::kObject, nullptr},
};

// A command without a row does not compile.
consteval RespClient::Handlers::Handler RespClient::Handlers::of(CommandId id) {
  for (const Row& row : kRows)
    if (row.id == id) return row.handler;
  std::unreachable();
}

void RespClient::run(const Command& command, Arguments arguments) {
  // By their ids.
  static constexpr Handlers::Handler kHandlers[] = {
#define COMMAND(id, ...) Handlers::of(CommandId::id),
#include "server/resp/commands.inc"
#undef COMMAND
  };
  kHandlers[std::to_underlying(command.id)](*this, command, arguments);
}

}  // namespace server
