// Device, Queue, Io: the one seam between Spillway and whatever holds its bytes.
//
//   Device   a storage medium: what it is and what it can do; all threads share it
//   Queue    one thread's channel to a Device; a Poller
//   Io       one request, in memory of its caller, which must not move or free it from submission to completion
//
// The public calls are not virtual: they check and count each request, resume transfers that stop early, and call the private
// virtuals of a backend, which move the bytes. Decorators (stripe, encrypt, fault, latency, trace) are Devices over Devices.
//
// Invariants
//  1 an Io completes exactly once: its `done` runs inside poll(), wait() or run() of the queue that took it, on the calling
//    thread, and never inside submit()
//  2 an Io completes in one of three ways
//      whole    `error` is 0, and transferred_bytes is the length
//      failed   `error` is an errno value; transferred_bytes is how much of the front is known to have been transferred before
//      short    `error` is 0, and transferred_bytes is less than the length: the medium ends there
//    A read or write that stops early is resumed where it stopped, as long as each piece brings whole blocks. Nothing else is
//    retried here
//  3 a Queue belongs to one thread at a time; any number of threads may use a Device
//  4 no call allocates from the C library's heap or calls an intercepted function. The one exception: opening and closing a
//    device with helper threads, since pthread_create takes a little of that heap
//  5 Ios of one queue complete in any order. Of two Ios in flight for the same bytes of the medium, both must be reads, or nobody
//    may use what the read brings; that is up to whoever submits them
//
// After fork the child may open queues of an inherited device, and read and write the same medium. Inherited queues it may only
// close, and only those that had nothing in flight.
//
// docs/internals/storage.md says how to add a backend; backends/memory.cc is the smallest one.
#pragma once
#include <sys/uio.h>

#include <atomic>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "base/poller.h"

namespace storage {

enum class Operation : uint8_t { kRead, kWrite, kDiscard, kFlush };

struct Io {
  // Set by the caller before submit. The array of segments and the memory in it must not be changed or freed until `done` runs. While
  // a transfer is resumed these fields describe the rest of it; when `done` runs they are again as the caller set them.
  Operation operation = Operation::kRead;
  uint64_t offset_bytes = 0;  // multiple of Device::block_bytes()
  // None for discard and flush; addresses and lengths aligned to block_bytes().
  const iovec* segments = nullptr;
  uint32_t segment_count = 0;      // at most kMaxSegments
  uint64_t length_bytes = 0;       // sum of the segments' lengths; for discard, the length of the range
  void (*done)(Io& io) = nullptr;  // may be null; may submit Ios to the same queue, even this one
  void* owner = nullptr;           // for the caller's use

  // Valid once `done` runs.
  int error = 0;
  uint64_t transferred_bytes = 0;

  bool whole() const { return error == 0 && transferred_bytes == length_bytes; }

  // For the queue's use.
  Io* next = nullptr;
  bool in_flight = false;  // from submit until just before `done` runs
  struct Resumption {
    bool under_way = false;
    uint64_t moved_bytes = 0;  // of the front, before the piece that is under way
    // While the rest of a segment is the piece under way: that rest. For a discard: for the backend's use.
    iovec rest = {};
    // What the caller set.
    uint64_t offset_bytes = 0;
    const iovec* segments = nullptr;
    uint32_t segment_count = 0;
    uint64_t length_bytes = 0;
  } resumption;
};

inline constexpr uint32_t kMaxSegments = 64;
inline constexpr size_t kMaxQueueDepth = 4096;

// A FIFO list of Ios, linked by Io::next. For Queue and its backends.
class IoList {
 public:
  bool empty() const { return head_ == nullptr; }
  size_t count() const { return count_; }
  void append(Io& io) {
    io.next = nullptr;
    (head_ == nullptr ? head_ : tail_->next) = &io;
    tail_ = &io;
    ++count_;
  }
  // REQUIRES: not empty.
  Io& take_first() {
    Io& io = *head_;
    head_ = io.next;
    --count_;
    return io;
  }

