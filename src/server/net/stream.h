// Stream: a client's connection as bytes: those that the client has sent and that have not been used yet, and those that it is to be sent.
//
//   Stream stream(pool, {});
//   stream.take(descriptor);
//   while (*stream.receive())                  sends the replies, waits for more input
//     while (size_t bytes = one request of stream.input()) {
//       write to stream.room(100), stream.wrote(bytes)...
//       stream.consume(bytes);
//     }
//   stream.send();
//
//   in    | consumed | input() |   room    |            kInputBytes of the pool, more while a request needs it
//   out   | text | value, where it lies | text | ...    text in kTextBytes of the pool
//
// The replies to all requests that are answered before the next receive() go with one system call. A connection on which nothing happens has no
// memory of the pool. A client that sends faster than it is answered does not keep its worker to itself: a receive takes at most kInputBytes, and if
// it took as many, or there were more than it had room for, the worker's other tasks run before the next one.
//
// Errors: those of receiving and sending, ETIMEDOUT for a client that is too slow, ENOMEM. After one only close() is left.
// Thread contract: used by one task, except as noted.
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
  // The connection ends when nothing has come for idle_ns, and when the client has taken nothing for send_ns of what it is sent.
  uint64_t idle_ns = task::kNever;
  uint64_t send_ns = 60'000'000'000;
  // It also ends so long after begin_exchange(), however much comes and goes.
  uint64_t exchange_ns = task::kNever;
  size_t input_bytes_max = 16 << 20;  // of input that is kept: the longest request, without its values
};

class Stream {
 public:
  static constexpr size_t kInputBytes = 16 << 10;
  static constexpr size_t kTextBytes = 16 << 10;
  // Values up to this are copied behind the text, which costs less than a piece of their own.
  static constexpr size_t kMaxCopiedBytes = 2 << 10;
  static constexpr size_t kMaxPieces = 64;
  static constexpr size_t kMaxKeptBytes = 1 << 20;  // of values that are kept until they have been sent
  static constexpr size_t kPartBytes = 1 << 20;     // of a large value that is in memory at a time

  // The pool is the worker's, and outlives the stream.
  Stream(storage::BufferPool& pool, const StreamOptions& options) : pool_(pool), options_(options) {}

  // As Channel::take.
  base::Expected<void> take(int descriptor, Tls* tls = nullptr) { return channel_.take(descriptor, tls); }
  void close();
  int descriptor() const { return channel_.descriptor(); }

  // --- what comes ---

  // To be called when the client may begin a request, if each has to arrive and be answered within exchange_ns. If it is never called, none has to.
  void begin_exchange();
  // All that has been received and not consumed. Valid until the next call that receives or consumes.
  std::string_view input() const { return {at(first_), end_ - first_}; }
  // Removes the first bytes of the input.
  void consume(size_t bytes);
  // Sends what is to be sent, and waits until there is more input. False: no more will come, since the client has ended its side, or since the
  // server drains (drain()) and no request has begun. Errors: also EMSGSIZE, when the input has input_bytes_max bytes already.
  base::Expected<bool> receive();
  // The same, but waits for this long at most; none: nothing has come. REQUIRES: nothing is to be sent.
  base::Expected<std::optional<bool>> receive_within(uint64_t ns);
  // Receives until the input has this many bytes. False: as receive(). REQUIRES: bytes <= input_bytes_max.
  base::Expected<bool> receive_at_least(size_t bytes);
  // Moves the next memory.size() bytes, from byte `from` of the input on, out of the stream into `memory`: first those that are in the input, then
  // those that still come. What the client sends behind them will be in the input at `from`. Sends what is to be sent before it waits. False: the
  // client has ended its side before.
  base::Expected<bool> receive_into(size_t from, std::span<std::byte> memory);
  // Throws the next bytes away. False: as receive().
  base::Expected<bool> skip(uint64_t bytes);

  // --- what is to be sent ---

