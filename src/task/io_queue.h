// IoQueue: a storage queue of one worker, whose tasks wait for their Ios as if the calls blocked. (uDepot, section 3)
//
//   IoQueue queue;                          // one for each worker and device
//   queue.open(device, 128);                // in a task of the worker
//   queue.read(offset, buffer, bytes);      // other tasks run meanwhile
//
// What tasks ask for in one turn of the worker is submitted as one batch, at the turn's end; of writes those that lie behind each other are one
// for the device, as the records of a log do. What such a write has not got done is written once more, each by itself: a place that the medium
// does not take is one task's trouble. Where a device ends all at once nobody waits: the task goes on, and gives others a turn now and then.
//
// A task that waits for an Io is not cancelled and has no deadline: its memory is the device's until the Io has ended.
// Thread contract: of one worker and its tasks.
#pragma once
#include <span>

#include "base/poller.h"
#include "storage/device.h"
#include "task/waiting.h"

namespace task {

class IoQueue final : public base::Poller {
 public:
  // Opens a queue of the device and has the worker poll it. REQUIRES: in a task. Errors: EMFILE, ENOMEM, ENOSPC when
  // the worker has too many pollers.
  base::Expected<void> open(storage::Device& device, size_t depth);
  // REQUIRES: in a task of the same worker; nobody waits for an Io.
  void close();

  // As storage::Queue::fix_memory(). REQUIRES: nobody waits for an Io.
  bool fix_memory(void* address, uint64_t bytes) { return queue_->fix_memory(address, bytes); }

  // Runs the Io to its end; `error` and `transferred_bytes` say how it ended. Any number at a time: those that the queue has
  // no room for wait their turn. Cost: a switch, but of a device that ends_at_once(); its share of a system call.
  void run(storage::Io& io);
  // The same for several, which are under way together; returns when all have ended. Their order is not defined.
  void run(std::span<storage::Io* const> batch);

  // Reads or writes memory of one piece; what went over, or the error. Less than `bytes` past the end of a file, or when
  // storage is full.
  base::Expected<uint64_t> read(uint64_t offset_bytes, void* to, uint64_t bytes);
  base::Expected<uint64_t> write(uint64_t offset_bytes, const void* from, uint64_t bytes);
  base::Expected<void> flush();

  size_t poll() override;
  base::Quiet quiet() override;
  bool expects_soon() const override { return queue_->in_flight_count() > 0; }

 private:
  base::Expected<uint64_t> transfer(storage::Operation operation, uint64_t offset_bytes, const void* memory,
                                    uint64_t bytes);

  // Writes of several tasks that lie behind each other, in the order of their places: one Io for the device.
  static constexpr size_t kJoinedMost = 4;  // under way
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
  int descriptor_ = -1;      // of its quiet()
  storage::IoList waiting_;  // to be submitted
  storage::IoList alone_;    // the same, of writes that are not joined with others any more
  uint64_t turn_bytes_ = 0;  // that went over since there was a turn for others
  Joined joined_[kJoinedMost];
  Joined* free_joined_ = nullptr;
};

}  // namespace task
