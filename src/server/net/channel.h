// Channel: the bytes of a client's connection, plain or through TLS.
//
//   Channel channel;
//   channel.take(descriptor, nullptr);               or &tls
//   for (;;) {
//     auto received = channel.receive(memory, limit);   // none: nothing is there now
//     if (!*received) channel.wait_for_input(limit);
//   }
//
//  1 TLS's handshake, and whatever else TLS sends by itself, happens within receive() and send(): callers need not know of it
//  2 OpenSSL's session never waits: it reads what the socket has, and what it writes is kept here until the socket takes it
//  3 while the socket takes nothing, what the client sends may be received ahead (keep_ahead()), as it comes, encrypted or not. The socket is asked
//    for more only when all of that has been taken from here
//  4 if a client sends nothing but what TLS handles itself, such as key updates, receive() takes some and returns: this may go on for ever, and each
//    message costs as much as many requests
//
// Errors: those of the socket; EPROTO for bytes that are no TLS, or that TLS refuses. After one only close() is left.
// Thread contract: used by one task.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "server/net/tls.h"
#include "task/socket.h"

struct bio_st;

namespace server {

class Channel {
 public:
  Channel() = default;
  ~Channel() { close(); }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Takes the descriptor over. If `tls` is not null the connection speaks TLS, and `tls` outlives this. Errors: as task::Socket::take; then the
  // descriptor is closed.
  base::Expected<void> take(int descriptor, Tls* tls);
  // Sends TLS's close_notify, as far as that needs no waiting. REQUIRES: no task waits for the channel.
  void close();
  int descriptor() const { return socket_.descriptor(); }

  // Returns how many bytes were received, without waiting for them: 0 at the end of the stream, none if there are none now. It may wait to send TLS's
  // own messages.
  base::Expected<std::optional<size_t>> receive(std::span<std::byte> to, const task::Limit& limit);
  // There may be more to receive: the last receive() filled its memory or left some to the next one, wait_for_input() has returned since, or some was
  // received ahead.
  bool has_more() const { return has_more_ || !ahead_.empty(); }
  // REQUIRES: !has_more().
  base::Expected<void> wait_for_input(const task::Limit& limit);
  // Sends all of the pieces, and modifies them. The limit's time applies to each wait in which nothing is sent.
  base::Expected<void> send(std::span<iovec> pieces, const task::Limit& limit);
  // From now on at most about so many bytes are received ahead; 0, as at the beginning: none. Otherwise a client that sends many requests before it
  // takes the first answer, and a server that takes no more of them before its answers are sent, would wait for each other.
  void keep_ahead(size_t bytes_max) { ahead_bytes_max_ = bytes_max; }

 private:
  friend struct ChannelBio;
  enum class Wants : uint8_t { kNothing, kInput, kClosed };

  // A session, and what is between it and the socket. Only connections by TLS have one, so that the others stay small.
  struct Secure {
    TlsSession session;
    std::vector<std::byte> kept;               // what the session has written, until it is sent
    std::optional<base::Error> error;          // of the socket, when the session read from it
    bool has_more = false, has_ended = false;  // the socket may have more; its stream has ended
    bool is_broken = false;                    // the session can send nothing more
    size_t read_bytes = 0;                     // how much the session has read in its present call
    bool is_put_off = false;                   // it would have read more in that call than it may
  };

  base::Expected<std::optional<size_t>> receive_raw(void* to, size_t bytes, bool& has_more);
  base::Expected<void> send_raw(std::span<iovec> pieces, const task::Limit& limit);
  bool receive_ahead();
  void begin_call();
  base::Expected<Wants> wants_after(int result, const char* doing);
  base::Expected<void> send_kept(const task::Limit& limit);
  base::Expected<void> write(std::span<const std::byte> bytes, const task::Limit& limit);

  task::Socket socket_;
  bool has_more_ = false;
  // Received ahead, from ahead_taken_bytes_ on; empty, and without memory, when all of it was taken.
  std::vector<std::byte> ahead_;
  size_t ahead_taken_bytes_ = 0;
  size_t ahead_bytes_max_ = 0;
  std::unique_ptr<Secure> secure_;
};

}  // namespace server
