// Device, Queue, Io: the one seam between Spillway and whatever holds its bytes.
//
//   Device   shared identity and capabilities of a storage medium
//   Queue    one thread's channel to it; a Poller
//   Io       one request, owned by its caller from submit until its completion
//
// Public calls are not virtual: they align, check, split and count, and then call the private virtuals
// of a backend, which move bytes. Decorators (fault) are Devices over a Device.
//
// Invariants
//  1 an Io completes exactly once: its `done` runs inside poll() or wait() of the queue that took it,
//    on the thread that polls
//  2 `error` is 0 and transferred_bytes the whole length, or `error` is an errno value, or the
//    transfer was short: error 0 and transferred_bytes less than the length. Nothing is retried here
//  3 a Queue belongs to one thread at a time; a Device may be used by all
//  4 no call allocates from the C library's heap, and none calls an intercepted function
#pragma once
#include <sys/uio.h>

#include <cstdint>
#include <span>

#include "base/error.h"
#include "base/poller.h"

namespace storage {

enum class Operation : uint8_t { kRead, kWrite, kDiscard, kFlush };

struct Io {
  // Set by the caller before submit. The memory that `segments` lists must stay as it is until done.
  Operation operation = Operation::kRead;
  uint64_t offset_bytes = 0;           // multiple of Device::block_bytes()
  const iovec* segments = nullptr;     // none for discard and flush; addresses and lengths aligned to block_bytes()
  uint32_t segment_count = 0;          // at most kMaxSegments
  uint64_t length_bytes = 0;           // sum of the segments' lengths; for discard, the length of the range
  void (*done)(Io& io) = nullptr;      // may submit further Ios to the same queue
  void* owner = nullptr;               // the caller's

  // Valid once `done` runs.
  int error = 0;
  uint64_t transferred_bytes = 0;

  bool whole() const { return error == 0 && transferred_bytes == length_bytes; }

  Io* next = nullptr;                  // the queue's while the Io is in flight
};

inline constexpr uint32_t kMaxSegments = 64;

class Device;

class Queue : public base::Poller {
 public:
  // Takes Ios from the front of `batch` until the queue is full; returns how many it took. Checks
  // alignment, bounds and segment count with CHECK. Cost: may do the I/O before it returns (memory,
  // and file without helper threads), else one system call a batch.
  size_t submit(std::span<Io* const> batch);

  // Completes what has finished, without blocking; returns how many Ios that was.
  size_t poll() final;

  // Blocks until at least one Io completes; returns how many did. Returns 0 at once if none is in flight.
  size_t wait();

  // Submits one Io and waits for it (others of this queue may complete meanwhile).
  void run(Io& io);

  size_t in_flight_count() const { return in_flight_count_; }
  size_t depth() const { return depth_; }
  Device& device() const { return device_; }

 protected:
  Queue(Device& device, size_t depth) : device_(device), depth_(depth) {}
  ~Queue() = default;

  // For backends: io.error and io.transferred_bytes are set; counts it and runs io.done.
  void complete(Io& io);

 private:
  // Starts `io`, whose checks passed; in_flight_count() < depth() holds. Either keeps it until do_poll
  // completes it, or calls complete() at once.
  virtual void do_start(Io& io) = 0;
  // Tells the medium about what do_start gathered (one system call).
  virtual void do_flush_submissions() {}
  // Calls complete() for what has finished; with `block`, waits for at least one.
  virtual void do_poll(bool block) = 0;

  Device& device_;
  size_t depth_;
  size_t in_flight_count_ = 0;
  size_t completed_count_ = 0;  // since the current poll() or wait() began
};

class Device {
 public:
  // What every offset, length and address must be a multiple of; a power of two, at most 4096.
  uint32_t block_bytes() const { return block_bytes_; }
  // Offsets at or past this do not exist. Spill files are sparse and report a large value.
  uint64_t capacity_bytes() const { return capacity_bytes_; }
  // For messages: "uring:/mnt/nvme/spill (unlinked)". Valid as long as the device.
  const char* name() const { return name_; }
  // Would kDiscard give room back? Where not, it completes with success and does nothing.
  bool discards() const { return discards_; }

  // A new queue for the calling thread. Errors: EMFILE, ENOMEM. close_queue: nothing may be in flight.
  base::Expected<Queue*> open_queue(size_t depth);
  void close_queue(Queue* queue);

  // Releases the device and its memory. All queues must have been closed.
  void close();

 protected:
  Device() = default;
  ~Device() = default;

  char name_[256] = {};
  uint64_t capacity_bytes_ = 0;
  uint32_t block_bytes_ = 512;
  bool discards_ = false;

 private:
  virtual base::Expected<Queue*> do_open_queue(size_t depth) = 0;
  virtual void do_close_queue(Queue* queue) = 0;
  virtual void do_close() = 0;
};

}  // namespace storage
