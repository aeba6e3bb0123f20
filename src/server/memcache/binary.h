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
//  1 a wrong header is refused as soon as it has come: the parser never waits for a body of a length that the
//    request may not have
//  2 so without its value a request has kHeaderBytes + 20 + kMaxKeyBytes bytes at most; SASL's commands may have
//    kMaxCredentialsBytes more
#pragma once
#include <string_view>

#include "server/memcache/command.h"
#include "server/memcache/parsed.h"

namespace server::memcache {

inline constexpr size_t kHeaderBytes = 24;

// Parses the request that `input` begins with. If it is refused, `command` is filled as far as the reply needs it.
// Header, extras and key are consumed; command.value_bytes bytes follow.
//
// As in memcached, the connection is closed after lengths that contradict each other or that the opcode does not
// allow (kInvalid), after a key that is too long, and, without a reply, after a first byte other than 0x80. An unknown
// opcode and a value that is too large are refused, and their bodies swallowed. Unlike in memcached, gets, touches
// and stats with bytes behind the key are refused.
Parsed parse_binary(std::string_view input, uint64_t item_bytes_max, Command& command);

}  // namespace server::memcache
