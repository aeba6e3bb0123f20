// Servers: threads that carry out requests of a page cache, many at a time, for threads that do something else meanwhile.
// (set-associative page cache: messages)
//
//   RequestQueue ──a message: requests──► a lane, whose tasks carry them out ──a message: what has ended──► RequestQueue
//
// Each lane is of one memory node, and stays on its CPUs; a message goes to one of the node that its requests' pages are on. If there are
// more nodes than lanes, some lanes are of several, and all go anywhere.
//
// Messages are lists: nothing is copied, and each takes a lock and at most one wake-up, however many requests it has. What has ended is
// sent when no other task of the lane can run, so that all that ended meanwhile goes together; of a cache with several nodes a turn of the
// lane later, since there are more messages that each have less.
//
// Meanwhile lanes write dirty pages back that others will need the frames of soon (flush_queue.h), one batch at a time, each after the
// requests that have come before it. A task of the first lane moves frames between nodes (balancer.h). Of several servers of a cache those
// that were opened first do both. Another task of that lane looks now and then for pages that have been dirty for long.
#pragma once
#include <memory>

#include "pagecache/session.h"
#include "task/lanes.h"

namespace pagecache {

class RequestQueue;

// What is asked for, and how it ended. The caller's; it stays where it is from submit until `done`.
struct Request : task::Work {
  enum class Kind : uint8_t { kRead, kWrite, kLeave, kFlush };  // the last two are the servers' own

  Kind kind = Kind::kRead;
  File* file = nullptr;
  uint64_t offset = 0;
  std::span<std::byte> bytes;                // read to them, or written from them: then they are not changed
  void (*done)(Request& request) = nullptr;  // may submit this or other requests; may be null
  void* owner = nullptr;                     // the caller's

  // Valid once `done` runs: as Session::read() and write().
  base::Expected<void> result;

  // The queue's.
  RequestQueue* queue = nullptr;
  bool in_flight = false;  // from submit until just before `done` runs
};

struct ServersOptions {
  uint32_t threads = 1;      // 1 to 64; of a cache with several memory nodes each is of the next one
  uint32_t tasks_each = 64;  // how many requests a thread carries out at a time; 1 to 1,024
};

// Relaxed counts, for the message that tells how well requests go together.
struct MessageCounts {
  uint64_t requests = 0;  // that were sent
  uint64_t request_messages = 0;
  uint64_t reply_messages = 0;
};

class Servers final : private task::LaneUser, private FlushQueue::Server, private Balancer::Server {
 public:
  // Errors: EINVAL, ENOMEM, EAGAIN: no threads.
  static base::Expected<Servers*> open(PageCache& cache, const ServersOptions& options);
  // REQUIRES: all queues are closed. The cache goes on.
  void close();

  // As Session::leave(), of all of them; they do not flush its pages from now on, until there is a request for it. Any thread but theirs.
  // REQUIRES: no request for the file is under way. While there are some for others, it is synced, and nobody writes to it: or they may be writing its pages back, to have the frames.
  void leave(File& file);
  // Ends that: they flush its pages again. Any thread.
  static void take_up(File& file) { file.is_left_.store(false, std::memory_order_relaxed); }

  PageCache& cache() const { return cache_; }
  // Any thread.
  MessageCounts counts() const;
  MessageCounts counts_of(uint32_t thread) const;
  // What was flushed, without what had to be written for requests.
  WriteCounts flush_counts() const;
  // What their sessions were asked for, by requests and for flushes.
  SessionCounts session_counts() const;

 private:
  friend class RequestQueue;
  // What has ended of a queue's requests, and is still to be sent. In the lane's list while there is any.
  struct alignas(base::kLineBytes) Replies {
    RequestQueue* queue = nullptr;
    task::WorkList ended;
    Replies* next = nullptr;
  };
  struct alignas(base::kLineBytes) Lane {
    Servers* servers = nullptr;
    Session session;
    Replies* replies = nullptr;
    task::IntraSemaphore has_replies{0};
    task::Task* sender = nullptr;
    bool is_closing = false;
    Request flush;
    task::IntraSemaphore may_flush{1};  // or leave a file: not both at a time
    std::atomic<uint64_t> requests{0}, request_messages{0}, reply_messages{0};
    std::atomic<uint64_t> flushed_pages{0}, flush_writes{0};
  };

  struct Leave : Request {
    sys::Latch* left = nullptr;
  };

  explicit Servers(PageCache& cache) : cache_(cache) {}
  base::Expected<void> open_lane(uint32_t lane) override;
  void perform(uint32_t lane, task::Work& work) override;
  void close_lane(uint32_t lane) override;
  void start_flush(uint32_t lane) override;
  void start_balance() override;
  static void run_balancer(void* self);
  static void run_sweeper(void* self);
  base::Expected<void> start(const char* name, void (*entry)(void*), task::Task*& started);
  void flush_aged(Lane& lane);
  static void count_flushed(Lane& lane, const WriteCounts& written);
  void flush(uint32_t lane);
  static void run_sender(void* lane);

  // One message, to the servers of a node. Any thread.
  void send(uint32_t node, task::WorkList& requests);
  uint32_t lane_for(uint32_t node);

  PageCache& cache_;
  std::unique_ptr<Lane[]> lane_states_;
  task::Lanes lanes_;
  bool flushes_ = false;
  bool balances_ = false;
  // Of the first lane.
  task::InterSemaphore is_to_balance_{0};
  task::Task* balancer_ = nullptr;
  task::IntraSemaphore is_to_end_sweeps_{0};
  task::Task* sweeper_ = nullptr;
  std::atomic<uint32_t> next_lane_{0};
  std::atomic<uint32_t> next_node_{0};  // of a queue that may be of any
};

}  // namespace pagecache
