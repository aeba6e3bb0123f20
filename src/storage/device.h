// Device, Queue, Io: the one seam between Spillway and whatever holds its bytes.
//
//   Device   shared identity and capabilities of a storage medium
//   Queue    one thread's channel to it; a Poller
//   Io       one request, owned by its caller from submit until its completion
//
// Public calls are not virtual: they align, check, split and count, and then call the private virtuals
// of a backend, which move bytes. Decorators (stripe, fault, latency, trace) are Devices over Devices.
//
// Invariants
//  1 an Io completes exactly once: its `done` runs inside poll(), wait() or run() of the queue that took
//    it, on the thread that calls, never inside submit()
//  2 `error` is 0 and transferred_bytes the whole length, or `error` is an errno value, or the
//    transfer was short: error 0 and transferred_bytes less than the length. A read or write that stops early
//    is resumed where it stopped as long as that brings whole blocks: short means that the medium ends
//    there. With an error, transferred_bytes says how much of the front is known to have been transferred
//    before it. Else nothing is retried here
//  3 a Queue belongs to one thread at a time; a Device may be used by all
//  4 no call allocates from the C library's heap, and none calls an intercepted function (opening and
//    closing a device with helper threads excepted: pthread_create takes a little from it)
//  5 Ios of one queue complete in any order. Two Ios in flight never touch the same bytes of the medium
//    unless both read, or what is read of these bytes is not looked at; whoever submits sees to it
//
// After fork the child may open queues of a device that it inherited, and read and write the same medium;
// of the queues that it inherited it may only close those that had nothing in flight.
//
// To add a backend: docs/storage.md says how; backends/memory.cc is the smallest.
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
  // Set by the caller before submit. `segments`, and the memory that they list, must stay as they are
  // until done. While a transfer is being resumed these fields say what is left; when `done` runs they are
  // what the caller set.
  Operation operation = Operation::kRead;
  uint64_t offset_bytes = 0;  // multiple of Device::block_bytes()
  const iovec* segments =
      nullptr;                 // none for discard and flush; addresses and lengths aligned to block_bytes()
  uint32_t segment_count = 0;  // at most kMaxSegments
  uint64_t length_bytes = 0;   // sum of the segments' lengths; for discard, the length of the range
  void (*done)(Io& io) = nullptr;  // may submit further Ios, also this one, to the same queue; may be null
  void* owner = nullptr;           // the caller's

  // Valid once `done` runs.
  int error = 0;
  uint64_t transferred_bytes = 0;

  bool whole() const { return error == 0 && transferred_bytes == length_bytes; }

  // The queue's.
  Io* next = nullptr;
  bool in_flight = false;  // from submit until just before `done` runs
  struct Resumption {
    bool under_way = false;
    uint64_t moved_bytes = 0;  // from the front, before the piece that is under way
    // Of the segment that the transfer stopped in: then it is that piece. Of a discard, its backend's.
    iovec rest = {};
    // The caller's.
    uint64_t offset_bytes = 0;
    const iovec* segments = nullptr;
    uint32_t segment_count = 0;
    uint64_t length_bytes = 0;
  } resumption;
};

inline constexpr uint32_t kMaxSegments = 64;
inline constexpr size_t kMaxQueueDepth = 4096;

// A singly linked list of Ios, first in, first out. Of backends and Queue.
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

// How a device deals its bytes to others. Of a stripe of stripes: the outer one.
struct Layout {
  uint64_t member_count = 1;
  uint64_t unit_bytes = 0;  // 0: it is no stripe
  bool operator==(const Layout&) const = default;
};

// What the user of a queue will do with it.
struct QueueUse {
  // It sleeps where quiet() says that it may. Without this quiet() may say that the queue has to be polled whenever an Io is in
  // flight. With it a queue may need a descriptor more, and one for each queue inside it.
  bool sleeps = false;
  // All calls of the queue come from the thread that opens it; it may take another's for a programmer's mistake. Any thread may
  // close it, but after another one has the medium may stay open for a moment longer than the device.
  bool by_one_thread = false;
  // Completions leave other system calls of the submitting thread alone. An io_uring's cut them short: of what waits they make
  // EINTR where it cannot be begun again (epoll_wait), and less than was asked for (recv with MSG_WAITALL). Costs more CPU time
  // for each Io. Errors: EOPNOTSUPP where there is no other way.
  bool undisturbed = false;
};

class Queue : public base::Poller {
 public:
  // Takes Ios from the front of `batch` until the queue is full, and starts them; returns how many it took.
  // Checks alignment, bounds and segment count with CHECK. Cost: a system call for some Ios; does the I/O
  // before it returns where there is nothing to wait for it (memory; file, for a batch of one).
  size_t submit(std::span<Io* const> batch);

  // Completes what has finished, without blocking; returns how many Ios that was.
  size_t poll() final;
  // Cost: with Ios in flight up to a system call for each queue of a device inside.
  base::Quiet quiet() final;

  // Blocks until at least one Io completes; returns how many did. Returns 0 at once if none is in flight.
  size_t wait();

