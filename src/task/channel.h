// Channel: how one thread, or the tasks of one worker, use a device, by calls that block until the I/O has ended. A thread blocks; while a
// task blocks, other tasks of its worker run.
//
// Thread contract: used by the thread that opens it, or by the tasks of its worker.
#pragma once
#include <cstddef>
#include <span>

#include "base/error.h"
#include "storage/device.h"
#include "task/io_queue.h"

namespace task {

class Channel {
 public:
  // For the calling thread; or, called in a task, for the tasks of its worker, whose Ios go to the device up to `depth` at a time. If the
  // worker has no room for another poller, calls block the thread. Errors: EMFILE, ENOMEM.
  base::Expected<void> open(storage::Device& device, size_t depth);
  // For threads, one at a time, whoever opens it: calls block the thread, even if a task makes them. The Ios of a batch go to the device up
  // to `batch_depth` at a time. Errors: EMFILE, ENOMEM.
  static constexpr size_t kBatchDepth = 64;
  base::Expected<void> open_for_threads(storage::Device& device, size_t batch_depth = kBatchDepth);
  // Does nothing if it is not open. REQUIRES: nothing is under way.
  void close();

  // Makes tasks' reads and writes of this memory cheaper, where that is possible. REQUIRES: it stays mapped until the channel is closed.
  void fix_memory(std::span<std::byte> memory) {
    if (is_of_tasks_ && !memory.empty())
      static_cast<void>(tasks_queue_.fix_memory(memory.data(), memory.size()));
  }

  // Returns when the Io has ended; the Io says how.
  void run(storage::Io& io);
  // Has several Ios in flight together, and returns when all have ended. REQUIRES: none of their writes overlaps another Io. The first such
  // call of a thread opens a queue for batches; if none can be had (EMFILE, ENOMEM), the Ios run one after the other.
  void run(std::span<storage::Io* const> batch);
  // Does a batch cost no more than its Ios one after the other? A thread's batch may go through helper threads.
  bool overlaps() const { return is_of_tasks_; }

 private:
  storage::Queue* queue_ = nullptr;        // for threads
  storage::Queue* batch_queue_ = nullptr;  // for threads' batches, from the first one on
  IoQueue tasks_queue_;                    // used instead if is_of_tasks_
  size_t batch_depth_ = kBatchDepth;
  bool is_of_tasks_ = false;
};

}  // namespace task