 private:
  Io* head_ = nullptr;
  Io* tail_ = nullptr;
  size_t count_ = 0;
};

class Device;

// How a stripe deals its bytes to its members. A stripe of stripes reports the outer one's.
struct Layout {
  uint64_t member_count = 1;
  uint64_t unit_bytes = 0;  // 0: the device is no stripe
  bool operator==(const Layout&) const = default;
};

// How a queue is going to be used.
struct QueueUse {
  // Its user sleeps when quiet() allows it. If not set, quiet() may demand polling whenever an Io is in flight. Cost: up to one
  // descriptor for the queue, and one for each queue inside it.
  bool sleeps = false;
  // Only the thread that opens the queue uses it; a call by another thread may end the process as a programmer's mistake. Any thread
  // may close it, but if that is another one, the medium may stay open for a moment after the device has been closed.
  bool by_one_thread = false;
  // Completions must not disturb other system calls of the submitting thread. Those of io_uring interrupt blocking calls: calls that
  // the kernel cannot restart fail with EINTR (epoll_wait), others return less than was asked for (recv with MSG_WAITALL).
  // Cost: more CPU time for each Io. Errors: EOPNOTSUPP where there is no other way.
  bool undisturbed = false;
  // The queue has no descriptors of its own: each Io of a file is a blocking call of the thread that starts it. So it can be used by
  // all processes that share the memory, even if each has its own descriptors (vfork).
  bool by_calls = false;
};

class Queue : public base::Poller {
 public:
  // Takes Ios from the front of `batch` until the queue is full, and starts them; returns how many it took.
  // Checks alignment, bounds and segment count with CHECK. Cost: one system call for several Ios; backends that cannot work in the
  // background do the I/O before this returns (memory; file, for a batch of one).
  size_t submit(std::span<Io* const> batch);

  // Completes what has finished, without blocking; returns how many Ios that was.
  size_t poll() final;
  // Cost: with Ios in flight, up to a system call for each queue inside.
  base::Quiet quiet() final;

  // Blocks until at least one Io completes; returns how many did. Returns 0 at once if none is in flight.
  size_t wait();

  // Submits and waits until all of them have completed (others of this queue may complete meanwhile). A batch may be larger than
  // the queue's depth. Cost: one system call if nothing else is in flight; a few for a batch.
  void run(Io& io);
  void run(std::span<Io* const> batch);

  // Makes transfers of one segment inside [address, address + bytes) cheaper: where the medium and the limits allow it, the OS pages
  // are looked up once and pinned, until the queue is closed or given other memory. Returns whether they are; if not, everything works
  // all the same. REQUIRES: nothing is in flight; the memory stays mapped. Not for memory whose pages are returned to the OS or replaced
  // by a fork: the medium would continue to use the old pages.
  bool fix_memory(void* address, uint64_t bytes);

  size_t in_flight_count() const { return in_flight_count_; }
  size_t depth() const { return depth_; }
  Device& device() const { return device_; }

 protected:
  Queue(Device& device, size_t depth) : device_(device), depth_(depth) {}
  ~Queue() = default;

  // For backends, after they have set io.error and io.transferred_bytes. Counts the Io; its `done` runs later in the public call that is
  // under way, or in the next poll() or wait(). If the transfer stopped early, it is resumed instead: the backend gets the rest through
  // do_start().
  void complete(Io& io);
  // The same without resuming. For decorators: the inner queue has already resumed what could be resumed.
  void complete_as_is(Io& io);
  // Has complete() been called for an Io that poll() or wait() has not dealt with yet?
  bool has_completed() const { return !completed_.empty() || !resumed_.empty(); }

 private:
  friend class Device;

  // Starts `io`, which has passed all checks, or the rest of one that is resumed. Either keeps it until do_poll completes it, or calls
  // complete() at once. in_flight_count(), this Io included, is at most depth().
  virtual void do_start(Io& io) = 0;
  // The same for an Io whose submitter does nothing but wait for it (run).
  virtual void do_start_alone(Io& io) { do_start(io); }
  // Submits to the medium what do_start gathered (one system call).
  virtual void do_flush_submissions() {}
  // Submits to the medium what do_start gathered, and calls complete() for what has finished. With `block`, sleeps until something has
  // finished. REQUIRES, with `block`: an Io is in flight, and no completed one is still to be delivered.
  virtual void do_poll(bool block) = 0;
  // How a user with Ios in flight may wait without calling do_poll (base::Quiet). By default not at all. May call complete().
  virtual base::Quiet do_quiet() { return {}; }
  virtual bool do_fix_memory(void*, uint64_t) { return false; }
  // Releases the queue and its memory.
  virtual void do_close() = 0;

