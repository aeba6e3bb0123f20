// ReplyBuffer: memory of the caller to which replies are written, one after the other. Values are not written there,
// but sent from where they lie.
#pragma once
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "base/check.h"

namespace server::memcache {

// No reply is longer, without its value; stats are an exception (text_reply.h, binary_reply.h).
inline constexpr size_t kMaxReplyBytes = 512;

class ReplyBuffer {
 public:
  explicit ReplyBuffer(std::span<char> memory) : memory_(memory) {}

  // Text as it is, numbers in decimal. REQUIRES: there is room, which the caller has made before it writes a reply.
  ReplyBuffer& operator<<(std::string_view text) {
    CHECK_LE(text.size(), room_bytes());
    if (!text.empty()) memcpy(memory_.data() + used_bytes_, text.data(), text.size());
    used_bytes_ += text.size();
    return *this;
  }
  ReplyBuffer& operator<<(char c) { return *this << std::string_view(&c, 1); }
  ReplyBuffer& operator<<(std::integral auto number) {
    char digits[20];
    return *this << std::string_view(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
  }
  // All bytes of the number, the highest first.
  template <std::unsigned_integral Number>
  ReplyBuffer& put_big_endian(Number number) {
    for (size_t shift = 8 * sizeof number; shift > 0; shift -= 8)
      *this << static_cast<char>(number >> (shift - 8));
    return *this;
  }

  std::string_view written() const { return {memory_.data(), used_bytes_}; }
  size_t room_bytes() const { return memory_.size() - used_bytes_; }
  void clear() { used_bytes_ = 0; }

 private:
  std::span<char> memory_;
  size_t used_bytes_ = 0;
};

}  // namespace server::memcache
