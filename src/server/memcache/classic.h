// Classic commands of the text protocol, from a whole line: get, set, delete, incr, ... and the
// administrative ones. Not the two-letter meta commands: meta.h.
#pragma once
#include <string_view>

#include "server/memcache/command.h"
#include "server/memcache/parsed.h"

namespace server::memcache {

// `line` is without its end. Fills `command`, which is as new, and returns kCommand or kRefused, never kMore;
// consumed_bytes is 0.
//
// Errors are those of memcached: "ERROR" for a verb that is not known and a wrong number of words, else what
// messages.h has. A command that says noreply is refused without a word. Only a value that is too large is
// swallowed: with other mistakes of a line its length is not believed, and what follows is read as lines.
// "GET / HTTP/1.1" and its like close the connection. Verbs are case-sensitive. Cost: inline; the words of
// the line are looked at twice.
Parsed parse_classic(std::string_view line, uint64_t item_bytes_max, Command& command);

// Is there a key of more than kKeyBytesMax bytes among these?
bool has_long_key(Words keys);

}  // namespace server::memcache
