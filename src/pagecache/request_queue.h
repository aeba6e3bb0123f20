// RequestQueue: asynchronous requests of one thread: arrays of them, a callback for each, so many under way at most.
// (papers/set-associative-page-cache.txt, figure 2)
//
//   Servers* servers = *Servers::open(*cache, {.threads = 1});
//   RequestQueue queue;
//   queue.open(*servers, 256);
//   queue.submit(requests);            // takes as many as it may
//   queue.poll();                      // callbacks of those that have ended; wait() for one at least; run() for all of some
//
// What is in memory is done by submit() itself; what is not goes to the servers, up to 64 requests in a message. A message that is not full
// goes when there is nothing else to do, or after some polls.
//
// Thread contract: of one thread.
#pragma once
#include "pagecache/servers.h"
#include "sys/events.h"

namespace pagecache {

class RequestQueue {
 public:
  RequestQueue() = default;
  ~RequestQueue() { close(); }
  RequestQueue(const RequestQueue&) = delete;
  RequestQueue& operator=(const RequestQueue&) = delete;

  // At most `most` requests are under way at a time. REQUIRES: at least 1.
  void open(Servers& servers, uint32_t most);
  // Waits for all that is under way; the callbacks run. Of one that is not open: nothing.
  void close();

  // Takes requests from the front until it has as many as it may; returns how many it took. Requests of the same bytes are carried out in
  // any order. A callback never runs in here. Cost: of a page that is there as a session's; else a share of a message.
  size_t submit(std::span<Request* const> requests);
  // Runs the callbacks of what has ended; returns how many. Does not block.
  size_t poll();
  // The same, once something has ended. 0: nothing is under way.
  size_t wait() { return wait_until(kForever); }
  // 0, too: the monotonic clock shows that time.
  static constexpr uint64_t kForever = ~uint64_t{0};
  size_t wait_until(uint64_t deadline_ns);
  // Submits all of them and waits until they have ended; others may end meanwhile.
  void run(std::span<Request* const> requests);

  uint32_t in_flight_count() const { return in_flight_count_; }
  // What submit() did by itself; Servers::session_counts() has the rest. Any thread.
  SessionCounts counts() const { return session_.counts(); }
  // Is set from now on when servers have ended something. Who sleeps on it has polled until nothing had ended: requests are sent then.
  // The event outlives the queue.
  void set_event(sys::Event& event);

 private:
  friend class Servers;
  static constexpr uint32_t kMessageRequests = 64;
  static constexpr uint32_t kPollsMost = 8;  // that a message which is not full waits for

  bool try_now(Request& request);
  size_t deliver();
  void send();
  // A message of a server.
  void take(task::WorkList& ended);

  Servers* servers_ = nullptr;
  Session session_;  // of what is there
  uint32_t most_ = 0;
  uint32_t in_flight_count_ = 0;
  uint32_t poll_count_ = 0;  // since the last message
  task::WorkList outgoing_;
  task::WorkList ended_here_;
  std::unique_ptr<Servers::Replies[]> replies_;  // each of one lane

  sys::Mutex lock_;
  task::WorkList ended_;         // by servers; under the lock
  sys::Event* event_ = nullptr;  // under the lock
  sys::EventCount has_ended_;
};

}  // namespace pagecache
