// Socket: a network connection of a worker's tasks; its calls block the task, and not the thread. Its descriptor is registered with the
// epoll instance that the worker sleeps on. (uDepot, section 3: Epoll)
//
//   Socket client;
//   client.take(descriptor);             // in a task of the worker; any descriptor that epoll takes: sockets, pipes
//   client.receive(buffer, sizeof buffer, {.deadline_ns = now_ns() + 1'000'000'000});
//
// Each call first tries, and waits only if the kernel says EAGAIN. The kernel reports each change once (EPOLLET), so the Socket remembers
// that a change was reported until a call waits for one.
//
// Errors: those of the system call; ETIMEDOUT or ECANCELED if the wait has ended so: then nothing was received or accepted, but of a send
// some bytes may have gone. Thread contract: used by one worker and its tasks. At a time one task may receive or accept, and one may send
// or connect.
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

  // Takes the descriptor over, for the worker of the calling task, and makes it non-blocking. On an error it is closed. Errors: EPERM for
  // what cannot be waited for (files); ENOMEM, ENOSPC. REQUIRES: the caller is a task.
  base::Expected<void> take(int descriptor);
  // Closes the descriptor; does nothing if there is none. REQUIRES: no task waits for it.
  void close();
  int descriptor() const { return descriptor_; }

  // How many bytes were received, at most `bytes`; 0 at the end of the stream.
  base::Expected<size_t> receive(void* to, size_t bytes, const Limit& limit = {});
  // The same without waiting; nullopt if nothing is there.
  base::Expected<std::optional<size_t>> receive_now(void* to, size_t bytes);
  // Waits until there may be something to receive, so that the caller need not have memory for it before. REQUIRES: the last receive, if
  // there was one, got less than it had room for, since the kernel reports only what comes later.
  base::Expected<void> wait_for_input(const Limit& limit = {});
  // Sends all. The deadline is for all of it; after an error some may have gone.
  base::Expected<void> send(const void* from, size_t bytes, const Limit& limit = {});
  // Sends what there is room for of the pieces, one after the other, in as few system calls as possible, without waiting. Returns how many
  // bytes that were; `pieces` is changed to what is left. REQUIRES: the descriptor is a socket's.
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
    // Until the kernel reports a change, or has reported one since the last wait; of this direction or, if it is not null, the other one.
    base::Expected<void> wait(const Limit& limit, Direction* other = nullptr);
    // The kernel has reported a change.
    void told();

   private:
    void leave();

    const char* what_;
    Task* waiting_ = nullptr;
    Direction* also_ = nullptr;  // the task that waits for this one waits for that one, too
    bool was_told_ = false;      // since the last wait
  };

  // Repeats `call` while it says EAGAIN, and waits in between; returns its result.
  template <class Call>
  base::Expected<long> retry(Direction& direction, const Limit& limit, const char* what, Call call);
  void changed(sys::EventSet::Change change) override;

  Worker* worker_ = nullptr;  // set while there is a descriptor
  int descriptor_ = -1;
  // The peer sends nothing more: the kernel has reported that, and will not report it again.
  bool has_ended_ = false;
  Direction in_{"something to receive"};
  Direction out_{"room to send"};
};

}  // namespace task
