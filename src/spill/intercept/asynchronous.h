// What asynchronous I/O (aio.cc) and lookups (lookup.cc) share, whose requests end after the call that made them: the word in
// the program's memory that says how a request ended, threads that serve requests, and the two ways in which the program
// learns of the end: it is notified, or it waits.
#pragma once
#include <pthread.h>
#include <signal.h>
#include <time.h>

namespace spill {

// The word, which may be spilled. Whoever reads a value that was set also sees everything that was stored before it was set.
int end_word(const int* word);
void set_end_word(int* word, int value);

// While one exists the calling thread takes no signals, since their handlers could make further requests. It blocks them in the program's mask
// (signals.h), not only in the kernel's as sys::BlockedSignals does: faults on spilled memory are still served, but fault signals that somebody sends
// wait too.
class BlockedProgramSignals {
 public:
  BlockedProgramSignals();
  ~BlockedProgramSignals();
  BlockedProgramSignals(const BlockedProgramSignals&) = delete;
  BlockedProgramSignals& operator=(const BlockedProgramSignals&) = delete;

 private:
  sigset_t before_;
};

// Runs a routine in a thread that nobody joins, which takes no signals. `attributes` may be null. Returns false if no thread can be created.
bool run_in_thread(const pthread_attr_t* attributes, void* (*routine)(void*), void* argument);

// Notifies the program of an end as `event` says: by a signal with this si_code, or by a call in a new thread; in the
// calling thread if none can be created.
void tell(const sigevent& event, int code);

// For callers that wait: they check whether a request has ended, and pause in between, until their time is up.
class Patience {
 public:
  // Null: without limit. May be spilled.
  explicit Patience(const timespec* timeout);
  // Pauses for half a millisecond. Returns false, with errno set, when the time is up (EAGAIN) or a signal came (EINTR). Clears the thread's slots.
  bool pause() const;

 private:
  bool is_limited_;
  timespec deadline_ = {};
};

}  // namespace spill
