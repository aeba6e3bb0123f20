// SPDK's environment, of which a process has one, and the control thread, which does everything but transfer data.
//
// Invariant: nothing here keeps thread-specific values (pthread_key_create) on the program's threads. Each of the two C libraries numbers
// its own keys, but a thread has only one table for them.
//
// The control thread starts the environment (which pins the starting thread to a processor), connects, opens and closes queue pairs, and
// keeps connections alive. It was created by this library's own C library, runs on a stack of its own, and takes no signals; none of that is
// guaranteed for the program's threads.
#pragma once
#include <functional>

#include "storage/backends/spdk_interface.h"

namespace storage::spdk {

// The first call starts the thread and the environment; later ones return the same. Returns 0, or an errno value, with a reason in `error`.
int start_environment(const SpdkHost& host, SpdkError& error);

// REQUIRES, of all below: the environment has been started.

// Runs `job` on the control thread and waits until it has ended. If the job leaves a number in `error` but no reason, the reason becomes
// the first error that SPDK has logged meanwhile.
void run_on_control(const std::function<void()>& job, SpdkError* error = nullptr);
// From now on the control thread calls `poll` ten times a second, until it returns false.
void poll_on_control(std::function<bool()> poll);

// While it exists, the calling thread, one of the program's, cannot be cancelled.
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
