// Flags of meta commands: a letter, and behind it perhaps an argument: "mg KEY v T30 Oabc".
//
// Letters that say what is to be done become fields of Command (flags, exptime, cas, ...). The rest is here: what is
// about the reply, and what only meta commands have.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"

namespace server::memcache {

class MetaFlags {
 public:
  // Was this letter given? Letters that mean nothing to a command are allowed, and ignored.
  bool has(char letter) const { return (seen_ >> (letter - 'A') & 1) != 0; }
  // The letters that replies repeat or fill in (kReplied), in the order in which they were given.
  std::string_view replied() const { return {replied_, replied_count_}; }

  std::string_view key;         // as it was written, in base64 if has('b')
  std::string_view opaque;      // O: without the letter, at most kMaxOpaqueBytes
  int64_t recache_exptime = 0;  // R: a client that sees an item that ends before then is to fetch it anew

  // memcached heeds flags in their order: what stands before T, or N, is about the expiry that the item has until then.
  bool tells_before_touch() const { return tells_before_touch_; }    // t stands before T
  bool tells_before_making() const { return tells_before_making_; }  // t before N
  bool claims_before_touch() const { return claims_before_touch_; }  // R before T
  bool makes_before_touch() const { return makes_before_touch_; }    // N before T
  // To be called when T, and when N, has been added.
  void note_touch() {
    tells_before_touch_ = has('t');
    claims_before_touch_ = has('R');
    makes_before_touch_ = has('N');
  }
  void note_making() { tells_before_making_ = has('t'); }

  static constexpr std::string_view kReplied = "Ocfhklst";
  static constexpr size_t kMaxOpaqueBytes = 31;

  // REQUIRES: an ASCII letter, not given before.
  void add(char letter) {
    CHECK(!has(letter));
    seen_ |= uint64_t{1} << (letter - 'A');
    if (kReplied.find(letter) != std::string_view::npos) replied_[replied_count_++] = letter;
  }

 private:
  uint64_t seen_ = 0;  // bit 0: 'A'
  char replied_[kReplied.size()] = {};
  uint8_t replied_count_ = 0;
  bool tells_before_touch_ = false, tells_before_making_ = false;
  bool claims_before_touch_ = false, makes_before_touch_ = false;
};

}  // namespace server::memcache
