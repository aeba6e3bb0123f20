// Lane: what one thread brings along when it works in a cache: its queue to the storage device and the
// working memory of one operation, which does not fit the stack of every thread that may miss.
//
// Thread contract: one thread at a time; not reentrant. Memory: about 60 KiB plus one page, from the OS, most of
// which only changed pages touch.
#pragma once
#include "cache/partition/claim.h"

namespace cache {

// Where a sequence of misses has come to, for reading ahead.
struct Stream {
  PageId last_miss{};
  uint32_t miss_streak = 0;
};

class Client;

class Lane {
 public:
  static constexpr uint32_t kMaxBatch = 128;
  static constexpr uint32_t kMaxSegments = 4 * kMaxBatch;
  static constexpr uint32_t kMaxIos = 2 * kMaxBatch;
  static constexpr size_t kMaxPieces = 512;  // OS pages of the largest page, 2 MiB

  // A page that a batch of an eviction, a cleaning, a discard or a forget has locked.
  struct Victim {
    FrameId frame = base::kNoFrame;
    PageId page{};
    uint32_t version = 0;                // of the frame after the batch's last edge
    bool held = false;                   // a thread holds it
    bool verified = false;               // it was when it was locked: its content need not be looked at
    bool watched = false;                // its frame was when it was locked
    bool guarded = false;                // its frame was when it was locked
    bool untouched = false;              // watched, and the kernel says that nobody stored to it
    bool newly_protected = false;        // its frame's memory was protected in this eviction
    bool whole_page = false;             // its place is its first: nothing on storage is to be kept
    uint32_t changed_count = 0;          // OS pages to write
    PlaceId new_place = base::kNoPlace;  // where it moves if its write succeeds
    bool must_move = false;              // it may not be written where it is
    uint32_t first_io = 0;
    uint32_t last_io = 0;  // inclusive
  };

  // Maps a lane and opens its queue. Errors: as Device::open_queue; ENOMEM.
  static base::Expected<Lane*> create(storage::Device& device, size_t page_bytes);
  void destroy();

  storage::Queue& queue() { return *queue_; }
  // No victims, Ios or segments from here on.
  void begin_batch() { victim_count = io_count = segment_count = 0; }
  // Runs the first io_count of `ios` together until all are completed. Cost: I/O.
  void run_ios();

  Claim claim;  // of the thread's load, unless that is begun
  Victim victims[kMaxBatch];
  uint32_t victim_count;
  uint64_t changed[kMaxBatch][kMaxPieces / 64];    // of each victim, a bit for each OS page
  uint64_t untouched[kMaxBatch][kMaxPieces / 64];  // the same; only of watched victims
  storage::Io ios[kMaxIos];
  uint32_t io_count;
  iovec segments[kMaxSegments];
  uint32_t segment_count;
  int write_error;  // of the last write that failed, until a message has been written of it; 0: none
  Stream stream;    // of the thread's misses
  Client* client;   // by which the thread asks the cache's servers; null: none so far
  char* page_copy;  // one page, aligned: the cleaner's copy, chaos's read-back

 private:
  storage::Io* batch_[kMaxIos];  // of run_ios: it is too large for the stacks that this may run on
  storage::Queue* queue_;
  uint64_t bytes_;
};

}  // namespace cache
