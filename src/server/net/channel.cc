#include "server/net/channel.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "sys/kernel.h"

namespace server {
namespace {

constexpr size_t kMaxKeptBytes = 64 << 10;     // with more they are sent
constexpr size_t kAheadPieceBytes = 64 << 10;  // what is received ahead at a time
constexpr size_t kMaxReadBytes = 16 << 10;     // a session's call ends when it has read more

// The same limit, but with its time running from now on instead of anew with each wait.
task::Limit from_now(const task::Limit& limit) {
  const uint64_t now_ns = sys::monotonic_ns();
  return {
      .deadline_ns = std::min(limit.deadline_ns, now_ns + std::min(limit.within_ns, task::kNever - now_ns)),
      .cancellable = limit.cancellable};
}

}  // namespace

// What OpenSSL's session reads from and writes to.
struct ChannelBio {
  static Channel& of(BIO* bio) { return *static_cast<Channel*>(BIO_get_data(bio)); }

  static int read(BIO* bio, char* to, int bytes) {
    Channel& channel = of(bio);
    BIO_clear_retry_flags(bio);
    channel.secure_->is_put_off = channel.secure_->read_bytes >= kMaxReadBytes;
    if (channel.secure_->is_put_off) {
      BIO_set_retry_read(bio);
      return -1;
    }
    auto received = channel.receive_raw(to, static_cast<size_t>(bytes), channel.secure_->has_more);
    if (!received) {
      channel.secure_->error = received.error();
      return -1;
    }
    channel.secure_->has_ended = *received && **received == 0;
    channel.secure_->read_bytes += received->value_or(0);
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
  std::vector<std::byte>().swap(ahead_);
  ahead_taken_bytes_ = 0;
  socket_.close();
}

// What the client has sent, as it came: first what was received ahead, then what the socket has.
base::Expected<std::optional<size_t>> Channel::receive_raw(void* to, size_t bytes, bool& has_more) {
  if (ahead_.empty()) {
    auto received = socket_.receive_now(to, bytes);
    has_more = received && *received && **received == bytes;
    return received;
  }
  has_more = true;
  const size_t now = std::min(bytes, ahead_.size() - ahead_taken_bytes_);
  memcpy(to, ahead_.data() + ahead_taken_bytes_, now);
  ahead_taken_bytes_ += now;
  if (ahead_taken_bytes_ == ahead_.size()) {
    std::vector<std::byte>().swap(ahead_);
    ahead_taken_bytes_ = 0;
  } else if (ahead_taken_bytes_ > ahead_.size() / 2) {
    ahead_.erase(ahead_.begin(), ahead_.begin() + static_cast<ptrdiff_t>(ahead_taken_bytes_));
    ahead_taken_bytes_ = 0;
  }
  return now;
}

// Receives ahead what the client has sent. False: no more can come, or there is no room for it.
bool Channel::receive_ahead() {
  while (ahead_.size() < ahead_bytes_max_) {
    const size_t had_bytes = ahead_.size();
    ahead_.resize(had_bytes + kAheadPieceBytes);
    auto received = socket_.receive_now(ahead_.data() + had_bytes, kAheadPieceBytes);
    const size_t bytes = received ? received->value_or(0) : 0;
    ahead_.resize(had_bytes + bytes);
    if (ahead_.empty()) std::vector<std::byte>().swap(ahead_);
    if (received && !*received) return true;
    // The stream's end, or an error: the next receive or send will meet it.
    if (bytes == 0) return false;
  }
  return false;
}

base::Expected<void> Channel::send_raw(std::span<iovec> pieces, const task::Limit& limit) {
  auto sent = socket_.send_now(pieces);
  if (!sent) return std::unexpected(sent.error());
  if (pieces.empty()) return {};
  task::Limit left = from_now(limit);
  bool may_come = receive_ahead();
  do {
    if (auto waited = socket_.wait_for_room(may_come, left); !waited) return waited;
    // Even if there is room: the wait may have ended because of input, which is not reported again.
    may_come = may_come && receive_ahead();
    sent = socket_.send_now(pieces);
    if (!sent) return std::unexpected(sent.error());
    if (*sent != 0) left = from_now(limit);
  } while (!pieces.empty());
  return {};
}

base::Expected<void> Channel::send_kept(const task::Limit& limit) {
  if (secure_->kept.empty()) return {};
  iovec piece = {.iov_base = secure_->kept.data(), .iov_len = secure_->kept.size()};
  auto sent = send_raw({&piece, 1}, limit);
  secure_->kept.clear();
  if (!sent) secure_->is_broken = true;
  return sent;
}

// Before each call of the session.
void Channel::begin_call() {
  ERR_clear_error();
  secure_->read_bytes = 0;
  secure_->is_put_off = false;
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
  if (secure_ == nullptr) return receive_raw(to.data(), to.size(), has_more_);
  begin_call();
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
    has_more_ = secure_->is_put_off;
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

// Writes through the session to the kept bytes. A handshake that is not complete is completed first.
base::Expected<void> Channel::write(std::span<const std::byte> bytes, const task::Limit& limit) {
  while (!bytes.empty()) {
    begin_call();
    size_t written = 0;
    const int result =
        SSL_write_ex(secure_->session.get(), bytes.data(), std::min(bytes.size(), kMaxKeptBytes), &written);
    if (result == 1) {
      bytes = bytes.subspan(written);
      if (secure_->kept.size() < kMaxKeptBytes) continue;
      if (auto sent = send_kept(limit); !sent) return sent;
      continue;
    }
    auto wants = wants_after(result, "send");
    if (!wants) return std::unexpected(wants.error());
    if (*wants == Wants::kClosed) return base::failure(EPIPE, "TLS: the client has ended the session");
    if (auto sent = send_kept(limit); !sent) return sent;
    if (!ahead_.empty() || secure_->is_put_off) continue;
    if (auto waited = wait_for_input(limit); !waited) return waited;
  }
  return {};
}

base::Expected<void> Channel::send(std::span<iovec> pieces, const task::Limit& limit) {
  if (secure_ == nullptr) return send_raw(pieces, limit);
  for (const iovec& piece : pieces)
    if (auto written = write({static_cast<const std::byte*>(piece.iov_base), piece.iov_len}, limit); !written)
      return written;
  return send_kept(limit);
}

}  // namespace server
