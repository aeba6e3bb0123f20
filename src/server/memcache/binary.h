// The binary protocol: from the bytes that a connection has so far to one request.
//
//   0       1        2              4         5       6          8           12       16
//   | 0x80  | opcode | key bytes    | extras  | type  | vbucket  | body bytes | opaque | cas (8) |
//   | extras | key | value |        the body; numbers are big-endian; type and vbucket mean nothing
//
// | extras of                     | are                                          |
// | set, add, replace             | flags 4, exptime 4                           |
// | incr, decr                    | delta 8, initial 8, exptime 4 (all ones: do not create) |
// | touch, gat                    | exptime 4                                    |
// | flush                         | none, or the delay 4                         |
//
// SASL's commands have the mechanism as the key, and its message as the value, which is part of the command.
// A set, add or replace with a cas is a kCas, whichever it is.
//
//  1 what is wrong with a header is said when the header is there: no length of it is waited for that a
//    request may not have
//  2 so a request is at most kHeaderBytes + 20 + kKeyBytesMax bytes without its value; SASL's also have
//    kCredentialsBytesMost
#pragma once
#include <string_view>

#include "server/memcache/command.h"
#include "server/memcache/parsed.h"

namespace server::memcache {

inline constexpr size_t kHeaderBytes = 24;

// The request that `input` begins with. Fills `command` also when it is refused, as far as the reply needs
// it. What is consumed is header, extras and key; command.value_bytes follow.
//
// As memcached has it: lengths that contradict each other, or that the opcode does not allow (kInvalid), and
// a key that is too long close the connection; so does a first byte that is not 0x80, without a word. An
// opcode that is not known and a value that is too large are refused, and their bodies
// swallowed. Unlike memcached, gets, touches and stats with bytes behind the key are refused. Cost: inline.
Parsed parse_binary(std::string_view input, uint64_t item_bytes_max, Command& command);

}  // namespace server::memcache
