// Replies of the text protocol: those of classic commands, and the lines that classic and meta ones have in
// common.
//
// REQUIRES of all: room for kMaxReplyBytes bytes, or as said. Thread contract: the buffer's. Cost: inline, no
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

// The line, without its end, that reports this result: for classic and meta commands an error, for classic ones also
// any other result but values and numbers. REQUIRES: the command may have this result.
std::string_view line_of(const Command& command, Result result);

// VALUE KEY FLAGS BYTES [CAS]. The value and "\r\n" follow, and behind the last item of a get the line END.
void write_value_line(ReplyBuffer& reply, std::string_view key, uint32_t flags, uint64_t value_bytes,
                      std::optional<uint64_t> cas);
// The new number of an incr or decr; also the value behind the VA line of an ma.
void write_number(ReplyBuffer& reply, uint64_t number);
void write_version(ReplyBuffer& reply, std::string_view version);
// STAT NAME VALUE, or without a value STAT NAME. The line END follows the last one. REQUIRES: room for name, value and
// kStatBytes.
void write_stat(ReplyBuffer& reply, std::string_view name, std::string_view value);
inline constexpr size_t kStatBytes = 8;

}  // namespace server::memcache
