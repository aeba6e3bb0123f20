#include "task/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>

#include <algorithm>

#include "base/check.h"
#include "sys/kernel.h"
#include "task/task.h"
#include "task/worker.h"

namespace task {
namespace {

base::Error error_of(const char* what, long result) {
  const int number = static_cast<int>(-result);
  return base::Error::of(number, "cannot ", what, ": ", base::error_name(number));
}

}  // namespace

bool Socket::Direction::abandon() {
  if (waiting_ == nullptr) return false;
  leave();
  return true;
}

// The task does not wait any more, neither for this direction nor for the other.
void Socket::Direction::leave() {
  waiting_ = nullptr;
  if (also_ == nullptr) return;
  also_->waiting_ = nullptr;
  also_->also_ = nullptr;
  also_ = nullptr;
}

void Socket::Direction::told() {
  was_told_ = true;
  if (waiting_ == nullptr) return;
  Task& woken = *waiting_;
  leave();
  wake(woken);
}

base::Expected<void> Socket::Direction::wait(const Limit& limit, Direction* other) {
  CHECK(waiting_ == nullptr);
  // The change may have been reported before the caller found nothing: then the caller will find nothing once more.
  if (!was_told_ && (other == nullptr || !other->was_told_)) {
    waiting_ = &self();
    if (other != nullptr) {
      CHECK(other->waiting_ == nullptr);
      other->waiting_ = waiting_;
      other->also_ = this;
      also_ = other;
    }
    switch (block(*this, limit)) {
      case Woken::kNotified: break;
      case Woken::kTimedOut: return base::failure(ETIMEDOUT, "no ", what_, " in time");
      case Woken::kCancelled: return base::failure(ECANCELED, "waiting for ", what_, " was cancelled");
    }
  }
  was_told_ = false;
  if (other != nullptr) other->was_told_ = false;
  return {};
}

template <class Call>
base::Expected<long> Socket::retry(Direction& direction, const Limit& limit, const char* what, Call call) {
  for (;;) {
    const long result = call();
    if (result == -EINTR) continue;
    if (result != -EAGAIN) {
      if (sys::failed(result)) return std::unexpected(error_of(what, result));
      return result;
    }
    if (auto waited = direction.wait(limit); !waited) return std::unexpected(waited.error());
  }
}

base::Expected<void> Socket::take(int descriptor) {
  close();
  const long flags = sys::syscall(SYS_fcntl, descriptor, F_GETFL);
  const long result = sys::syscall(SYS_fcntl, descriptor, F_SETFL, flags | O_NONBLOCK);
  base::Expected<void> taken;
  if (sys::failed(result)) taken = std::unexpected(error_of("wait for a descriptor", result));
  Worker* const worker = Worker::current();
  if (taken) taken = worker->peers().add(descriptor, *this);
  if (!taken) {
    sys::syscall(SYS_close, descriptor);
    return taken;
  }
  worker_ = worker;
  descriptor_ = descriptor;
  return {};
}

void Socket::close() {
  if (descriptor_ < 0) return;
  // If there is a duplicate of the descriptor, it would stay registered.
  worker_->peers().remove(descriptor_, *this);
  sys::syscall(SYS_close, descriptor_);
  worker_ = nullptr;
  descriptor_ = -1;
  has_ended_ = false;
}

base::Expected<size_t> Socket::receive(void* to, size_t bytes, const Limit& limit) {
  auto received =
      retry(in_, limit, "receive", [&] { return sys::syscall(SYS_read, descriptor_, to, bytes); });
  if (!received) return std::unexpected(received.error());
  return static_cast<size_t>(*received);
}

base::Expected<std::optional<size_t>> Socket::receive_now(void* to, size_t bytes) {
  long result;
  do result = sys::syscall(SYS_read, descriptor_, to, bytes);
  while (result == -EINTR);
  if (result == -EAGAIN) return std::nullopt;
  if (sys::failed(result)) return std::unexpected(error_of("receive", result));
  return static_cast<size_t>(result);
}

base::Expected<void> Socket::wait_for_input(const Limit& limit) {
  if (has_ended_) return {};
  return in_.wait(limit);
}

base::Expected<void> Socket::send(const void* from, size_t bytes, const Limit& limit) {
  const char* at = static_cast<const char*>(from);
  while (bytes > 0) {
    auto sent = retry(out_, limit, "send", [&] {
      const long result = sys::syscall(SYS_sendto, descriptor_, at, bytes, MSG_NOSIGNAL, nullptr, 0);
      return result == -ENOTSOCK ? sys::syscall(SYS_write, descriptor_, at, bytes) : result;
    });
    if (!sent) return std::unexpected(sent.error());
    at += *sent;
    bytes -= static_cast<size_t>(*sent);
  }
  return {};
}

base::Expected<size_t> Socket::send_now(std::span<iovec>& pieces) {
  size_t sent_bytes = 0;
  while (!pieces.empty()) {
    msghdr message = {};
    message.msg_iov = pieces.data();
    message.msg_iovlen = std::min<size_t>(pieces.size(), IOV_MAX);
    const long result = pieces.size() == 1 ? sys::syscall(SYS_sendto, descriptor_, pieces[0].iov_base,
                                                          pieces[0].iov_len, MSG_NOSIGNAL, nullptr, 0)
                                           : sys::syscall(SYS_sendmsg, descriptor_, &message, MSG_NOSIGNAL);
    if (result == -EINTR) continue;
    if (result == -EAGAIN) break;
    if (sys::failed(result)) return std::unexpected(error_of("send", result));
    auto left = static_cast<size_t>(result);
    sent_bytes += left;
    while (!pieces.empty() && left >= pieces.front().iov_len) {
      left -= pieces.front().iov_len;
      pieces = pieces.subspan(1);
    }
    if (left == 0) continue;
    pieces.front().iov_base = static_cast<char*>(pieces.front().iov_base) + left;
    pieces.front().iov_len -= left;
  }
  return sent_bytes;
}

base::Expected<void> Socket::wait_for_room(bool or_input, const Limit& limit) {
  return out_.wait(limit, or_input ? &in_ : nullptr);
}

base::Expected<int> Socket::accept(const Limit& limit) {
  auto accepted = retry(in_, limit, "accept a connection", [&] {
    return sys::syscall(SYS_accept4, descriptor_, nullptr, nullptr, SOCK_CLOEXEC);
  });
  if (!accepted) return std::unexpected(accepted.error());
  return static_cast<int>(*accepted);
}

base::Expected<void> Socket::connect(const sockaddr* address, socklen_t bytes, const Limit& limit) {
  const long result = sys::syscall(SYS_connect, descriptor_, address, bytes);
  if (result != 0 && result != -EINPROGRESS && result != -EINTR)
    return std::unexpected(error_of("connect", result));
  // For a socket that has no peer yet, the kernel may have reported that the peer has ended.
  has_ended_ = false;
  if (result == 0) return {};
  auto connected = retry(out_, limit, "connect", [&]() -> long {
    int error = 0;
    socklen_t error_bytes = sizeof error;
    sys::syscall(SYS_getsockopt, descriptor_, SOL_SOCKET, SO_ERROR, &error, &error_bytes);
    if (error != 0) return -error;
    // Connected, or not yet?
    sockaddr_storage peer;
    socklen_t peer_bytes = sizeof peer;
    const long named = sys::syscall(SYS_getpeername, descriptor_, &peer, &peer_bytes);
    return named == -ENOTCONN ? -EAGAIN : named;
  });
  if (!connected) return std::unexpected(connected.error());
  return {};
}

void Socket::changed(sys::EventSet::Change change) {
  has_ended_ = has_ended_ || change.ended;
  if (change.readable) in_.told();
  if (change.writable) out_.told();
}

}  // namespace task
