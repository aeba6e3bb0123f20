// Batch: the victims, which are the pages that one eviction, cleaning, discard or forget works on, and the Ios that write what has changed in them.
//
// The partition takes the victims and settles them, under its lock (partition.h). The functions here access their frames but nothing else of the
// partition, and without the lock unless they require it. A victim may be rescued meanwhile, and stored to: its frame then has another version, and
// what was found out about it is not used.
//
// Thread contract: its workspace's thread. Memory: most of a workspace's.
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
    bool verified = false;               // was verified when it was locked: its content need not be looked at
    bool watched = false;                // its frame was watched when it was locked
    bool guarded = false;                // its frame was guarded when it was locked
    bool untouched = false;              // watched, and the kernel says that nobody stored to it
    bool newly_protected = false;        // its frame's memory was protected in this eviction
    bool whole_page = false;             // it had no place before: all of it has to be written
    uint32_t changed_count = 0;          // OS pages to write
    PlaceId new_place = base::kNoPlace;  // where it moves if its write succeeds
    bool must_move = false;              // it must not be written at its present place
    uint32_t first_io = 0;
    uint32_t last_io = 0;  // inclusive
  };

  // Removes all victims, Ios and segments.
  void begin() { victim_count = io_count = segment_count = 0; }

  // Finds the victims that threads hold. REQUIRES: the holders' barrier since the victims were taken.
  void mark_held(Holders& holders);
  // Asks the kernel which OS pages of watched victims were not stored to, with one call for those that lie together. Leaves out held victims.
  void find_untouched(const FramePool& frames);
  // Finds by fingerprints what has changed in each victim that is not held, verified or untouched.
  void compare(FramePool& frames);
  // Copies each changed victim as a whole: the i-th to the i-th page of `copies`. Leaves out held and untouched ones. The victims may change meanwhile.
  void copy_changed(FramePool& frames, char* copies);
  // Protects the frames of victims that were compared and found unchanged, to be watched from now on, if most pages of the batch are unchanged; else it
  // would cost too many faults. REQUIRES: the partition's lock, so that no frame is protected that has become another page's meanwhile: that frame may
  // be watched, and have been stored to.
  void watch_unchanged(FramePool& frames);
  // Adds the Ios that write what has changed in victim v to its place at `place_offset`; the fingerprints of what is written become unknown.
  // `victims_left`: how many victims are still to be added after it. REQUIRES: the partition's lock.
  void add_writes(uint32_t v, uint64_t place_offset, uint32_t victims_left, FramePool& frames);
  // Returns to the OS the memory of the victims' frames that have become free. REQUIRES: the partition's lock.
  void release_freed(FramePool& frames) const;
  // Adds a piece to the last Io if that ends where the piece begins, else adds one more write Io. REQUIRES: there is room for the segment and the Io.
  void add_write(uint64_t offset, char* bytes, uint64_t length);

  Victim victims[kMaxVictims];
  uint32_t victim_count;
  uint64_t changed[kMaxVictims][kMaxPieces / 64];    // of each victim, a bit for each OS page
  uint64_t untouched[kMaxVictims][kMaxPieces / 64];  // the same; only of watched victims
  storage::Io ios[kMaxIos];
  uint32_t io_count;
  iovec segments[kMaxSegments];
  uint32_t segment_count;
  int write_error;  // of the last failed write that has not been reported yet; 0: none
};

}  // namespace cache
