// IoQueue: a storage queue of one worker, whose tasks wait for their Ios as if the calls blocked. (uDepot, section 3)
//
//   IoQueue queue;                          // one for each worker and device
//   queue.open(device, 128);                // in a task of the worker
//   queue.read(offset, buffer, bytes);      // other tasks run meanwhile
//
// The Ios that tasks ask for in one turn of the worker are submitted as one batch at the end of the turn. Writes among them that are adjacent
// on the medium, as records of a log are, are joined into one Io. If a joined write fails, the writes that it has not completed are done once
// more, each by itself, so that a place that the medium cannot write affects only one task. On a device that ends_at_once() a task does not
// wait: its Io is done at once, and from time to time it lets other tasks have their turn.
//
// A task that waits for an Io cannot be cancelled, and has no deadline: its memory belongs to the device until the Io has ended.
// Thread contract: used by one worker and its tasks.
#pragma once
#include <span>

#include "base/poller.h"
#include "storage/device.h"
#include "task/waiting.h"

namespace task {

class IoQueue final : public base::Poller {
 public:
  // Opens a queue of the device and has the worker poll it. REQUIRES: the caller is a task. Errors: EMFILE, ENOMEM; ENOSPC if the worker has
  // no room for another poller.
  base::Expected<void> open(storage::Device& device, size_t depth);
  // REQUIRES: the caller is a task of the same worker; nobody waits for an Io.
  void close();

  // See storage::Queue::fix_memory(). REQUIRES: nobody waits for an Io.
  bool fix_memory(void* address, uint64_t bytes) { return queue_->fix_memory(address, bytes); }

  // Returns when the Io has ended; `error` and `transferred_bytes` say how. Any number of tasks may call it: Ios for which the queue has no
  // room wait. Sets the Io's `done` and `owner`. Cost: a share of a system call, and a switch, unless the device ends_at_once().
  void run(storage::Io& io);
  // The same for several Ios, which are under way together; returns when all have ended. Their order is not defined.
  void run(std::span<storage::Io* const> batch);

  // Read into, or write from, one piece of memory; return how many bytes were transferred, or the error. They are fewer than `bytes` at the end
  // of a file.
  base::Expected<uint64_t> read(uint64_t offset_bytes, void* to, uint64_t bytes);
  base::Expected<uint64_t> write(uint64_t offset_bytes, const void* from, uint64_t bytes);
  base::Expected<void> flush();

  size_t poll() override;
  base::Quiet quiet() override;
  bool expects_soon() const override { return queue_->in_flight_count() > 0; }

 private:
  base::Expected<uint64_t> transfer(storage::Operation operation, uint64_t offset_bytes, const void* memory,
                                    uint64_t bytes);

  // Writes of several tasks that are adjacent on the medium, in the order of their places: one Io for the device.
  static constexpr size_t kMaxJoined = 4;  // under way
  static constexpr uint32_t kJoinedPieces = 16;
  static constexpr uint64_t kJoinedBytes = 64 << 10;
  struct Joined {
    storage::Io io;
    iovec pieces[kJoinedPieces];
    storage::IoList writes;
    IoQueue* queue = nullptr;
    Joined* next_free = nullptr;
  };
  static void end_joined(storage::Io& io);
  bool join(storage::Io*& first, storage::Io& next);
  bool has_waiting() const { return !waiting_.empty() || !alone_.empty(); }

  storage::Queue* queue_ = nullptr;
  int descriptor_ = -1;      // the one that queue_->quiet() returns
  storage::IoList waiting_;  // to be submitted
  storage::IoList
      alone_;  // to be submitted without being joined: writes that did not complete in a joined one
  uint64_t turn_bytes_ = 0;  // transferred at once since other tasks last had a turn
  Joined joined_[kMaxJoined];
  Joined* free_joined_ = nullptr;
};

}  // namespace task
