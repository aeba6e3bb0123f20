#include "server/memcache/text_reply.h"

#include "server/memcache/messages.h"

namespace server::memcache {
namespace {

std::string_view line_of_done(Verb verb) {
  switch (verb) {
    case Verb::kDelete: return messages::kDeleted;
    case Verb::kTouch: return messages::kTouched;
    default: return takes_value(verb) ? messages::kStored : messages::kOk;
  }
}

}  // namespace

void write_line(ReplyBuffer& reply, std::string_view text) { reply << text << "\r\n"; }

std::string_view line_of(const Command& command, Result result) {
  CHECK(command.protocol == Protocol::kClassic || is_error(result));
  switch (result) {
    case Result::kDone: return line_of_done(command.verb);
    case Result::kNotStored: return messages::kNotStored;
    case Result::kExists: return messages::kExists;
    case Result::kNotFound: return messages::kNotFound;
    case Result::kBadData: return messages::kBadData;
    case Result::kNotNumber: return messages::kNotNumber;
    case Result::kTooLarge: return messages::kTooLarge;
    case Result::kNoMemory:
      return takes_value(command.verb) ? messages::kNoMemoryToStore : messages::kNoMemory;
    case Result::kCreated: break;  // no classic command creates
  }
  CHECK(false);
  return {};
}

void write_value_line(ReplyBuffer& reply, std::string_view key, uint32_t flags, uint64_t value_bytes,
                      std::optional<uint64_t> cas) {
  reply << "VALUE " << key << ' ' << flags << ' ' << value_bytes;
  if (cas) reply << ' ' << *cas;
  reply << "\r\n";
}

void write_number(ReplyBuffer& reply, uint64_t number) { reply << number << "\r\n"; }

void write_version(ReplyBuffer& reply, std::string_view version) { reply << "VERSION " << version << "\r\n"; }

void write_stat(ReplyBuffer& reply, std::string_view name, std::string_view value) {
  reply << "STAT " << name;
  if (!value.empty()) reply << ' ' << value;
  reply << "\r\n";
}

}  // namespace server::memcache
