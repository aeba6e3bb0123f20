// Replies of the binary protocol: 24 bytes, extras, key, value.
//
//   0       1        2              4         5       6          8           12       16
//   | 0x81  | opcode | key bytes    | extras  | 0     | status   | body bytes | opaque | cas (8) |
//
// REQUIRES of all: room for kMaxReplyBytes bytes, or as said. Opcode and opaque are those of the command, also if it
// was refused. No call allocates.
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
// The text of a reply with this status; empty for kSuccess.
std::string_view message_of(Status status);

// A reply with the status, and for an error its message. If a get with wants_key has found nothing, the reply has the
// key instead.
void write_status(ReplyBuffer& reply, const Command& command, Status status, uint64_t cas = 0);
// Header, flags and, with wants_key, the key of a get or gat that has found an item; the value follows. For a touch
// value_bytes is 0, and nothing follows.
void write_found(ReplyBuffer& reply, const Command& command, uint32_t flags, uint64_t value_bytes,
                 uint64_t cas);
// The new number of an incr or decr.
void write_binary_number(ReplyBuffer& reply, const Command& command, uint64_t number, uint64_t cas);
// A version, or what SASL says.
void write_binary_text(ReplyBuffer& reply, const Command& command, std::string_view text);
// One statistic; one with an empty name and value ends them. REQUIRES: room for name, value and kBinaryStatBytes.
void write_binary_stat(ReplyBuffer& reply, const Command& command, std::string_view name,
                       std::string_view value);
inline constexpr size_t kBinaryStatBytes = 24;

}  // namespace server::memcache
