#include "server/net/channel.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <cerrno>

#include "base/check.h"

namespace server {
namespace {

constexpr size_t kKeptBytesMost = 64 << 10;  // with more they are sent

}  // namespace

// What OpenSSL's session reads from and writes to.
struct ChannelBio {
  static Channel& of(BIO* bio) { return *static_cast<Channel*>(BIO_get_data(bio)); }

  static int read(BIO* bio, char* to, int bytes) {
    Channel& channel = of(bio);
    BIO_clear_retry_flags(bio);
    auto received = channel.socket_.receive_now(to, static_cast<size_t>(bytes));
    if (!received) {
      channel.secure_->error = received.error();
      return -1;
    }
    channel.secure_->has_ended = *received && **received == 0;
    channel.secure_->has_more = *received && **received == static_cast<size_t>(bytes);
    if (*received) return static_cast<int>(**received);
    BIO_set_retry_read(bio);
    return -1;
  }
  static int write(BIO* bio, const char* from, int bytes) {
    BIO_clear_retry_flags(bio);
    const auto* const first = reinterpret_cast<const std::byte*>(from);
    std::vector<std::byte>& kept = of(bio).secure_->kept;
    kept.insert(kept.end(), first, first + bytes);
    return bytes;
  }
  static long control(BIO* bio, int command, long, void*) {
    if (command == BIO_CTRL_EOF) return of(bio).secure_->has_ended ? 1 : 0;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
  }

  static const BIO_METHOD* method() {
    static const BIO_METHOD* const method =
        make_bio_method({.name = "channel", .read = read, .write = write, .control = control});
    return method;
  }
};

base::Expected<void> Channel::take(int descriptor, Tls* tls) {
  close();
  if (auto taken = socket_.take(descriptor); !taken) return taken;
  has_more_ = false;
  if (tls == nullptr) return {};
  secure_ = std::make_unique<Secure>();
  secure_->session = tls->begin();
  if (auto set = set_bio(secure_->session.get(), ChannelBio::method(), this); !set) {
    close();
    return set;
  }
  SSL_set_accept_state(secure_->session.get());
  return {};
}

void Channel::close() {
  if (secure_ != nullptr && secure_->session != nullptr) {
    SSL* const session = secure_->session.get();
    ERR_clear_error();
    if (!secure_->is_broken && SSL_is_init_finished(session)) SSL_shutdown(session);
    // Also when the session is broken: perhaps these bytes tell the client why it was refused.
    const std::vector<std::byte>& kept = secure_->kept;
    if (!kept.empty() && socket_.descriptor() >= 0)
      static_cast<void>(::send(socket_.descriptor(), kept.data(), kept.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  }
  secure_.reset();
  socket_.close();
}

base::Expected<void> Channel::send_kept(const task::Limit& limit) {
  if (secure_->kept.empty()) return {};
  auto sent = socket_.send(secure_->kept.data(), secure_->kept.size(), limit);
  secure_->kept.clear();
  if (!sent) secure_->is_broken = true;
  return sent;
}

// What the session wants after one of its calls has failed.
base::Expected<Channel::Wants> Channel::wants_after(int result, const char* doing) {
  switch (SSL_get_error(secure_->session.get(), result)) {
    case SSL_ERROR_WANT_READ: return Wants::kInput;
    case SSL_ERROR_ZERO_RETURN: return Wants::kClosed;
    default: break;
  }
  secure_->is_broken = true;
  if (secure_->error) return std::unexpected(*secure_->error);
  return base::failure(EPROTO, "TLS: cannot ", doing, ": ", tls_reason());
}

base::Expected<std::optional<size_t>> Channel::receive(std::span<std::byte> to, const task::Limit& limit) {
  if (secure_ == nullptr) {
    auto received = socket_.receive_now(to.data(), to.size());
    has_more_ = received && *received && **received == to.size();
    return received;
  }
  ERR_clear_error();
  size_t bytes = 0;
  const int result = SSL_read_ex(secure_->session.get(), to.data(), to.size(), &bytes);
  Wants wants = Wants::kNothing;
  if (result != 1) {
    auto found = wants_after(result, "receive");
    if (!found) return std::unexpected(found.error());
    wants = *found;
  }
  if (auto sent = send_kept(limit); !sent) return std::unexpected(sent.error());
  if (wants == Wants::kClosed) return 0;
  if (wants == Wants::kInput) {
    has_more_ = false;
    return std::nullopt;
  }
  has_more_ = secure_->has_more || SSL_has_pending(secure_->session.get()) == 1;
  return bytes;
}

base::Expected<void> Channel::wait_for_input(const task::Limit& limit) {
  if (secure_ != nullptr) secure_->kept.shrink_to_fit();
  auto waited = socket_.wait_for_input(limit);
  has_more_ = waited.has_value();
  if (secure_ != nullptr) secure_->has_more = has_more_;
  return waited;
}

// Writes to what is kept. A handshake that is not complete is completed first.
base::Expected<void> Channel::write(std::span<const std::byte> bytes, const task::Limit& limit) {
  while (!bytes.empty()) {
    ERR_clear_error();
    size_t written = 0;
    const int result =
        SSL_write_ex(secure_->session.get(), bytes.data(), std::min(bytes.size(), kKeptBytesMost), &written);
    if (result == 1) {
      bytes = bytes.subspan(written);
      if (secure_->kept.size() < kKeptBytesMost) continue;
      if (auto sent = send_kept(limit); !sent) return sent;
      continue;
    }
    auto wants = wants_after(result, "send");
    if (!wants) return std::unexpected(wants.error());
    if (*wants == Wants::kClosed) return base::failure(EPIPE, "TLS: the client has ended the session");
    if (auto sent = send_kept(limit); !sent) return sent;
    if (auto waited = wait_for_input(limit); !waited) return waited;
  }
  return {};
}

base::Expected<void> Channel::send(std::span<iovec> pieces, const task::Limit& limit) {
  if (secure_ == nullptr) return socket_.send(pieces, limit);
  for (const iovec& piece : pieces)
    if (auto written = write({static_cast<const std::byte*>(piece.iov_base), piece.iov_len}, limit); !written)
      return written;
  return send_kept(limit);
}

}  // namespace server
