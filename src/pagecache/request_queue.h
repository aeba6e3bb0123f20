// RequestQueue: asynchronous requests of one thread, in arrays, with a callback for each, and a bound on how many are under way.
// (set-associative page cache, figure 2)
//
//   Servers* servers = *Servers::open(*cache, {.threads = 1});
//   RequestQueue queue;
//   queue.open(*servers, 256);
//   queue.submit(requests);            // takes as many as there is room for
//   queue.poll();                      // runs the callbacks of those that have ended; wait(): of at least one; run(): of a whole array
//
// submit() itself carries out requests for pages that are in memory, on the queue's own memory node. All others go to the servers of the
// page's node, up to 64 requests in a message. For each node one message is being filled, which is sent when
//  1 it is full; or
//  2 a poll finds that nothing has ended, so that there is nothing else to do. If the cache has several nodes, the message must also have at
//    least as many requests as a node has under way on average: otherwise each poll would send a message to every node, while waiting makes
//    them larger; or
//  3 eight polls have found ended requests since it was begun; if the cache has several nodes, when polls have found as many as make a full
//    message to each node
// A message that is not sent in 2 stays because others are under way, and these will end: no message waits for ever.
//
// Thread contract: used by one thread.
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
  // At most `most` requests are under way at a time. The queue belongs to the memory node `node`; kAnyNode: to that of the thread's CPU, or,
  // if the nodes' memory may be on any of the machine's, to the next one in turn. REQUIRES: `most` is at least 1; there is such a node.
  void open(Servers& servers, uint32_t most, uint32_t node = kAnyNode);
  // Waits for all requests that are under way, and runs their callbacks. Does nothing if it is not open.
  void close();

  // Takes requests from the front until `most` are under way; returns how many it took. Requests for the same bytes are carried out in any
  // order. Runs no callbacks. Cost: for a page that is in memory on the queue's node, that of a session's call; otherwise a share of a
  // message.
  size_t submit(std::span<Request* const> requests);
  // Runs the callbacks of requests that have ended; returns how many. Does not block.
  size_t poll();
  // The same, but waits until one has ended. 0: none is under way.
  size_t wait() { return wait_until(kForever); }
  // The same with a deadline of the monotonic clock. 0: none is under way, or the deadline has passed.
  static constexpr uint64_t kForever = ~uint64_t{0};
  size_t wait_until(uint64_t deadline_ns);
  // Submits all of them and waits until they have ended; others may end meanwhile.
  void run(std::span<Request* const> requests);

  uint32_t in_flight_count() const { return in_flight_count_; }
  // What submit() has done itself; the rest is in Servers::session_counts(). Any thread.
  SessionCounts counts() const { return session_.counts(); }
  // From now on servers set the event when a request has ended. REQUIRES: before sleeping on it, the caller polls until nothing has ended,
  // since that sends messages that are not full; the event outlives the queue.
  void set_event(sys::Event& event);
  uint32_t node() const { return node_; }

 private:
  friend class Servers;
  static constexpr uint32_t kMessageRequests = 64;
  static constexpr uint32_t kMaxPolls = 8;  // for how many a message that is not full waits
  // The message to a node that is being filled.
  struct Outgoing {
    task::WorkList requests;
    // With one node: how many polls have found ended requests since the message was begun; with several: how many requests they have found.
    uint64_t waited_count = 0;
  };

  uint32_t node_of(const Request& request) const;
  bool try_now(Request& request);
  size_t deliver();
  bool is_to_go(Outgoing& message, size_t ended_count, uint64_t sent_count) const;
  void send(Outgoing& message);
  // Receives a message from a server.
  void take(task::WorkList& ended);

  Servers* servers_ = nullptr;
  Session session_;  // for pages that are in memory
  uint32_t most_ = 0;
  uint32_t in_flight_count_ = 0;
  uint32_t sent_count_ = 0;  // how many of these the servers have, or have ended since the last poll
  uint32_t node_ = 0;
  uint32_t node_count_ = 0;
  std::unique_ptr<Outgoing[]> outgoing_;  // by node
  task::WorkList ended_here_;
  std::unique_ptr<Servers::Replies[]> replies_;  // by executor

  sys::Mutex lock_;
  task::WorkList ended_;         // by servers; with the lock
  sys::Event* event_ = nullptr;  // with the lock
  sys::EventCount has_ended_;
};

}  // namespace pagecache
