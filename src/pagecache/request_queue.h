// RequestQueue: asynchronous requests of one thread: arrays of them, a callback for each, so many under way at most.
// (set-associative page cache, figure 2)
//
//   Servers* servers = *Servers::open(*cache, {.threads = 1});
//   RequestQueue queue;
//   queue.open(*servers, 256);
//   queue.submit(requests);            // takes as many as it may
//   queue.poll();                      // callbacks of those that have ended; wait() for one at least; run() for all of some
//
// What is in memory, and of the queue's own memory node, is done by submit() itself; all else goes to the servers of the node that the page is
// on, up to 64 requests in a message. For each node one message is being filled. It goes when
//  1 it is full; or
//  2 a poll finds that nothing has ended: there is nothing else to do. Of a cache with several nodes only if it has no fewer requests than
//    a node has under way on average: what ends meanwhile makes it larger, where each poll would send as many messages as there are nodes; or
//  3 eight polls have found something since it was begun; of a cache with several nodes, they have found as many requests as make a full
//    message to each
// One that stays in 2 waits for requests that will end: nobody waits for ever.
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

  static constexpr uint32_t kAnyNode = ~uint32_t{0};
  // At most `most` requests are under way at a time. It is of the memory node `node`; kAnyNode: that of the thread's CPU, or, if nodes'
  // memory is anywhere, of the next one. REQUIRES: at least 1; there is such a node.
  void open(Servers& servers, uint32_t most, uint32_t node = kAnyNode);
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
  uint32_t node() const { return node_; }

 private:
  friend class Servers;
  static constexpr uint32_t kMessageRequests = 64;
  static constexpr uint32_t kPollsMost = 8;  // that a message which is not full waits for
  // The message to a node that is being filled.
  struct Outgoing {
    task::WorkList requests;
    uint64_t waited_count = 0;  // polls that have found something since it was begun, or what they have found
  };

  uint32_t node_of(const Request& request) const;
  bool try_now(Request& request);
  size_t deliver();
  bool is_to_go(Outgoing& message, size_t ended_count, uint64_t sent_count) const;
  void send(Outgoing& message);
  // A message of a server.
  void take(task::WorkList& ended);

  Servers* servers_ = nullptr;
  Session session_;  // of what is there
  uint32_t most_ = 0;
  uint32_t in_flight_count_ = 0;
  uint32_t sent_count_ = 0;  // of those, that servers have, or have ended since the last poll
  uint32_t node_ = 0;
  uint32_t node_count_ = 0;
  std::unique_ptr<Outgoing[]> outgoing_;  // by node
  task::WorkList ended_here_;
  std::unique_ptr<Servers::Replies[]> replies_;  // each of one lane

  sys::Mutex lock_;
  task::WorkList ended_;         // by servers; under the lock
  sys::Event* event_ = nullptr;  // under the lock
  sys::EventCount has_ended_;
};

}  // namespace pagecache
