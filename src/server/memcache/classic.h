// Classic commands of the text protocol, from a whole line: get, set, delete, incr, ... and the
// administrative ones. Not the two-letter meta commands: meta.h.
#pragma once
#include <string_view>

#include "server/memcache/command.h"
#include "server/memcache/parsed.h"

namespace server::memcache {

// Parses `line`, which is without its end, into `command`, which is in its initial state. Returns kCommand or kRefused, never
// kMore; consumed_bytes is 0.
//
// Errors are those of memcached: "ERROR" for an unknown verb and for a wrong number of words, else a line of
// messages.h. A command with noreply is refused without a reply. The value is swallowed only if it is too large:
// after any other mistake its length is not trusted, and what follows is read as lines. An unknown verb on a
// line whose last word begins with "HTTP/" closes the connection. Verbs are case-sensitive. Cost: the words of the line are looked at twice.
Parsed parse_classic(std::string_view line, uint64_t item_bytes_max, Command& command);

// Has one of the keys more than kMaxKeyBytes bytes?
bool has_long_key(Words keys);

}  // namespace server::memcache
