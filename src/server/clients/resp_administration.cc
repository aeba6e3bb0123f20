// Commands about the server (resp_client.h).
#include <algorithm>
#include <string>

#include "server/clients/resp_client.h"
#include "server/clients/resp_info.h"
#include "server/resp/command_info.h"
#include "server/resp/glob.h"
#include "server/resp/words.h"

namespace server {

using resp::Problem;
using resp::ReplyWriter;

namespace {

// Comparing a pattern of this length with a setting takes about as long as looking up a key.
constexpr size_t kPatternBytesOfAKey = 1024;

size_t command_count() {
  return static_cast<size_t>(
      std::ranges::count_if(resp::all_commands(), [](const auto& it) { return !it.is_subcommand(); }));
}

}  // namespace

void RespClient::count_commands() { answer_.integer(static_cast<int64_t>(command_count())); }

void RespClient::command_infos(Arguments arguments) {
  const auto info_of = [&](const Command& command) {
    answer_.write([&](ReplyWriter& reply) { resp::write_command_info(reply, command); });
  };
  if (arguments.size() <= 2) {
    answer_.array(command_count());
    for (const Command& command : resp::all_commands())
      if (!command.is_subcommand()) info_of(command);
    return;
  }
  const Arguments names = arguments.subspan(2);
  answer_.array(names.size());
  for (const std::string_view name : names) {
    if (!goes_on()) return;
    if (const Command* const command = resp::find_by_name(name))
      info_of(*command);
    else
      answer_.null();
  }
}

// Names that are not known are left out.
void RespClient::command_docs(Arguments arguments) {
  const auto docs_of = [&](const Command& command) {
    answer_.write([&](ReplyWriter& reply) { resp::write_command_docs(reply, command); });
  };
  if (arguments.size() == 2) {
    answer_.map(command_count());
    for (const Command& command : resp::all_commands())
      if (!command.is_subcommand()) docs_of(command);
    return;
  }
  const Arguments names = arguments.subspan(2);
  const auto is_known = [](std::string_view name) { return resp::find_by_name(name) != nullptr; };
  answer_.map(static_cast<uint64_t>(std::ranges::count_if(names, is_known)));
  for (const std::string_view name : names) {
    if (!goes_on()) return;
    if (const Command* const command = resp::find_by_name(name)) docs_of(*command);
  }
}

void RespClient::command_keys(Arguments arguments) {
  const auto keys = accepted(resp::parse_command_getkeys(arguments));
  if (!keys) return;
  answer_.array((keys->end - keys->first + keys->step - 1) / keys->step);
  for (size_t i = keys->first; i < keys->end && goes_on(); i += keys->step) answer_.bulk(arguments[i]);
}

void RespClient::get_config(Arguments arguments) {
  std::vector<Setting> wanted = settings_of(hub_);
  std::erase_if(wanted, [&](const Setting& setting) {
    return setting.is_secret || std::ranges::none_of(arguments.subspan(2), [&](std::string_view pattern) {
             goes_on(1 + pattern.size() / kPatternBytesOfAKey);
             return resp::glob_matches_in_any_case(pattern, setting.name);
           });
  });
  answer_.map(wanted.size());
  for (const Setting& setting : wanted) {
    answer_.bulk(setting.name);
    answer_.bulk(setting.value);
  }
}

// A setting may only be set to the value that it has.
void RespClient::set_config(Arguments arguments) {
  const auto pairs = accepted(resp::parse_config_set(arguments));
  if (!pairs) return;
  const std::vector<Setting> settings = settings_of(hub_);
  for (size_t i = 0; i < pairs->size(); i += 2) {
    const std::string_view name = (*pairs)[i];
    const auto known = std::ranges::find_if(
        settings, [&](const Setting& setting) { return resp::is_word(name, setting.name); });
    if (known == settings.end()) return answer_.refuse(resp::Refusal{Problem::kUnknownSetting, name});
    if (!known->is_secret && known->value == (*pairs)[i + 1]) continue;
    base::Text<resp::kMaxErrorBytes> text;
    text << "ERR CONFIG SET failed (possibly related to argument '" << known->name
         << "') - can't set immutable config";
    return answer_.error(text.view());
  }
  answer_.ok();
}

void RespClient::reset_counts() {
  hub_.reset_counts();
  answer_.ok();
}

void RespClient::refuse_debug() { answer_.refuse(Problem::kDebugRefused); }

// ASYNC makes no difference: a flush takes little time.
void RespClient::flush(Arguments arguments) {
  if (!accepted(resp::parse_flush(arguments))) return;
  if (!hub_.settings().takes_flush) return answer_.refuse(Problem::kNoFlush);
  if (done(items_.flush())) answer_.ok();
}

// This looks at all sessions, connections and segments: if many such requests arrive together, other tasks run
// before each.
void RespClient::info(Arguments arguments) {
  goes_on(kKeysInTurn);
  answer_.text_for_people(info_text(hub_, arguments.subspan(1)));
}

// How much the record takes on the device: with the item's head, in whole grains.
void RespClient::memory_usage(Arguments arguments) {
  const auto key = accepted(resp::parse_memory_usage(arguments));
  if (!key) return;
  auto found = look(*key);
  const Item* const item = done(found);
  if (item == nullptr) return;
  if (!item->found()) return answer_.null();
  const kv::Geometry& geometry = hub_.items().store().identity().geometry;
  const uint64_t bytes = sizeof(kv::RecordHeader) + key->size() + ItemHead::kMaxBytes + item->value_bytes();
  answer_.integer(static_cast<int64_t>(geometry.grains(bytes) * geometry.grain_bytes));
}

// Nothing is left to save: what was acknowledged is kept as the store's durability says.
void RespClient::save() { answer_.ok(); }

void RespClient::background_save(Arguments arguments) {
  if (accepted(resp::parse_bgsave(arguments))) answer_.simple("Background saving started");
}

void RespClient::tell_last_save() { answer_.integer(now_ms() / 1000); }

// As in Redis, success is not answered.
void RespClient::shut_down(Arguments arguments) {
  const auto request = accepted(resp::parse_shutdown(arguments));
  if (!request) return;
  if (!hub_.settings().takes_shutdown) return answer_.refuse(Problem::kShutdownNotTaken);
  if (request->is_taken_back) return answer_.refuse(Problem::kNoShutdown);
  has_ended_ = true;
  hub_.end(request->is_at_once ? Hub::End::kAtOnce : Hub::End::kDrained, "a client's SHUTDOWN");
}

// By the clock that items expire by, which has milliseconds.
void RespClient::tell_time() {
  const uint64_t now_ms = items_.clock().now_ms();
  answer_.array(2);
  answer_.bulk(std::to_string(now_ms / 1000));
  answer_.bulk(std::to_string(now_ms % 1000 * 1000));
}

// There are no replicas to wait for, and none will come.
void RespClient::wait(Arguments arguments) {
  if (accepted(resp::parse_wait(arguments))) answer_.integer(0);
}

void RespClient::help(const Command& command, Arguments) {
  const std::string_view container = command.name.substr(0, command.name.find('|'));
  answer_.write([&](ReplyWriter& reply) { resp::write_help(reply, *resp::find_by_name(container)); });
}

}  // namespace server
