// What calls have in common that end later, asynchronous I/O (aio.cc) and lookups (lookup.cc): the word in the program's
// memory that says how they ended, threads that serve them, how the program is told of their end, and how it waits for that.
#pragma once
#include <pthread.h>
#include <signal.h>
#include <time.h>

namespace spill {

// The word, which may be spilled: who reads what was set sees what was stored before that.
int end_word(const int* word);
void set_end_word(int* word, int value);

// No signal of the calling thread's meanwhile, whose handler could ask for more. Faults on spilled memory still come.
class NoSignals {
 public:
  NoSignals();
  ~NoSignals();
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

// Runs a routine in a thread that nobody joins, which takes no signals. `attributes` may be null. Returns false where no
// thread can be made.
bool run_in_thread(const pthread_attr_t* attributes, void* (*routine)(void*), void* argument);

// Tells the program what it wanted to be told: by a signal with this si_code, or in a thread; in the calling one where none
// can be made.
void tell(const sigevent& event, int code);

// How long a caller waits: until something may have ended, again and again.
class Patience {
 public:
  // Null: for ever. May be spilled.
  explicit Patience(const timespec* timeout);
  // Returns false, with errno set, when there is no more time (EAGAIN) or a signal came (EINTR). No slot may be held.
  bool pause() const;

 private:
  bool is_limited_;
  timespec deadline_ = {};
};

}  // namespace spill
