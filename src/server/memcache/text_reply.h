// Replies of the text protocol: those of classic commands, and the lines that classic and meta ones have in
// common.
//
// REQUIRES of all: room for kReplyBytesMax bytes, or as said. Thread contract: the buffer's. Cost: inline, no
// allocation.
#pragma once
#include <optional>
#include <string_view>

#include "server/memcache/command.h"
#include "server/memcache/reply_buffer.h"
#include "server/memcache/result.h"

namespace server::memcache {

// One line: `text`, which is one of messages.h or as short, and its end.
void write_line(ReplyBuffer& reply, std::string_view text);

// What a classic or meta command says of an error, and a classic one of all results but values and numbers.
// Without the line's end. REQUIRES: the command is one that may have this result.
std::string_view line_of(const Command& command, Result result);

// VALUE KEY FLAGS BYTES [CAS]; the value and "\r\n" follow, after the last item of the last command of a get
// the line END.
void write_value_line(ReplyBuffer& reply, std::string_view key, uint32_t flags, uint64_t value_bytes,
                      std::optional<uint64_t> cas);
// What incr and decr have made of it; also the value behind the VA line of an ma.
void write_number(ReplyBuffer& reply, uint64_t number);
void write_version(ReplyBuffer& reply, std::string_view version);
// STAT NAME VALUE; the line END ends them. Without a value: STAT NAME. REQUIRES: room for both and
// kStatBytes.
void write_stat(ReplyBuffer& reply, std::string_view name, std::string_view value);
inline constexpr size_t kStatBytes = 8;

}  // namespace server::memcache
