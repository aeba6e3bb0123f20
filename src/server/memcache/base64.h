// Base64 as RFC 4648 has it (section 4: '+' and '/', filled up with '='), which meta commands write keys in
// that are not text.
#pragma once
#include <cstddef>
#include <span>
#include <string_view>

namespace server::memcache {

// How many bytes `from` stands for, written to the front of `to`; 0: `from` is empty, or no encoder writes
// it. So who has decoded a text has the one that encodes the same bytes. memcached is less strict: it leaves
// out other characters, and what follows the end. REQUIRES: to.size() >= from.size() / 4 * 3.
size_t decode_base64(std::string_view from, std::span<char> to);

}  // namespace server::memcache
