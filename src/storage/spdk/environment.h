// SPDK's environment, which exists once a process, and the one thread that everything but data goes by.
//
// Invariant: nothing here keeps thread-specific values (pthread_key_create) on a thread of the program's. Each C library
// numbers its own, but a thread has one table of them.
//
// That thread starts the environment (which pins whoever does so to a processor), connects, opens and closes queue pairs,
// and keeps connections alive. It was made by this library's own C library, has a stack of its own and takes no signals; the
// program's threads may have none of that.
#pragma once
#include <functional>

#include "storage/backends/spdk_interface.h"

namespace storage::spdk {

// Starts thread and environment with the first call; later ones return the same. 0, or an errno value with a reason.
int start_environment(const SpdkHost& host, SpdkError& error);

// REQUIRES, of all below: the environment was started.

// Runs `job` on the control thread and waits for it. When it leaves a number in `error`, and no
// reason, that becomes the first thing that SPDK said meanwhile.
void run_on_control(const std::function<void()>& job, SpdkError* error = nullptr);
// `poll` is called there ten times a second from now on, until it returns false.
void poll_on_control(std::function<bool()> poll);

// A program's thread inside here: it cannot be cancelled.
class NoCancellation {
 public:
  NoCancellation();
  ~NoCancellation();
  NoCancellation(const NoCancellation&) = delete;

 private:
  int state_;
};

uint64_t now_ns();

}  // namespace storage::spdk
