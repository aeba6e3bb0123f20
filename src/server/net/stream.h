// Stream: a client's connection as bytes: what it has sent and nobody has used yet, and what it is to be sent.
//
//   Stream stream(pool, {});
//   stream.take(descriptor);
//   while (*stream.receive())                  sends what is to be sent, waits for more
//     while (size_t bytes = one request of stream.input()) {
//       write to stream.room(100), stream.wrote(bytes)...
//       stream.consume(bytes);
//     }
//   stream.send();
//
//   in    | consumed | input() |   room    |            kInputBytes of the pool, more while a request needs it
//   out   | text | value, where it lies | text | ...    text in kTextBytes of the pool
//
// Who answers all requests that have come before it waits for more sends all their replies with one system call. A connection on which
// nothing happens has no memory of the pool. Who sends faster than he is answered is not answered alone: whenever the input was full, the worker's
// other tasks run before there is more.
//
// Errors: those of receiving and sending, ETIMEDOUT for a client that is too slow, ENOMEM. After one only close() is left.
// Thread contract: of one task.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "server/items/items.h"
#include "server/net/channel.h"
#include "server/net/memory.h"

namespace server {

struct StreamOptions {
  uint64_t idle_ns = task::kNever;    // the connection ends when nothing comes for so long
  uint64_t send_ns = 60'000'000'000;  // and when what is to be sent at a time has not gone in so long
  size_t input_bytes_most = 1 << 20;  // that are kept and not used: the longest request, without its values
};

class Stream {
 public:
  static constexpr size_t kInputBytes = 16 << 10;
  static constexpr size_t kTextBytes = 16 << 10;
  static constexpr size_t kCopiedBytesMost =
      2 << 10;  // values up to this are copied: a piece of its own costs more
  static constexpr size_t kPiecesMost = 64;
  static constexpr size_t kKeptBytesMost = 1 << 20;  // of values that are kept until they have been sent
  static constexpr size_t kPartBytes = 1 << 20;      // of a large value

  // The pool, which is the worker's, outlives it.
  Stream(storage::BufferPool& pool, const StreamOptions& options) : pool_(pool), options_(options) {}

  // As Channel::take.
  base::Expected<void> take(int descriptor, Tls* tls = nullptr) { return channel_.take(descriptor, tls); }
  void close();
  int descriptor() const { return channel_.descriptor(); }

  // --- what comes ---

  // Until the next call that receives or consumes.
  std::string_view input() const { return {at(first_), end_ - first_}; }
  // Its first bytes are not needed any more.
  void consume(size_t bytes);
  // Sends what is to be sent, and waits until there is more input. False: there is nothing more to come: the client has ended its side, or
  // the server drains (drain()) and no request has begun. Errors: also EMSGSIZE: there are input_bytes_most, of one request.
  base::Expected<bool> receive();
  // The same, in so long a time; none: nothing has come. REQUIRES: nothing is to be sent.
  base::Expected<std::optional<bool>> receive_within(uint64_t ns);
  // So often, until input() has so many. REQUIRES: bytes <= input_bytes_most.
  base::Expected<bool> receive_at_least(size_t bytes);
  // What comes from byte `from` of the input on goes to memory instead, which is filled; the input ends at `from` then, and goes on behind it.
  // Sends first if it has to wait. False: the client has ended its side before.
  base::Expected<bool> receive_into(size_t from, std::span<std::byte> memory);
  // The next bytes are thrown away, and false: as above.
  base::Expected<bool> skip(uint64_t bytes);

  // --- what is to be sent ---

  // Memory for at least so many bytes, whose first ones are text that is to be sent once wrote() has said how many. May send. REQUIRES: bytes <=
  // kTextBytes; no other call of this in between.
  base::Expected<std::span<char>> room(size_t bytes);
  void wrote(size_t bytes);
  // Text of any length, which is copied.
  base::Expected<void> write(std::string_view text);
  // Before a client is told of an item's value, or of that part of it: of a large one as much is read as is kept in memory at a time, kPartBytes. False: a cache
  // has dropped it since it was found. `items` is what the item is of, and outlives this.
  base::Expected<bool> begin_value(Items& items, Item& item, uint64_t offset, uint64_t bytes);
  // The value of the item that was begun last, and then `end`. Small values are copied, others are kept until they have been sent, and large ones read and
  // sent a part at a time. Errors: also those of reading it, dropped by a cache after its first part; some may have gone, and the connection is of no use any more.
  base::Expected<void> write_value(Items& items, Item&& item, std::string_view end);
  // The same of the part that was begun last.
  base::Expected<void> write_part(Items& items, Item& item, uint64_t offset, uint64_t bytes);
  // Sends all that is to be sent.
  base::Expected<void> send();
  // The same, in so long a time in all.
  base::Expected<void> send_within(uint64_t ns);
  // Forgets what is to be sent.
  void drop_output();

  // --- of the server, on the same worker ---

  // The connection is to end when no request is under way: the next receive() without input says that nothing more comes; one that waits
  // now ends if its task is cancelled. Returns if that is so.
  bool drain();
  // Nothing comes or goes any more: its task goes on, wherever it waits for its client, with an error or the end. By anybody, while it has
  // a descriptor.
  void cut_off();
  // It has ended since nothing came for StreamOptions::idle_ns.
  bool was_idle() const { return was_idle_; }
  // These two by anybody.
  uint64_t received_bytes() const { return received_bytes_.load(std::memory_order_relaxed); }
  uint64_t sent_bytes() const { return sent_bytes_.load(std::memory_order_relaxed); }

  // Of the pool and of the OS, but for what values are kept in.
  size_t memory_bytes() const { return in_.bytes().size() + text_.bytes().size(); }
  storage::BufferPool& pool() { return pool_; }

 private:
  char* at(size_t offset) const { return reinterpret_cast<char*>(in_.bytes().data()) + offset; }
  base::Expected<void> make_room();
  base::Expected<bool> wait(uint64_t ns);
  base::Expected<bool> receive_in(uint64_t ns);
  base::Expected<std::optional<size_t>> receive_now(std::span<std::byte> to);
  void end_text_piece();
  base::Expected<void> send_by(const task::Limit& limit);

  Channel channel_;
  storage::BufferPool& pool_;
  const StreamOptions options_;
  // In.
  Memory in_;
  size_t first_ = 0, end_ = 0;  // of what it has
  bool is_draining_ = false;
  bool waits_for_request_ = false;
  bool was_idle_ = false;
  std::atomic<uint64_t> received_bytes_{0};
  // Out.
  Memory text_;
  size_t text_bytes_ = 0;  // written
  size_t text_first_ = 0;  // of them, of the piece that is not among the pieces yet
  std::vector<iovec> pieces_;
  std::vector<Item> kept_;
  size_t kept_bytes_ = 0;
  Memory part_;  // of a large value
  size_t part_bytes_ = 0;
  std::atomic<uint64_t> sent_bytes_{0};
};

}  // namespace server
