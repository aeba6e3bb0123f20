// Channel: how one thread, or the tasks of one worker, reach a device in calls that are written as if I/O blocked. A thread's does; a
// task's lets other tasks of its worker run meanwhile.
//
// Thread contract: of the thread that opens it, or of the tasks of its worker.
#pragma once
#include <cstddef>
#include <span>

#include "base/error.h"
#include "storage/device.h"
#include "task/io_queue.h"

namespace task {

class Channel {
 public:
  // For the calling thread; in a task for the tasks of its worker, of which `depth` Ios go to the device at a time. A worker that has no
  // room for one poller more waits for each Io of this one itself. Errors: EMFILE, ENOMEM.
  base::Expected<void> open(storage::Device& device, size_t depth);
  // For threads, one at a time, whoever opens it: calls block the thread, also under a task. Of a batch `batch_depth` Ios go to the
  // device at a time. Errors: EMFILE, ENOMEM.
  static constexpr size_t kBatchDepth = 64;
  base::Expected<void> open_for_threads(storage::Device& device, size_t batch_depth = kBatchDepth);
  // Of one that is not open: nothing. REQUIRES: nothing is under way.
  void close();

  // Tasks' reads and writes of this memory, which stays mapped until the channel is closed, are to cost less.
  void fix_memory(std::span<std::byte> memory) {
    if (is_of_tasks_ && !memory.empty())
      static_cast<void>(tasks_queue_.fix_memory(memory.data(), memory.size()));
  }

  // Returns when the Io has ended, which says how.
  void run(storage::Io& io);
  // Ios of reads, and of writes that overlap with nothing, in flight together; returns when all have ended, and each says how. A thread's
  // first such call opens a queue for them; without one (EMFILE, ENOMEM) they run one after the other.
  void run(std::span<storage::Io* const> batch);
  // Is what runs together as cheap as one after the other? For threads it may take others, which do the work.
  bool overlaps() const { return is_of_tasks_; }

 private:
  storage::Queue* queue_ = nullptr;        // of threads
  storage::Queue* batch_queue_ = nullptr;  // the same, for batches; once there has been one
  IoQueue tasks_queue_;                    // else, if
  size_t batch_depth_ = kBatchDepth;
  bool is_of_tasks_ = false;
};

}  // namespace task
