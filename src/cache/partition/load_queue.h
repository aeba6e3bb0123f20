// LoadQueue: loads that are begun by one thread and finished by any. (TriCache, "Threads or Fibers")
//
// A load that is begun (Partition::begin_load) has taken steps 1 to 3 of Load (partition.h). Its read is submitted as soon as kBatch reads have been
// gathered, or somebody polls. Its frames are LOADING like those of any load, but its thread does not wait: what is needed to finish it is kept here
// instead of in a Workspace. Whoever polls the queue when the read is done takes steps 5 and 6, and then calls `ended`.
//
// The thread that began a load may be waiting for something that happens only after this load, or another one, has ended: for example for a lock whose
// holder misses the same page. So whoever waits for a page polls all queues (LoadQueues::poll).
//
// Pages with another origin (origins.h) are read through a second storage queue, of the device, if any, that the origins named when the queue was
// opened.
//
// Invariants
//  1 the storage queues are used only under mutex_. Its holder takes locks of partitions, and calls `ended`; nobody takes mutex_ while holding a
//    partition's lock
//  2 a load is counted from before its frame is claimed until after its waiters were notified: a thread that finds a frame LOADING, and then no
//    load counted, has been notified, or waits for a load that another thread carries out and ends by itself
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
  // The most bytes of a read of several pages.
  static constexpr size_t kMaxBytes = 1 << 20;

  // How many pages of this size one read may have.
  static constexpr uint32_t most_pages(size_t page_bytes) {
    return static_cast<uint32_t>(std::clamp<size_t>(kMaxBytes / page_bytes, 1, Claim::kMaxPages));
  }

  storage::Io io;  // its `owner` is this
  Claim claim;
  Partition* partition = nullptr;
  LoadQueue* queue = nullptr;
  void (*ended)(void* context) = nullptr;  // null: nobody is told
  void* context = nullptr;
  uint64_t begun_ns = 0;      // by the monotonic clock; 0: its duration is not measured
  BegunLoad* next = nullptr;  // the next free one

  bool is_from_origin() const { return claim.origin != Origins::Kind::kZeros; }
};
// A thread has as many of them as it ever had loads under way at once; they are not charged to the budget.
static_assert(sizeof(BegunLoad) <= 2048);

class LoadQueue {
 public:
  // How many loads of one queue may be under way.
  static constexpr uint32_t kDepth = 256;
  // How many reads are submitted together: a system call for each would cost as much as a read, and waiting for more would keep the device
  // waiting while tasks compute.
  static constexpr size_t kBatch = 8;

  // Submits what is gathered, and finishes the loads whose reads are done; returns how many. Does nothing while another thread polls. Any thread.
  size_t poll();
  // As base::Poller::quiet.
  base::Quiet quiet();

  // For partitions. take() returns a load to fill in, which is counted from then on; null if the queue is full. The caller submits it or gives it
  // back.
  BegunLoad* take();
  void give_back(BegunLoad& load);
  void submit(BegunLoad& load);
  // Submits what is gathered, for a thread that will not poll soon.
  void flush();

  // The origins' device with which the queue was opened, or null; and whether the queue can read from it: the device may have refused another queue.
  const storage::Device* origins_device() const { return origins_device_; }
  bool reads_origins() const { return origins_.queue != nullptr; }

  // Roughly how many loads are under way.
  uint32_t under_way_count() const { return under_way_count_.load(std::memory_order_relaxed); }
  // How many were submitted so far. The queue's thread.
  uint64_t submitted_count() const { return submitted_count_; }
  // How long recent measured loads took, from begin to end; 0 before the first. Any thread.
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
  LoadQueue* next_ = nullptr;  // in the list of all queues, which are never removed
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
  uint32_t used_count_ = 0;  // loads() from this index on were never taken, and their memory never touched
};

// The queues of one cache.
class LoadQueues {
 public:
  // Opens a queue for one thread to begin loads with, or reuses a closed one. `undisturbed`: as in storage::QueueUse. `origins`: the device of the
  // origins, or null. Errors: as Device::open_queue; ENOMEM. If the origins' device refuses a queue, that is no error: the queue does not read from
  // it.
  base::Expected<LoadQueue*> open(storage::Device& device, storage::Device* origins,
                                  bool undisturbed = false);
  // The thread does not need the queue any more. REQUIRES: none of its loads is under way.
  void close(LoadQueue& queue);
  // The same for a queue whose loads notify nobody. Some may be under way; they end when somebody polls.
  void leave(LoadQueue& queue);
  void destroy();

  // Is any load under way that has to be finished by polling?
  bool has_begun() const { return begun_count_.load(std::memory_order_seq_cst) != 0; }
  // Finishes the loads of all queues whose reads are done; returns how many. Cost: a load from memory when none is under way.
  size_t poll();

  // In a child of fork: forgets the loads that were under way, which are the parent's.
  void forget();

 private:
  friend class LoadQueue;
  base::Expected<LoadQueue*> find_or_open(storage::Device& device, bool undisturbed);

  sys::Mutex mutex_;
  std::atomic<LoadQueue*> first_{nullptr};  // grows only
  std::atomic<uint32_t> begun_count_{0};
};

}  // namespace cache