  void start(Io& io, bool alone);
  void end_piece(Io& io, bool may_go_on);
  void start_resumed();
  size_t deliver();

  Device& device_;
  size_t depth_;
  size_t in_flight_count_ = 0;
  IoList completed_;  // ended; `done` is still to run
  IoList resumed_;    // stopped early; the rest is still to be started
};

class Device {
 public:
  // What every offset, length and address must be a multiple of; a power of two, at most 4096.
  uint32_t block_bytes() const { return block_bytes_; }
  // Offsets at or past this do not exist. Spill files are sparse and report a large value.
  uint64_t capacity_bytes() const { return capacity_bytes_; }
  // Where its bytes end: at capacity_bytes(), or, for a file that is only read, less than an OS page before. A read beyond it is short.
  uint64_t end_bytes() const { return capacity_bytes_ - missing_bytes_; }
  // For messages: "uring:/mnt/nvme/spill (unlinked)". Valid as long as the device.
  const char* name() const { return name_; }
  // Does kDiscard give room back? If not, it succeeds and does nothing. A discarded range reads as zeros or as what it held, until
  // it is written again.
  bool discards() const { return discards_; }
  // Is the whole range allocated on the medium? If not (holes of a file, bytes never written), a write has to allocate first, which
  // costs many times as much. True if that cannot be found out. Cost: up to a few system calls.
  bool has_room_at(uint64_t offset_bytes, uint64_t length_bytes) const {
    return do_has_room_at(offset_bytes, length_bytes);
  }
  // Where another process that inspects this one (spillway dump) finds the bytes, offset for offset: in the file of a descriptor, or in
  // memory; nowhere if neither is set.
  struct Whereabouts {
    int descriptor = -1;
    const char* memory = nullptr;
  };
  Whereabouts whereabouts() const { return whereabouts_; }
  Layout layout() const { return layout_; }
  // Does a child of fork get a copy of the medium? Otherwise it uses the same medium.
  bool is_copied_by_fork() const { return copied_by_fork_; }
  // Do threads of the device open descriptors that its queues use? Then a queue's user must share the table of descriptors with them.
  bool opens_descriptors() const { return opens_descriptors_; }
  // Does run() do all the work on the calling thread, because the medium is memory, so that nothing can be done meanwhile?
  bool ends_at_once() const { return ends_at_once_; }

  // Opens a queue, at most `depth` Ios deep; its depth() may be less. Any thread, at any time. Errors: EMFILE, ENOMEM; those of
  // QueueUse. REQUIRES: 1 <= depth <= kMaxQueueDepth.
  base::Expected<Queue*> open_queue(size_t depth, const QueueUse& use = {});
  // Any thread. REQUIRES: nothing is in flight.
  void close_queue(Queue* queue);

  // Releases the device and its memory. REQUIRES: all queues have been closed.
  void close();

 protected:
  Device() = default;
  ~Device() = default;

  char name_[256] = {};
  uint64_t capacity_bytes_ = 0;
  uint64_t missing_bytes_ = 0;
  uint32_t block_bytes_ = 512;
  bool discards_ = false;
  Whereabouts whereabouts_;
  Layout layout_;
  bool copied_by_fork_ = false;
  bool opens_descriptors_ = false;
  bool ends_at_once_ = false;
  bool counted_ = true;  // its Ios count in the statistics. A decorator's do not, since the inner device's do

 private:
  friend class Queue;

  virtual base::Expected<Queue*> do_open_queue(size_t depth, const QueueUse& use) = 0;
  virtual bool do_has_room_at(uint64_t, uint64_t) const { return true; }
  virtual void do_close() = 0;

  std::atomic<size_t> open_queue_count_{0};
};

}  // namespace storage
