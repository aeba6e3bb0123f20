// What asynchronous I/O (aio.cc) and lookups (lookup.cc) share, whose requests end after the call that made them: the word in
// the program's memory that says how a request ended, threads that serve requests, and the two ways in which the program
// learns of the end: it is told, or it waits.
#pragma once
#include <pthread.h>
#include <signal.h>
#include <time.h>

namespace spill {

// The word, which may be spilled. Who reads a value that was set also sees all that was stored before it was set.
int end_word(const int* word);
void set_end_word(int* word, int value);

// While one lives the calling thread takes no signals, whose handlers could make further requests. It is the program's mask that is full
// (signals.h), not the kernel's alone, as by sys::BlockedSignals: faults on spilled memory are still served, but fault signals that are sent wait too.
class BlockedProgramSignals {
 public:
  BlockedProgramSignals();
  ~BlockedProgramSignals();
  BlockedProgramSignals(const BlockedProgramSignals&) = delete;
  BlockedProgramSignals& operator=(const BlockedProgramSignals&) = delete;

 private:
  sigset_t before_;
};

// Runs a routine in a thread that nobody joins, which takes no signals. `attributes` may be null. Returns false where no
// thread can be made.
bool run_in_thread(const pthread_attr_t* attributes, void* (*routine)(void*), void* argument);

// Tells the program of an end as `event` says: by a signal with this si_code, or by a call in a new thread, which is made in
// the calling one if there can be no other.
void tell(const sigevent& event, int code);

// For callers that wait: they look whether a request has ended, and pause in between, until their time is over.
class Patience {
 public:
  // Null: for ever. May be spilled.
  explicit Patience(const timespec* timeout);
  // Half a millisecond. Returns false, with errno set, when the time is over (EAGAIN) or a signal came (EINTR). Clears the
  // thread's slots.
  bool pause() const;

 private:
  bool is_limited_;
  timespec deadline_ = {};
};

}  // namespace spill
