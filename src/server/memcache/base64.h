// Base64 (RFC 4648, section 4: with '+' and '/', filled up with '='), in which meta commands write keys that are not
// text.
#pragma once
#include <cstddef>
#include <span>
#include <string_view>

namespace server::memcache {

// Decodes `from` to the front of `to`, and returns how many bytes that are; 0: `from` is empty, or no encoder would
// have written it. So two different texts never stand for the same bytes. memcached is less strict: it ignores other
// characters, and what follows the end. REQUIRES: to.size() >= from.size() / 4 * 3.
size_t decode_base64(std::string_view from, std::span<char> to);

}  // namespace server::memcache
