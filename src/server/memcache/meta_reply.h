// Replies of meta commands: two letters that say what became of the command, and the flags that the command
// asked for, in its order.
//
//   HD done          VA BYTES done, the value follows
//   EN no item (mg, me)    NF no item (others)    NS not stored    EX another cas unique
//   MN to mn         ME KEY ... to me
//
// | flag     | of            | says                                                               |
// | O, k     | all           | opaque, key: as they were given. Behind a key in base64 comes a b  |
// | c        | done, and ms  | the item's cas unique; of an ms that stored nothing 0              |
// | t        | mg, ma        | seconds left, -1 if it does not end                                |
// | s        | mg, done ms   | bytes of the value                                                 |
// | f l h    | mg            | flags, seconds since it was last used, was it ever used            |
// | Z X W    | mg, unasked   | somebody was told to fetch it anew; it is stale; you are to fetch it anew |
//
// Errors are lines of text_reply.h. REQUIRES of all: room for kMaxReplyBytes bytes. Cost: inline, no
// allocation.
#pragma once
#include <cstdint>

#include "server/memcache/command.h"
#include "server/memcache/reply_buffer.h"
#include "server/memcache/result.h"

namespace server::memcache {

// What a reply may say of an item. Only what the command asks for, or answers with, has to be filled in.
struct MetaItem {
  uint64_t value_bytes = 0;
  uint32_t flags = 0;
  uint64_t cas = 0;
  int64_t seconds_left = -1;
  uint64_t idle_seconds = 0;
  bool was_used = false;
  bool is_stale = false;
  bool is_won = false;   // this reply tells its client to fetch it anew
  bool was_won = false;  // an earlier one did
};

// The line for mg, ms, md and ma, and MN for mn. After a VA line (answers_with_value()) the value and "\r\n"
// follow. REQUIRES: no error.
void write_meta(ReplyBuffer& reply, const Command& command, Result result, const MetaItem& item);
bool answers_with_value(const Command& command, Result result);

// The line for me.
void write_meta_debug(ReplyBuffer& reply, const Command& command, const MetaItem& item);
void write_meta_debug_miss(ReplyBuffer& reply);

}  // namespace server::memcache
