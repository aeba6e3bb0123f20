// RespAnswer: writes the answers to a Redis client to its stream, piece by piece; or keeps them for a while, where nobody may wait for the client.
//
// Invariants
//  1 after an error of the stream, or of a value that was half written, nothing more is written; result() keeps the error
//  2 nothing is written while is_silent (CLIENT REPLY)
//  3 from keep() to send_kept() nothing goes to the stream
//
// Thread contract: that of the stream. Each call costs what it writes, and may send.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/check.h"
#include "server/items/items.h"
#include "server/net/stream.h"
#include "server/resp/refusal.h"

namespace server {

class RespAnswer {
 public:
  // Both outlive the answer.
  RespAnswer(Stream& stream, Items& items) : stream_(stream), items_(items) {}

  resp::Protocol protocol = resp::Protocol::kResp2;
  bool is_silent = false;

  const base::Expected<void>& result() const { return result_; }

  // Calls `write` with a resp::ReplyWriter, and a second time if its output does not fit behind what is still to be sent. REQUIRES: it writes at
  // most Stream::kTextBytes.
  template <class Write>
  void write(const Write& write) {
    if (!is_open() || write_if_it_fits(kBytesAtOnce, write)) return;
    if (!kept_)
      if (auto sent = stream_.send(); !sent) return fail(sent.error());
    CHECK(write_if_it_fits(Stream::kTextBytes, write) || !is_open());
  }

  void simple(std::string_view text);
  void ok() { simple("OK"); }
  // The text begins with its code ("ERR ..."), and has resp::kMaxErrorBytes bytes at most.
  void error(std::string_view text);
  void integer(int64_t number);
  void null();
  void null_array();
  void array(uint64_t count);
  void map(uint64_t count);
  // Text of any length; text_for_people() is a verbatim string in RESP3.
  void bulk(std::string_view text);
  void text_for_people(std::string_view text);
  // The value of the item; null if it was not found.
  void value(Item&& item);
  void part_of_value(Item& item, uint64_t offset, uint64_t bytes);
  void refuse(const resp::Refusal& refusal, resp::Arguments arguments = {});
  void refuse(resp::Problem problem) { refuse(resp::Refusal{problem}); }
  // A call of Items has failed.
  void failed(const base::Error& error);

  // From now on answers are kept, up to this many bytes; while they grow they may take three times as much memory. REQUIRES: none are kept.
  void keep(uint64_t bytes_max);
  // Sends what was kept, or an error if that exceeded the bound. REQUIRES: keep() before.
  void send_kept();

 private:
  static constexpr size_t kBytesAtOnce = 1024;  // enough for nearly all pieces
  struct Kept {
    uint64_t bytes_max = 0;
    std::string memory = {};
    size_t bytes = 0;      // how much of it is written
    bool is_over = false;  // the bound was exceeded, and nothing is kept
  };

  bool is_open() const { return !is_silent && result_.has_value() && !(kept_ && kept_->is_over); }
  void fail(const base::Error& error) { result_ = std::unexpected(error); }
  // Writes with room for `bytes`. False: it did not fit, and nothing was written.
  template <class Write>
  bool write_if_it_fits(size_t bytes, const Write& write) {
    auto to = room(bytes);
    if (!to) {
      fail(to.error());
      return true;
    }
    resp::ReplyWriter reply(*to, protocol);
    write(reply);
    if (reply.is_full()) return false;
    wrote(reply.size());
    return true;
  }
  base::Expected<std::span<char>> room(size_t bytes);
  void wrote(size_t bytes);
  void raw(std::string_view text);
  base::Expected<bool> keep_value(Item& item, uint64_t offset, uint64_t bytes);
  void give_up_kept();

  Stream& stream_;
  Items& items_;
  base::Expected<void> result_;
  std::optional<Kept> kept_;
};

}  // namespace server
