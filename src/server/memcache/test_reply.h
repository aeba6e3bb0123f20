// For tests: a reply as text.
#pragma once
#include <string>

#include "server/memcache/reply_buffer.h"

namespace server::memcache {

// What `write` writes to a ReplyBuffer that has room for one reply.
template <class Write>
std::string written(Write write) {
  char memory[kMaxReplyBytes];
  ReplyBuffer reply{std::span(memory)};
  write(reply);
  return std::string(reply.written());
}

}  // namespace server::memcache
