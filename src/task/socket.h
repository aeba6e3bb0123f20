// Socket: a network connection of a worker's tasks, whose calls suspend the task instead of the thread. It is a member of the epoll instance that
// its worker sleeps on. (uDepot, section 3: Epoll)
//
//   Socket client;
//   client.take(descriptor);             // in a task of the worker; any descriptor that epoll knows: sockets, pipes
//   client.receive(buffer, sizeof buffer, {.deadline_ns = now_ns() + 1'000'000'000});
//
// Each call tries first and waits only if the kernel has nothing: the kernel tells of a change once (EPOLLET), so what it told is
// kept in the Socket until a call finds nothing more.
//
// Errors: what the call says; ETIMEDOUT and ECANCELED when the wait ended otherwise; then nothing was moved.
// Thread contract: of one worker and its tasks. One task may receive (or accept) and one send (or connect) at a time.
#pragma once
#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>
#include <optional>
#include <span>

#include "base/error.h"
#include "sys/events.h"
#include "task/waiting.h"

namespace task {

class Worker;

class Socket final : private sys::EventSet::Listener {
 public:
  Socket() = default;
  ~Socket() { close(); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  // Takes the descriptor over and makes it non-blocking; it is the worker's of the task that calls. Errors: EPERM for what cannot be
  // waited for (files), ENOMEM, ENOSPC; then it is closed. REQUIRES: in a task.
  base::Expected<void> take(int descriptor);
  // Closes it. REQUIRES: no task waits for it.
  void close();
  int descriptor() const { return descriptor_; }

  // Bytes received, at most `bytes`; 0 at the end of the stream.
  base::Expected<size_t> receive(void* to, size_t bytes, const Limit& limit = {});
  // The same of what is there now, without waiting; none if nothing is.
  base::Expected<std::optional<size_t>> receive_now(void* to, size_t bytes);
  // Waits until there may be something to receive: for who takes memory only then. Of a stream that has been received from before:
  // REQUIRES that this got less than it had room for, since the kernel tells of what comes afterwards alone.
  base::Expected<void> wait_for_input(const Limit& limit = {});
  // Sends all. The deadline is for all of it; on an error some may have gone.
  base::Expected<void> send(const void* from, size_t bytes, const Limit& limit = {});
  // The same of pieces, one after the other, in as few system calls as can be; changes them. REQUIRES: it is a socket.
  base::Expected<void> send(std::span<iovec> pieces, const Limit& limit = {});
  // The descriptor of the next connection, close-on-exec, to be taken by a Socket.
  base::Expected<int> accept(const Limit& limit = {});
  base::Expected<void> connect(const sockaddr* address, socklen_t bytes, const Limit& limit = {});

 private:
  // One direction: what waits for it.
  class Direction final : public Waiting {
   public:
    explicit Direction(const char* what) : what_(what) {}
    const char* what() const override { return what_; }
    bool abandon() override;
    // Until the kernel tells of a change.
    base::Expected<void> wait(const Limit& limit);
    void told();

   private:
    const char* what_;
    Task* waiting_ = nullptr;
    bool was_told_ = false;  // since somebody last began to wait
  };

  // Calls `call` until it does not say EAGAIN, and waits in between; its result.
  template <class Call>
  base::Expected<long> retry(Direction& direction, const Limit& limit, const char* what, Call call);
  void changed(sys::EventSet::Change change) override;

  Worker* worker_ = nullptr;  // while it has a descriptor
  int descriptor_ = -1;
  bool has_ended_ = false;  // the peer sends nothing more: the kernel has told of that, and will not again
  Direction in_{"something to receive"};
  Direction out_{"room to send"};
};

}  // namespace task
