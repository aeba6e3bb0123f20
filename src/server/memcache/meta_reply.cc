#include "server/memcache/meta_reply.h"

#include <string_view>

#include "base/check.h"

namespace server::memcache {
namespace {

bool is_done(Result result) { return result == Result::kDone || result == Result::kCreated; }

std::string_view code_of(const Command& command, Result result) {
  switch (result) {
    case Result::kNotStored: return "NS";
    case Result::kExists: return "EX";
    case Result::kNotFound: return command.verb == Verb::kGet ? "EN" : "NF";
    default: return "HD";
  }
}

// The flags that this reply fills in.
std::string_view known_flags(const Command& command, Result result) {
  if (takes_value(command.verb)) return is_done(result) ? "Okcs" : "Okc";
  if (!is_done(result) || command.verb == Verb::kDelete) return "Ok";
  return command.verb == Verb::kGet ? MetaFlags::kReplied : "Okct";
}

void write_flag(ReplyBuffer& reply, char letter, const Command& command, const MetaItem& item) {
  reply << ' ' << letter;
  switch (letter) {
    case 'O': reply << command.meta.opaque; break;
    case 'k':
      reply << command.meta.key;
      if (command.meta.has('b')) reply << " b";
      break;
    case 'c': reply << item.cas; break;
    case 'f': reply << item.flags; break;
    case 'h': reply << (item.was_used ? '1' : '0'); break;
    case 'l': reply << item.idle_seconds; break;
    case 's': reply << item.value_bytes; break;
    case 't': reply << item.seconds_left; break;
    default: CHECK(false);
  }
}

}  // namespace

bool answers_with_value(const Command& command, Result result) {
  return is_done(result) && command.meta.has('v') &&
         (command.verb == Verb::kGet || command.verb == Verb::kIncr || command.verb == Verb::kDecr);
}

void write_meta(ReplyBuffer& reply, const Command& command, Result result, const MetaItem& item) {
  CHECK(command.protocol == Protocol::kMeta && !is_error(result));
  if (command.verb == Verb::kNoop) {
    reply << "MN\r\n";
    return;
  }
  if (answers_with_value(command, result))
    reply << "VA " << item.value_bytes;
  else
    reply << code_of(command, result);
  const std::string_view known = known_flags(command, result);
  const MetaItem nothing = {.seconds_left = 0};
  for (const char letter : command.meta.replied())
    if (known.find(letter) != std::string_view::npos)
      write_flag(reply, letter, command, is_done(result) ? item : nothing);
  if (command.verb == Verb::kGet && is_done(result)) {
    if (item.was_won) reply << " Z";
    if (item.is_stale) reply << " X";
    if (item.is_won) reply << " W";
  }
  reply << "\r\n";
}

void write_meta_debug(ReplyBuffer& reply, const Command& command, const MetaItem& item) {
  CHECK(command.verb == Verb::kMetaDebug);
  reply << "ME " << command.meta.key << " exp=" << item.seconds_left << " la=" << item.idle_seconds
        << " cas=" << item.cas << " fetch=" << (item.was_used ? "yes" : "no")
        << " cls=1 size=" << item.value_bytes << "\r\n";
}

void write_meta_debug_miss(ReplyBuffer& reply) { reply << "EN\r\n"; }

}  // namespace server::memcache
