// Meta commands of the text protocol, from a whole line: mg, ms, md, ma, mn and me.
//
//   mg KEY FLAG...          a get, perhaps with a touch, perhaps making the item: kGet
//   ms KEY BYTES FLAG...    kSet, or what the mode M says: E kAdd, A kAppend, P kPrepend, R kReplace, S kSet;
//                           a set or replace with C is kCas
//   md KEY FLAG...          kDelete; with I the item stays, and is stale
//   ma KEY FLAG...          kIncr, or what the mode M says: I and + kIncr, D and - kDecr
//   mn                      kNoop
//   me KEY [b]              kMetaDebug
//
// A flag is a letter, behind it perhaps an argument. What they become in Command and MetaFlags:
//
// | letters         | are                                                        |
// | b               | the key is base64                                          |
// | q               | is_quiet                                                   |
// | O k f h l s t c | asked for: what the reply repeats or fills in              |
// | v               | asked for: the value                                       |
// | u               | the get does not count as a use                            |
// | F T C           | flags, exptime, cas                                        |
// | N R             | creates with this create_exptime; recache_exptime          |
// | D J             | number, initial                                            |
// | M               | the mode, one letter                                       |
// | I               | makes the item stale (md), or may (ms)                     |
// | E               | own_cas                                                    |
// | x               | the value goes, the item stays (md)                        |
// | L P             | nothing: kept for proxies                                  |
//
// T, N, R and t are heeded in the order in which they stand: t before T tells the expiry that T changes, and R before T
// compares it.
//
// E, x, N of ms, and s in the reply to ms are of later versions than 1.6.18, which refuses the first two and
// ignores the others.
#pragma once
#include <span>
#include <string_view>

#include "server/memcache/command.h"
#include "server/memcache/parsed.h"

namespace server::memcache {

// `line` is without its end, and begins, after blanks, with a word of two bytes of which the first is 'm'.
// Parses it into `command`, which is in its initial state. Returns kCommand or kRefused, never kMore;
// consumed_bytes is 0. A key in base64 is decoded into `key_buffer`, to which command.key refers then.
//
// Errors are those of memcached, and are sent whether or not there is a q. The value of an ms that is refused is
// swallowed if its length could be read and there were not too many flags. Unlike in memcached, a command with a
// bad opaque is refused before it has done anything. REQUIRES: key_buffer has kMaxKeyBytes bytes.
Parsed parse_meta(std::string_view line, uint64_t item_bytes_max, std::span<char> key_buffer,
                  Command& command);

}  // namespace server::memcache
