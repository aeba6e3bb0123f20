// What became of a command, and whether the client is to be told.
#pragma once
#include <cstdint>

#include "server/memcache/command.h"

namespace server::memcache {

enum class Result : uint8_t {
  kDone,       // stored, deleted, touched, changed, found: what was asked for
  kCreated,    // a get, incr or decr that made the item (Command::creates)
  kNotStored,  // add, replace, append, prepend: there is an item, or none
  kExists,     // the item has another cas unique
  kNotFound,
  // Errors
  kBadData,    // the value does not end with "\r\n"
  kNotNumber,  // incr and decr: the value is no number
  kTooLarge,   // append, prepend: the joined value would be
  kNoMemory,
};
constexpr bool is_error(Result result) { return result >= Result::kBadData; }

// False: the command asked for no reply with this result. (The parser decides whether a refusal is sent.)
//   classic   noreply: nothing at all, not even errors
//   meta      q: mg does not report misses, others do not report success; mn is always answered
//   binary    gets do not report misses, others do not report success
constexpr bool is_sent(const Command& command, Result result) {
  if (!command.is_quiet) return true;
  if (command.protocol == Protocol::kClassic) return false;
  if (command.verb == Verb::kGet || command.verb == Verb::kGat) return result != Result::kNotFound;
  if (command.verb == Verb::kNoop) return true;
  return result != Result::kDone && (result != Result::kCreated || command.protocol == Protocol::kMeta);
}

}  // namespace server::memcache
