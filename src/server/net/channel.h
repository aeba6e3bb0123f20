// Channel: the bytes of a client's connection, as they are or by TLS.
//
//   Channel channel;
//   channel.take(descriptor, nullptr);               or &tls
//   for (;;) {
//     auto received = channel.receive(memory, limit);   // none: nothing is there now
//     if (!*received) channel.wait_for_input(limit);
//   }
//
//  1 TLS's handshake, and what else it says by itself, happens in receive() and send(): nobody else knows of it
//  2 a session is between its client's bytes and the socket's, and waits for nothing: what it writes is kept here until the socket
//    takes it
//
// Errors: those of the socket; EPROTO for what is no TLS, or is refused by it: then only close() is left.
// Thread contract: of one task.
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

  // Takes the descriptor over; by TLS if there is one, which outlives this. Errors: as task::Socket::take; then it is closed.
  base::Expected<void> take(int descriptor, Tls* tls);
  // Says goodbye, as far as that needs no waiting. REQUIRES: no task waits for it.
  void close();
  int descriptor() const { return socket_.descriptor(); }

  // Bytes received, without waiting for any; 0 at the end, none if nothing is there. What TLS has to say is sent, for which it may wait.
  base::Expected<std::optional<size_t>> receive(std::span<std::byte> to, const task::Limit& limit);
  // Something may be there to be received: there was a wait since, or the last receive left some. REQUIRES of a wait for input: nothing is.
  bool has_more() const { return has_more_; }
  base::Expected<void> wait_for_input(const task::Limit& limit);
  // Sends all of the pieces, and changes them.
  base::Expected<void> send(std::span<iovec> pieces, const task::Limit& limit);

 private:
  friend struct ChannelBio;
  enum class Wants : uint8_t { kNothing, kInput, kClosed };

  // A session, and what is between it and the socket: of connections by TLS alone, since there are many others.
  struct Secure {
    TlsSession session;
    std::vector<std::byte> kept;               // the session's, not sent yet
    std::optional<base::Error> error;          // of the socket, when the session read
    bool has_more = false, has_ended = false;  // of the socket
    bool is_broken = false;                    // nothing more can be said
  };

  base::Expected<Wants> wants_after(int result, const char* doing);
  base::Expected<void> send_kept(const task::Limit& limit);
  base::Expected<void> write(std::span<const std::byte> bytes, const task::Limit& limit);

  task::Socket socket_;
  bool has_more_ = false;
  std::unique_ptr<Secure> secure_;
};

}  // namespace server