  // Memory for at least this many bytes of text. The caller writes there, and says by wrote() how many bytes, which are then to be sent. May send
  // first. REQUIRES: bytes <= kTextBytes; no other call between room() and wrote().
  base::Expected<std::span<char>> room(size_t bytes);
  void wrote(size_t bytes);
  // Text of any length, which is copied.
  base::Expected<void> write(std::string_view text);
  // To be called before the client is told how long a value is: reads the beginning of a large one, kPartBytes at most, so that one which a cache
  // has dropped since it was found can still be answered as absent (false). `items` are those that the item is from, and outlive the stream.
  base::Expected<bool> begin_value(Items& items, Item& item, uint64_t offset, uint64_t bytes);
  // The value that begin_value() was called for last, and then `end`. A small value is copied, another one kept until it has been sent; a large one
  // is read and sent a part at a time. Errors: also those of reading it, as when a cache drops it after its first part. Some of it may have been
  // sent then: only close() is left.
  base::Expected<void> write_value(Items& items, Item&& item, std::string_view end);
  // The same for part of a value, as begin_value() was told.
  base::Expected<void> write_part(Items& items, Item& item, uint64_t offset, uint64_t bytes);
  // Sends all that is to be sent.
  base::Expected<void> send();
  // The same, within this time in all.
  base::Expected<void> send_within(uint64_t ns);
  // Forgets what is to be sent.
  void drop_output();
  // How much is received from a client that takes nothing of what it is sent; as of Channel.
  void keep_ahead(size_t bytes_max) { channel_.keep_ahead(bytes_max); }

  // --- called by the server, on the same worker ---

  // Lets the connection end as soon as no request is under way: from now on receive() returns false where there is no input. Returns whether the
  // connection's task waits for a request now: then the caller cancels the task, which ends that wait.
  bool drain();
  // Shuts the socket down: wherever the connection's task waits for its client, it goes on, with an error or the end of the stream. May be called by
  // any thread, while the stream has a descriptor.
  void cut_off();
  // The connection has ended because nothing came for StreamOptions::idle_ns, or not all in exchange_ns.
  bool was_idle() const { return was_idle_; }
  // These two may be called by any thread.
  uint64_t received_bytes() const { return received_bytes_.load(std::memory_order_relaxed); }
  uint64_t sent_bytes() const { return sent_bytes_.load(std::memory_order_relaxed); }

  // The memory that it has from the pool and the OS, without that of values.
  size_t memory_bytes() const { return in_.bytes().size() + text_.bytes().size(); }
  storage::BufferPool& pool() { return pool_; }

 private:
  char* at(size_t offset) const { return reinterpret_cast<char*>(in_.bytes().data()) + offset; }
  task::Limit limit_of(uint64_t ns, bool cancellable) const;
  base::Expected<void> make_room();
  base::Expected<bool> wait(uint64_t ns);
  base::Expected<bool> receive_in(uint64_t ns);
  base::Expected<std::optional<size_t>> receive_now(std::span<std::byte> to);
  void end_text_piece();
  base::Expected<void> send_by(const task::Limit& limit);

  Channel channel_;
  storage::BufferPool& pool_;
  const StreamOptions options_;
  uint64_t exchange_end_ns_ = task::kNever;
  // In.
  Memory in_;
  size_t first_ = 0, end_ = 0;  // the input, in in_
  bool is_draining_ = false;
  bool is_skipping_ = false;  // the rest of a request, so one is under way though there is no input
  bool waits_for_request_ = false;
  bool was_idle_ = false;
  std::atomic<uint64_t> received_bytes_{0};
  // Out.
  Memory text_;
  size_t text_bytes_ = 0;  // how much of text_ is written
  size_t text_first_ = 0;  // where the text that is not in pieces_ yet begins
  std::vector<iovec> pieces_;
  std::vector<Item> kept_;
  size_t kept_bytes_ = 0;
  Memory part_;  // for part of a large value
  size_t part_bytes_ = 0;
  std::atomic<uint64_t> sent_bytes_{0};
};

}  // namespace server
