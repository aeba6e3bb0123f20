// Events, and sets of descriptors: what a thread sleeps on when several things may have something to tell it.
//
//   Event      an eventfd: readable from set() until clear()
//   EventSet   an epoll descriptor: readable while one of its members is, so it may be a member of another
//
// Without a lost wake-up: clear(), then look whether something has happened, then sleep. Descriptors are the runtime's own.
#pragma once
#include <cstdint>

#include "base/error.h"
#include "base/poller.h"

namespace sys {

class Event {
 public:
  // Errors: EMFILE, ENOMEM.
  base::Expected<void> open();
  void close();
  // -1 while it is not open. The kernel may be told to set it.
  int descriptor() const { return descriptor_; }

  // By any thread. Cost: a system call, each.
  void set();
  void clear();
  // Sleeps until it is set, and clears it; or `other` (-1: none) is readable, the monotonic clock shows `until_ns`, or a
  // signal came. base::Quiet::kForever: no time.
  void wait_until(uint64_t until_ns, int other);

 private:
  int descriptor_ = -1;
};

class EventSet {
 public:
  enum class Wakes : uint8_t {
    kWhileReadable,
    kWhenItBecomesReadable,  // again each time that an Event is set: nobody need clear it
  };

  // Errors: EMFILE, ENOMEM.
  base::Expected<void> open();
  void close();
  int descriptor() const { return descriptor_; }

  // Errors: ENOMEM, ENOSPC, EPERM (a file that is always ready), ELOOP (sets five deep).
  base::Expected<void> add(int descriptor, Wakes wakes = Wakes::kWhileReadable);
  // REQUIRES: it was added, and is still open.
  void remove(int descriptor);

  // Sleeps until a member is readable, the monotonic clock shows `until_ns`, or a signal came. base::Quiet::kForever: no time.
  // One thread at a time.
  void wait_until(uint64_t until_ns);

 private:
  int descriptor_ = -1;
  bool waits_in_ms_ = false;  // there is no epoll_pwait2
};

}  // namespace sys
