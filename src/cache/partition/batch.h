// Batch: the pages that one eviction, cleaning, discard or forget has taken, its victims, and the Ios that write what has changed of them.
//
// The partition takes the victims and settles them, under its lock (partition.h). What is done here sees their frames and nothing else of the partition,
// and holds no lock unless it says so. A victim may be rescued meanwhile, and stored to: what was found of it is not used then, since the version of its
// frame is another one.
//
// Thread contract: its lane's thread. Memory: most of a lane's.
#pragma once
#include <sys/uio.h>

#include "cache/holders.h"
#include "cache/pages/frame_pool.h"
#include "storage/device.h"

namespace cache {

class Batch {
 public:
  static constexpr uint32_t kMaxVictims = 128;
  static constexpr uint32_t kMaxSegments = 4 * kMaxVictims;
  static constexpr uint32_t kMaxIos = 2 * kMaxVictims;
  static constexpr size_t kMaxPieces = 512;  // OS pages of the largest page, 2 MiB

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

  // No victims, Ios or segments from here on.
  void begin() { victim_count = io_count = segment_count = 0; }

  // Finds the victims that threads hold. REQUIRES: a barrier of the holders since the victims were taken.
  void mark_held(Holders& holders);
  // Asks the kernel which OS pages of watched victims were not stored to, in one call about those that lie together. Leaves out held ones.
  void find_untouched(const FramePool& frames);
  // Finds what has changed of each victim by its fingerprints, but for those that are held, verified or untouched.
  void compare(FramePool& frames);
  // Copies each victim that has changed, as a whole: the i-th to the i-th page of `copies`. Leaves out held and untouched ones. The victims may change
  // meanwhile.
  void copy_changed(FramePool& frames, char* copies);
  // For victims that were compared and found unchanged: their frames are watched from now on, if most pages of the batch are unchanged; else it would
  // cost a fault for each that is stored to. REQUIRES: the partition's lock, so that a frame that has become another page's meanwhile is not protected:
  // it may be watched, and changed.
  void watch_unchanged(FramePool& frames);
  // Adds the Ios that write what has changed of the victim v to its place, whose fingerprints become unknown. `victims_left`: how many are to be written
  // behind it. REQUIRES: the partition's lock.
  void add_writes(uint32_t v, uint64_t place_offset, uint32_t victims_left, FramePool& frames);
  // The memory of frames that the batch has made free goes back to the system. REQUIRES: the partition's lock.
  void release_freed(FramePool& frames) const;
  // Adds a piece to the last Io if that ends where the piece begins, else makes one more Io, a write. REQUIRES: there is room for both.
  void add_write(uint64_t offset, char* bytes, uint64_t length);

  Victim victims[kMaxVictims];
  uint32_t victim_count;
  uint64_t changed[kMaxVictims][kMaxPieces / 64];    // of each victim, a bit for each OS page
  uint64_t untouched[kMaxVictims][kMaxPieces / 64];  // the same; only of watched victims
  storage::Io ios[kMaxIos];
  uint32_t io_count;
  iovec segments[kMaxSegments];
  uint32_t segment_count;
  int write_error;  // of the last write that failed, until a message has been written of it; 0: none
};

}  // namespace cache
