// LoadQueue: loads that are begun by one thread and ended by any. (TriCache, "Threads or Fibers")
//
// A load that is begun (Partition::begin_load) has taken steps 1 to 3 of Load (partition.h). Its read is submitted as soon as kBatch reads have
// come together, or somebody polls. Its frames are LOADING as those of any load, but nobody waits for it: what its end needs is kept here instead of
// in a Lane. Whoever polls the queue when the read is done takes steps 5 and 6, and then calls `ended`.
//
// The thread that began a load may be waiting for something that happens only when this load, or another one, has ended: a lock that is held by a
// thread which misses the same page. So whoever waits for a page polls all queues (LoadQueues::poll).
//
// Pages that come from elsewhere (origins.h) are read by a second storage queue, of the device that the origins named when the queue was opened, if
// they named one.
//
// Invariants
//  1 the storage queues are used under mutex_ alone. Its holder takes locks of partitions, and calls `ended`; nobody takes it while holding
//    the lock of a partition
//  2 a load is counted from before its frame is claimed until after the threads that wait for it were told: a thread that finds a frame LOADING,
//    and then no load counted, has been told, or waits for a load that another thread does and ends by itself
#pragma once
#include <algorithm>
#include <span>

#include "cache/partition/claim.h"
#include "sys/lock.h"

namespace cache {

class LoadQueue;
class LoadQueues;
class Partition;

struct BegunLoad {
  // The most bytes of several pages.
  static constexpr size_t kMaxBytes = 1 << 20;

  // So many pages of this size may be one read.
  static constexpr uint32_t most_pages(size_t page_bytes) {
    return static_cast<uint32_t>(std::clamp<size_t>(kMaxBytes / page_bytes, 1, Claim::kMaxPages));
  }

  storage::Io io;  // its `owner` is this
  Claim claim;
  Partition* partition = nullptr;
  LoadQueue* queue = nullptr;
  void (*ended)(void* context) = nullptr;  // null: nobody is told
  void* context = nullptr;
  uint64_t begun_ns = 0;      // of the monotonic clock; 0: its time is not measured
  BegunLoad* next = nullptr;  // the next free one

  bool is_from_origin() const { return claim.origin != Origins::Kind::kZeros; }
};
// A thread has as many as it ever had loads under way, beyond the budget.
static_assert(sizeof(BegunLoad) <= 2048);

class LoadQueue {
 public:
  // How many loads of one queue may be under way.
  static constexpr uint32_t kDepth = 256;
  // How many reads are submitted together: a system call for each would cost as much as a read, and waiting for more would keep the device
  // waiting while tasks compute.
  static constexpr size_t kBatch = 8;

  // Submits what is gathered, and ends the loads whose reads are done; returns how many. Does nothing while another thread is at it. Any thread.
  size_t poll();
  // As base::Poller's.
  base::Quiet quiet();

  // For partitions. take() returns a load to fill in, which is counted from here on, or null if kDepth loads are under way. The caller submits it, or
  // gives it back.
  BegunLoad* take();
  void give_back(BegunLoad& load);
  void submit(BegunLoad& load);
  // Submits what is gathered, for a thread that does not poll soon.
  void flush();

  // The origins' device that the queue was opened with, or null; and can the queue read from it? The device may have had no room for another queue.
  const storage::Device* origins_device() const { return origins_device_; }
  bool reads_origins() const { return origins_.queue != nullptr; }

  // How many loads are under way, about.
  uint32_t under_way_count() const { return under_way_count_.load(std::memory_order_relaxed); }
  // How many were submitted so far. The queue's thread.
  uint64_t submitted_count() const { return submitted_count_; }
  // How long loads took lately, of those whose time was measured, from begin to end; 0 before the first. Any thread.
  uint64_t latency_ns() const { return latency_ns_.load(std::memory_order_relaxed); }

 private:
  friend class LoadQueues;
  struct Channel {
    storage::Queue* queue = nullptr;
    storage::IoList gathered;  // to be submitted

    bool is_full() const {
      return queue != nullptr && queue->in_flight_count() + gathered.count() == queue->depth();
    }
    void submit_gathered();
    size_t poll();
    void close();
  };

  static void end(storage::Io& io);
  void note_latency(uint64_t ns);

  BegunLoad* loads() { return reinterpret_cast<BegunLoad*>(this + 1); }

  LoadQueues* all_ = nullptr;
  LoadQueue* next_ = nullptr;  // in the list of all that there ever were
  sys::Mutex mutex_;
  Channel storage_;
  Channel origins_;
  const storage::Device* origins_device_ = nullptr;
  bool is_taken_ = false;
  bool undisturbed_ = false;
  std::atomic<uint32_t> under_way_count_{0};  // taken and neither given back nor ended
  std::atomic<uint64_t> latency_ns_{0};
  uint64_t submitted_count_ = 0;
  BegunLoad* free_ = nullptr;
  uint32_t used_count_ = 0;  // loads() beyond so many were never taken, and their memory was not touched
};

// The queues of one cache.
class LoadQueues {
 public:
  // A queue for one thread to begin loads with; as a rule it was another thread's before. `undisturbed`: as in storage::QueueUse. `origins`: the
  // device of the origins, or null. Errors: as Device::open_queue; ENOMEM. An error of the origins' device is none: the queue does not read from it
  // then.
  base::Expected<LoadQueue*> open(storage::Device& device, storage::Device* origins,
                                  bool undisturbed = false);
  // The thread does not need the queue any more. REQUIRES: none of its loads is under way.
  void close(LoadQueue& queue);
  // The same of a queue whose loads tell nobody. Some may be under way, and end when somebody polls.
  void leave(LoadQueue& queue);
  void destroy();

  // Is any load under way that somebody has to end by polling?
  bool has_begun() const { return begun_count_.load(std::memory_order_seq_cst) != 0; }
  // Ends what loads of all queues can be ended; returns how many these were. Cost: a load from memory when none is under way.
  size_t poll();

  // In a child of fork: forgets what was under way, which is the parent's.
  void forget();

 private:
  friend class LoadQueue;
  base::Expected<LoadQueue*> find_or_open(storage::Device& device, bool undisturbed);

  sys::Mutex mutex_;
  std::atomic<LoadQueue*> first_{nullptr};  // grows only
  std::atomic<uint32_t> begun_count_{0};
};

}  // namespace cache
