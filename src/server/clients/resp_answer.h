// RespAnswer: what a client of Redis's protocol is answered, a piece after the other, into its stream.
//
// Invariants
//  1 after the first error of the stream, or of a value that was half written, nothing is written any more; result() keeps the error
//  2 while it is silent (CLIENT REPLY) nothing is written
//
// Thread contract: as the stream's. Each call costs what it writes, and may send.
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
  // Both outlive it.
  RespAnswer(Stream& stream, Items& items) : stream_(stream), items_(items) {}

  resp::Protocol protocol = resp::Protocol::kResp2;
  bool is_silent = false;

  const base::Expected<void>& result() const { return result_; }

  // What `write` writes to a resp::ReplyWriter, as a whole; it may be called twice. REQUIRES: at most Stream::kTextBytes.
  template <class Write>
  void write(const Write& write) {
    if (!is_open() || write_if_it_fits(kBytesAtOnce, write)) return;
    if (auto sent = stream_.send(); !sent) return fail(sent.error());
    CHECK(write_if_it_fits(Stream::kTextBytes, write) || !is_open());
  }

  void simple(std::string_view text);
  void ok() { simple("OK"); }
  // The text begins with its code, and has at most resp::kErrorBytesMax.
  void error(std::string_view text);
  void integer(int64_t number);
  void null();
  void array(uint64_t count);
  void map(uint64_t count);
  // Of any length.
  void bulk(std::string_view text);
  void text_for_people(std::string_view text);
  // Null if it was not found.
  void value(Item&& item);
  void part_of_value(Item& item, uint64_t offset, uint64_t bytes);
  void refuse(const resp::Refusal& refusal, resp::Arguments arguments = {});
  void refuse(resp::Problem problem) { refuse(resp::Refusal{problem}); }
  // A call of Items did not do what it should.
  void failed(const base::Error& error);

 private:
  static constexpr size_t kBytesAtOnce = 1024;  // as a rule

  bool is_open() const { return !is_silent && result_.has_value(); }
  void fail(const base::Error& error) { result_ = std::unexpected(error); }
  // False: it does not fit behind what is to be sent, and is not there.
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
