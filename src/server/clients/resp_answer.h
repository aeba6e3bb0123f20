// RespAnswer: writes what a client of Redis's protocol is answered to its stream, one piece after the other.
//
// Invariants
//  1 after an error of the stream, or of a value that was half written, nothing more is written; result() keeps the error
//  2 nothing is written while is_silent (CLIENT REPLY)
//
// Thread contract: that of the stream. Each call costs what it writes, and may send.
#pragma once
#include <cstdint>
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

  // Calls `write` with a resp::ReplyWriter, and a second time if what it writes does not fit behind what is to be sent. REQUIRES: it writes
  // Stream::kTextBytes at most.
  template <class Write>
  void write(const Write& write) {
    if (!is_open() || write_if_it_fits(kBytesAtOnce, write)) return;
    if (auto sent = stream_.send(); !sent) return fail(sent.error());
    CHECK(write_if_it_fits(Stream::kTextBytes, write) || !is_open());
  }

  void simple(std::string_view text);
  void ok() { simple("OK"); }
  // The text begins with its code ("ERR ..."), and has resp::kErrorBytesMax bytes at most.
  void error(std::string_view text);
  void integer(int64_t number);
  void null();
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

 private:
  static constexpr size_t kBytesAtOnce = 1024;  // more than nearly all pieces have

  bool is_open() const { return !is_silent && result_.has_value(); }
  void fail(const base::Error& error) { result_ = std::unexpected(error); }
  // Writes with room for `bytes`. False: it did not fit, and nothing was written.
  template <class Write>
  bool write_if_it_fits(size_t bytes, const Write& write) {
    auto room = stream_.room(bytes);
    if (!room) {
      fail(room.error());
      return true;
    }
    resp::ReplyWriter reply(*room, protocol);
    write(reply);
    if (reply.is_full()) return false;
    stream_.wrote(reply.size());
    return true;
  }
  void raw(std::string_view text);

  Stream& stream_;
  Items& items_;
  base::Expected<void> result_;
};

}  // namespace server