  // Submits and waits until all of them are completed (others of this queue may complete meanwhile).
  // The Ios must outlive the call. Cost: one system call when nothing else is in flight (a batch: a few).
  void run(Io& io);
  void run(std::span<Io* const> batch);

  // Transfers of one segment inside [address, address + bytes) are to cost less: where the medium and the limits allow it, its OS
  // pages are found once and pinned, until the queue is closed or told of other memory. Returns whether they are; all works without.
  // REQUIRES: nothing is in flight; what is mapped there stays mapped. Memory of which pages are given back to the system, or are
  // replaced by a fork, is not for this: the medium would go on with the old ones.
  bool fix_memory(void* address, uint64_t bytes);

  size_t in_flight_count() const { return in_flight_count_; }
  size_t depth() const { return depth_; }
  Device& device() const { return device_; }

 protected:
  Queue(Device& device, size_t depth) : device_(device), depth_(depth) {}
  ~Queue() = default;

  // For backends: io.error and io.transferred_bytes are set. Counts it; `done` runs when the public call
  // that is under way, or the next poll() or wait(), gets to it. A short transfer is resumed instead: the
  // backend is given the rest by do_start().
  void complete(Io& io);
  // The same for what cannot become more, as decorators know from the inner queue: short stays short.
  void complete_as_is(Io& io);
  // Has anything called complete() that poll() or wait() has not seen to yet?
  bool has_completed() const { return !completed_.empty() || !resumed_.empty(); }

 private:
  friend class Device;

  // Starts `io`, whose checks passed, or the rest of one; in_flight_count() <= depth() holds with it. Either
  // keeps it until do_poll completes it, or calls complete() at once.
  virtual void do_start(Io& io) = 0;
  // The same for an Io whose submitter does nothing but wait for it (run).
  virtual void do_start_alone(Io& io) { do_start(io); }
  // Tells the medium about what do_start gathered (one system call).
  virtual void do_flush_submissions() {}
  // Calls complete() for what has finished, after it told the medium about what do_start gathered. With
  // `block`, sleeps until something has finished; REQUIRES: an Io is in flight and none has completed.
  virtual void do_poll(bool block) = 0;
  // How who has Ios in flight may wait for them without do_poll (base::Quiet): not at all, as a rule. May call complete().
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
  IoList completed_;  // complete() was called, `done` is still to run
  IoList resumed_;    // complete() was called, the rest is still to start
};

class Device {
 public:
  // What every offset, length and address must be a multiple of; a power of two, at most 4096.
  uint32_t block_bytes() const { return block_bytes_; }
  // Offsets at or past this do not exist. Spill files are sparse and report a large value.
  uint64_t capacity_bytes() const { return capacity_bytes_; }
  // Where its bytes end: there, or, of a file that is only read, less than an OS page before. A read that goes beyond is short.
  uint64_t end_bytes() const { return capacity_bytes_ - missing_bytes_; }
  // For messages: "uring:/mnt/nvme/spill (unlinked)". Valid as long as the device.
  const char* name() const { return name_; }
  // Would kDiscard give room back? Where not, it completes with success and does nothing. What a discarded
  // range reads as until it is written again is not defined: zeros, or what it held.
  bool discards() const { return discards_; }
  // Has all of this range room on the medium, so that a write there has none to find first, which costs many times as much? Not where a file has
  // holes, or was never written. True where nobody can tell. Cost: up to a system call.
  bool has_room_at(uint64_t offset_bytes, uint64_t length_bytes) const {
    return do_has_room_at(offset_bytes, length_bytes);
  }
  // Where another process that looks into this one finds the bytes, offset for offset: in the file of a descriptor, or
  // in memory. Neither: nowhere.
  struct Whereabouts {
    int descriptor = -1;
    const char* memory = nullptr;
  };
  Whereabouts whereabouts() const { return whereabouts_; }
  Layout layout() const { return layout_; }
  // Does a child of fork have a medium of its own, with the same content? Else it has the same one.
  bool is_copied_by_fork() const { return copied_by_fork_; }
  // Do threads of its own open descriptors that its queues use? Then who uses one must share their table of descriptors.
  bool opens_descriptors() const { return opens_descriptors_; }
  // Does run() do all by itself, since the medium is memory behind a system call, so that there is nothing to do meanwhile?
  bool ends_at_once() const { return ends_at_once_; }

  // A new queue, at most `depth` Ios deep. Errors: EMFILE, ENOMEM. close_queue: nothing may be in flight.
  // Both may be called by any thread, at any time. REQUIRES: 1 <= depth <= kMaxQueueDepth.
  base::Expected<Queue*> open_queue(size_t depth, const QueueUse& use = {});
  void close_queue(Queue* queue);

  // Releases the device and its memory. All queues must have been closed.
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
  bool counted_ =
      true;  // do its Ios count in the statistics? Not those of a decorator: the inner device's do

 private:
  friend class Queue;

  virtual base::Expected<Queue*> do_open_queue(size_t depth, const QueueUse& use) = 0;
  virtual bool do_has_room_at(uint64_t, uint64_t) const { return true; }
  virtual void do_close() = 0;

  std::atomic<size_t> open_queue_count_{0};
};

}  // namespace storage
