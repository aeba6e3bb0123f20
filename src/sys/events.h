// Events and sets of descriptors: what a thread sleeps on, so that any of several others can wake it.
//
//   Event      an eventfd: readable from set() until clear()
//   EventSet   an epoll descriptor: readable while one of its members is, so it may be a member of another set. A member's listener is
//              told what has happened to it; members without a listener only end the sleep
//
// So that no wake-up is lost: clear(), then check whether something has happened, then sleep. Descriptors are the runtime's own.
#pragma once
#include <sys/epoll.h>

#include <cstdint>

#include "base/error.h"
#include "base/poller.h"

namespace sys {

class Event {
 public:
  // Errors: EMFILE, ENOMEM.
  base::Expected<void> open();
  void close();
  // -1 while it is not open. It may be given to the kernel, which sets the event by writing to it.
  int descriptor() const { return descriptor_; }

  // By any thread. Cost: a system call, each.
  void set();
  void clear();
  // Sleeps until it is set, and clears it; or until `other` (-1: none) is readable, the monotonic clock reaches `until_ns` (base::Quiet::kForever: no
  // limit), or a signal arrives.
  void wait_until(uint64_t until_ns, int other);

 private:
  int descriptor_ = -1;
};

class EventSet {
 public:
  enum class Wakes : uint8_t {
    kWhileReadable,
    kWhenItBecomesReadable,  // and each time that an Event is set again, so nobody needs to clear it
  };

  struct Change {
    bool readable, writable;
    bool ended;  // no more input will follow what is readable; reported once
  };
  class Listener {
   public:
    // Called by the thread that looks or waits. REQUIRES: it removes no member.
    virtual void changed(Change change) = 0;

   protected:
    ~Listener() = default;
  };

  // Errors: EMFILE, ENOMEM.
  base::Expected<void> open();
  void close();
  int descriptor() const { return descriptor_; }

  // Errors: ENOMEM, ENOSPC, EPERM (a file that is always ready), ELOOP (sets five deep).
  base::Expected<void> add(int descriptor, Wakes wakes = Wakes::kWhileReadable);
  // The listener is told once of each change, until it is removed.
  base::Expected<void> add(int descriptor, Listener& listener);
  // REQUIRES: it was added in the same way, and is still open.
  void remove(int descriptor);
  void remove(int descriptor, Listener& listener);
  bool has_listeners() const { return listener_count_ > 0; }

  // One thread at a time looks or waits.
  // Tells listeners of what has changed. Cost: a system call if there are any.
  void look();
  // Sleeps until a member is readable or has changed, the monotonic clock reaches `until_ns` (base::Quiet::kForever: no limit), or a signal arrives. Tells
  // listeners, as look() does. Cost: a system call, and one for the clock if there is a limit.
  void wait_until(uint64_t until_ns);

 private:
  base::Expected<void> add(int descriptor, uint32_t events, Listener* listener);
  void tell(const epoll_event* events, long count);

  int descriptor_ = -1;
  uint32_t listener_count_ = 0;
  bool waits_in_ms_ = false;  // epoll_pwait2 is not available
};

}  // namespace sys
