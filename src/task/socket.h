// Socket: a network connection of a worker's tasks; its calls block the task, not the thread. Its descriptor is registered with the epoll
// instance on which the worker sleeps. (uDepot, section 3: Epoll)
//
//   Socket client;
//   client.take(descriptor);             // in a task of the worker; any descriptor that epoll takes: sockets, pipes
//   client.receive(buffer, sizeof buffer, {.deadline_ns = now_ns() + 1'000'000'000});
//
// Each call first tries, and waits only if the kernel says EAGAIN. The kernel reports each change once (EPOLLET), so the Socket remembers
// that a change was reported until a call waits for one.
//
// Errors: those of the system call; ETIMEDOUT or ECANCELED if the wait has ended so: then nothing was received or accepted, but a send may
// have sent some bytes. Thread contract: used by one worker and its tasks. At a time one task may receive or accept, and one may send or
// connect.
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

  // Takes over the descriptor, for the worker of the calling task, and makes it non-blocking. On an error it is closed. Errors: EPERM for
  // descriptors that cannot be waited for (files); ENOMEM, ENOSPC. REQUIRES: the caller is a task.
  base::Expected<void> take(int descriptor);
  // Closes the descriptor; does nothing if there is none. REQUIRES: no task waits for it.
  void close();
  int descriptor() const { return descriptor_; }

  // Returns how many bytes were received, at most `bytes`; 0 at the end of the stream.
  base::Expected<size_t> receive(void* to, size_t bytes, const Limit& limit = {});
  // The same without waiting; nullopt if there is nothing to receive.
  base::Expected<std::optional<size_t>> receive_now(void* to, size_t bytes);
  // Waits until there may be something to receive, so that the caller need not hold memory for it meanwhile. REQUIRES: the last receive, if
  // any, got less than it had room for, since the kernel reports only what comes later.
  base::Expected<void> wait_for_input(const Limit& limit = {});
  // Sends all. The deadline is for all of it; after an error some may have gone.
  base::Expected<void> send(const void* from, size_t bytes, const Limit& limit = {});
  // Sends as much of the pieces, in order, as there is room for, in as few system calls as possible, without waiting. Returns how many bytes
  // that was, and changes `pieces` to the rest. REQUIRES: the descriptor is a socket's.
  base::Expected<size_t> send_now(std::span<iovec>& pieces);
  // Waits until there may be room to send or, if `or_input`, something to receive. REQUIRES: the last send_now() has left something; if
  // `or_input` also what wait_for_input() requires.
  base::Expected<void> wait_for_room(bool or_input, const Limit& limit = {});
  // The descriptor of the next connection, close-on-exec, for another Socket to take.
  base::Expected<int> accept(const Limit& limit = {});
  base::Expected<void> connect(const sockaddr* address, socklen_t bytes, const Limit& limit = {});

 private:
  // One direction, and the task that waits for it.
  class Direction final : public Waiting {
   public:
    explicit Direction(const char* what) : what_(what) {}
    const char* what() const override { return what_; }
    bool abandon() override;
    // Waits until the kernel reports a change of this direction or of `other`, unless that is null; returns at once if it has reported one
    // since the last wait.
    base::Expected<void> wait(const Limit& limit, Direction* other = nullptr);
    // To be called when the kernel has reported a change.
    void told();

   private:
    void leave();

    const char* what_;
    Task* waiting_ = nullptr;
    Direction* also_ = nullptr;  // the other direction for which the task waits, too
    bool was_told_ = false;      // since the last wait
  };

  // Repeats `call` while it says EAGAIN, and waits in between; returns its result.
  template <class Call>
  base::Expected<long> retry(Direction& direction, const Limit& limit, const char* what, Call call);
  void changed(sys::EventSet::Change change) override;

  Worker* worker_ = nullptr;  // set while there is a descriptor
  int descriptor_ = -1;
  // The peer will not send any more: the kernel has reported that, and will not report it again.
  bool has_ended_ = false;
  Direction in_{"something to receive"};
  Direction out_{"room to send"};
};

}  // namespace task
