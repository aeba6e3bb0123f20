// Replies: writes what goes back to a client, in the protocol that its connection speaks, into the caller's
// buffer.
//
//   what        RESP2                     RESP3 (after HELLO 3)
//   simple      +OK\r\n                   the same
//   error       -ERR text\r\n             the same
//   integer     :1\r\n                    the same
//   bulk        $3\r\nabc\r\n             the same
//   array       *2\r\n and its elements   the same
//   null        $-1\r\n                   _\r\n
//   null_array  *-1\r\n                   _\r\n
//   map         *4\r\n                    %2\r\n
//   set         *2\r\n                    ~2\r\n
//
// Invariants
//  1 a piece is written as a whole or not at all; after the first one that did not fit nothing is written until
//    rewind()
//  2 simple strings and errors are one line: each byte of a line break in their text becomes a blank
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

namespace server::resp {

enum class Protocol : uint8_t { kResp2 = 2, kResp3 = 3 };

inline constexpr std::string_view kLineEnd = "\r\n";

// Thread contract: of its caller alone. Each call costs what it writes.
class ReplyWriter {
 public:
  // The buffer is the caller's and outlives the writer.
  ReplyWriter(std::span<char> buffer, Protocol protocol) : buffer_(buffer), protocol_(protocol) {}

  Protocol protocol() const { return protocol_; }

  // What has been written, and whether something did not fit.
  std::string_view view() const { return {buffer_.data(), size_}; }
  size_t size() const { return size_; }
  bool is_full() const { return is_full_; }
  // Forgets everything from byte `size` on, and that something did not fit, so that it can be written again when the
  // buffer has been sent. REQUIRES: size <= size().
  void rewind(size_t size);

  void simple(std::string_view text);
  // The text begins with its code: "ERR syntax error". An empty one writes nothing.
  void error(std::string_view text);
  void integer(int64_t value);
  void bulk(std::string_view bytes);
  // For a string whose bytes, and kLineEnd behind them, are sent from elsewhere.
  void bulk_header(uint64_t bytes);
  void null();
  void null_array();
  // `count` elements follow, in a map that many pairs of key and value.
  void array(uint64_t count);
  void map(uint64_t count);
  void set(uint64_t count);

 private:
  // Appends the pieces, all or none.
  void put(std::initializer_list<std::string_view> pieces);
  void line(char kind, std::string_view text);
  void header(char kind, uint64_t count);

  std::span<char> buffer_;
  size_t size_ = 0;
  Protocol protocol_;
  bool is_full_ = false;
};

}  // namespace server::resp
