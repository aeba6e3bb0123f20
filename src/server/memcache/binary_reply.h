// Replies of the binary protocol: 24 bytes, extras, key, value.
//
//   0       1        2              4         5       6          8           12       16
//   | 0x81  | opcode | key bytes    | extras  | 0     | status   | body bytes | opaque | cas (8) |
//
// REQUIRES of all: room for kReplyBytesMax bytes, or as said. Opcode and opaque are those of the command,
// also of a refused one. Cost: inline, no allocation.
#pragma once
#include <cstdint>
#include <string_view>

#include "server/memcache/command.h"
#include "server/memcache/parsed.h"
#include "server/memcache/reply_buffer.h"
#include "server/memcache/result.h"

namespace server::memcache {

// kDone and kCreated: kSuccess.
Status status_of(const Command& command, Result result);
// What replies with this status say. Empty: kSuccess.
std::string_view message_of(Status status);

// Nothing but the status; of an error what it means. A get with key (wants_key) that found nothing says its
// key instead.
void write_status(ReplyBuffer& reply, const Command& command, Status status, uint64_t cas = 0);
// Header, flags and, if the command wants it, the key of a get or gat that found something; the value
// follows. Of a touch: with value_bytes 0, and nothing follows.
void write_found(ReplyBuffer& reply, const Command& command, uint32_t flags, uint64_t value_bytes,
                 uint64_t cas);
// What incr and decr have made of it.
void write_binary_number(ReplyBuffer& reply, const Command& command, uint64_t number, uint64_t cas);
// A version, or what SASL says.
void write_binary_text(ReplyBuffer& reply, const Command& command, std::string_view text);
// One statistic; an empty name and value end them. REQUIRES: room for both and kBinaryStatBytes.
void write_binary_stat(ReplyBuffer& reply, const Command& command, std::string_view name,
                       std::string_view value);
inline constexpr size_t kBinaryStatBytes = 24;

}  // namespace server::memcache
