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
  kNotNumber,  // incr and decr: of the value
  kTooLarge,   // append, prepend: with what there was
  kNoMemory,
};
constexpr bool is_error(Result result) { return result >= Result::kBadData; }

// False: the command asked for no reply with this result. (Whether a refusal is sent the parser decides.)
//   classic   noreply: none at all, not even of errors
//   meta      q: of mg not that there is no item, of others not that it was done; mn is always answered
//   binary    of gets not that there is no item, of others not that it was done
constexpr bool is_sent(const Command& command, Result result) {
  if (!command.is_quiet) return true;
  if (command.protocol == Protocol::kClassic) return false;
  if (command.verb == Verb::kGet || command.verb == Verb::kGat) return result != Result::kNotFound;
  if (command.verb == Verb::kNoop) return true;
  return result != Result::kDone && (result != Result::kCreated || command.protocol == Protocol::kMeta);
}

}  // namespace server::memcache
