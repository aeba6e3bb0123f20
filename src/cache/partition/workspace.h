// Workspace: what one thread needs to work in a cache: its queue to the storage device, and the working memory
// of one operation, which does not fit on the stack of every thread that may miss.
//
// Thread contract: one thread at a time; not reentrant. Memory: about 60 KiB plus one page, from the OS; most of
// it is touched only when changed pages are written.
#pragma once
#include "cache/partition/batch.h"
#include "cache/partition/claim.h"

namespace cache {

// The state of a sequence of misses, for reading ahead.
struct Stream {
  PageId last_miss{};
  uint32_t miss_streak = 0;
};

class Client;

class Workspace {
 public:
  // Maps a workspace and opens its queue. Errors: as Device::open_queue; ENOMEM.
  static base::Expected<Workspace*> create(storage::Device& device, size_t page_bytes,
                                           const storage::QueueUse& use = {});
  void destroy();

  storage::Queue& queue() { return *queue_; }
  // Runs the Ios of the batch together until all are completed. Cost: I/O.
  void run_ios();

  Claim claim;      // of the thread's load, except by begin_load
  Batch batch;      // of the thread's eviction, cleaning, discard or forget; its first Io is also a load's
  Stream stream;    // of the thread's misses
  Client* client;   // through which the thread asks the cache's servers; null: none so far
  char* page_copy;  // one page, aligned: what chaos mode reads back

 private:
  storage::Io* ios_[Batch::kMaxIos];  // of run_ios; too large for the stacks that it may run on
  storage::Queue* queue_;
  uint64_t bytes_;
};

}  // namespace cache
