// Servers: threads that carry out requests to a page cache, many at a time each, for threads that do something else meanwhile.
// (set-associative page cache: messages)
//
//   RequestQueue ──a message: requests──► an executor, whose tasks carry them out ──a message: requests that have ended──► RequestQueue
//
// Each executor belongs to one memory node, and stays on its CPUs; a message goes to an executor of the node on which its requests' pages are. If
// there are more nodes than executors, some executors belong to several nodes, and none is bound to CPUs.
//
// Messages are lists: nothing is copied, and a message takes one lock and at most one wakeup, however many requests it has. Requests that
// have ended are sent back when no other task of the executor can run, so that all that have ended meanwhile go together; with several nodes,
// one turn of the executor later, since there are more messages, each with fewer requests.
//
// Executors also write dirty pages back before others need their frames (flush_queue.h), one batch at a time, each after the requests that came
// before it. One task of the first executor moves frames between nodes (balancer.h), and another periodically looks for pages that have been
// dirty for long. If a cache has several Servers, those that were opened first do all this.
#pragma once
#include <memory>

#include "pagecache/session.h"
#include "task/executors.h"

namespace pagecache {

class RequestQueue;

// A request and its result. In the caller's memory, which must not move from submit until `done` runs.
struct Request : task::Work {
  enum class Kind : uint8_t { kRead, kWrite, kLeave, kFlush };  // the last two are for the servers' own use

  Kind kind = Kind::kRead;
  File* file = nullptr;
  uint64_t offset = 0;
  std::span<std::byte> bytes;  // the memory to read into, or to write from; a write does not change it
  void (*done)(Request& request) = nullptr;  // may be null; may submit this or other requests
  void* owner = nullptr;                     // for the caller's use

  // Valid once `done` runs: the result of Session::read() or write().
  base::Expected<void> result;

  // For the queue's use.
  RequestQueue* queue = nullptr;
  bool in_flight = false;  // from submit until just before `done` runs
};

struct ServersOptions {
  // 1 to 64; if the cache has several memory nodes, the threads are assigned to them in turn.
  uint32_t threads = 1;
  uint32_t tasks_each = 64;  // how many requests a thread carries out at a time; 1 to 1,024
};

// How well requests are bundled into messages.
struct MessageCounts {
  uint64_t requests = 0;  // that were sent to servers
  uint64_t request_messages = 0;
  uint64_t reply_messages = 0;
};

class Servers final : private task::ExecutorUser, private FlushQueue::Server, private Balancer::Server {
 public:
  // Errors: EINVAL, ENOMEM, EAGAIN: no threads.
  static base::Expected<Servers*> open(PageCache& cache, const ServersOptions& options);
  // The cache works on without them. REQUIRES: all queues are closed.
  void close();

  // As Session::leave(), for the sessions of all servers, which from now on do not flush the file's pages, until there is a request for it.
  // Any thread but the servers' own. REQUIRES: no request for the file is under way; and if there may be requests for other files, the file
  // is synced and nobody writes to it, since otherwise such a request might write a page of the file back to get its frame.
  void leave(File& file);
  // Ends that: servers flush the file's pages again. Any thread.
  static void take_up(File& file) { file.is_left_.store(false, std::memory_order_relaxed); }

  PageCache& cache() const { return cache_; }
  // Any thread.
  MessageCounts counts() const;
  MessageCounts counts_of(uint32_t thread) const;
  // Pages that were flushed, not counting those that had to be written for requests.
  WriteCounts flush_counts() const;
  // What the servers' sessions have done, for requests and for flushes.
  SessionCounts session_counts() const;

 private:
  friend class RequestQueue;
  // A queue's requests that an executor has carried out and not yet sent back. In the executor's list while there are any.
  struct alignas(base::kLineBytes) Replies {
    RequestQueue* queue = nullptr;
    task::WorkList ended;
    Replies* next = nullptr;
  };
  struct alignas(base::kLineBytes) Executor {
    Servers* servers = nullptr;
    Session session;
    Replies* replies = nullptr;
    task::IntraSemaphore has_replies{0};
    task::Task* sender = nullptr;
    bool is_closing = false;
    Request flush;
    task::IntraSemaphore may_flush{1};  // taken by a task that flushes, or leaves a file
    std::atomic<uint64_t> requests{0}, request_messages{0}, reply_messages{0};
    std::atomic<uint64_t> flushed_pages{0}, flush_writes{0};
  };

  struct Leave : Request {
    sys::Latch* left = nullptr;
  };

  explicit Servers(PageCache& cache) : cache_(cache) {}
  base::Expected<void> open_executor(uint32_t executor) override;
  void perform(uint32_t executor, task::Work& work) override;
  void close_executor(uint32_t executor) override;
  void start_flush(uint32_t executor) override;
  void start_balance() override;
  static void run_balancer(void* self);
  static void run_sweeper(void* self);
  base::Expected<void> start(const char* name, void (*entry)(void*), task::Task*& started);
  void flush_aged(Executor& executor);
  static void count_flushed(Executor& executor, const WriteCounts& written);
  void flush(uint32_t executor);
  static void run_sender(void* executor);

  // Sends a message to a server of the node. Any thread.
  void send(uint32_t node, task::WorkList& requests);
  // The node's next executor, in turn.
  uint32_t executor_for(uint32_t node);

  PageCache& cache_;
  std::unique_ptr<Executor[]> executor_states_;
  task::Executors executors_;
  bool flushes_ = false;
  bool balances_ = false;
  // Tasks of the first executor, and what they wait for.
  task::InterSemaphore is_to_balance_{0};
  task::Task* balancer_ = nullptr;
  task::IntraSemaphore is_to_end_sweeps_{0};
  task::Task* sweeper_ = nullptr;
  std::atomic<uint32_t> next_executor_{0};
  std::atomic<uint32_t> next_node_{0};  // for a queue that may belong to any node
};

}  // namespace pagecache
