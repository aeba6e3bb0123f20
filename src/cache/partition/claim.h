// Claim: the consecutive pages of a load, and the frames that were claimed for them: what the steps of Load after step 3 (partition.h) need,
// which hold no lock or are taken by another thread.
//
// The partition claims the frames, and ends the load, under its lock. The steps in between access the frames but nothing else of the partition.
//
// Memory: 1.5 KiB. There is one for each load that is under way (load_queue.h).
#pragma once
#include <sys/uio.h>

#include "cache/origins.h"
#include "cache/pages/frame_pool.h"
#include "storage/device.h"

namespace cache {

struct Claim {
  // The most pages of one read.
  static constexpr uint32_t kMaxPages = 64;
  static_assert(kMaxPages <= storage::kMaxSegments && kMaxPages <= 64);  // bits of `watched`

  PageId first{};
  uint32_t count = 0;
  Origins::Kind origin = Origins::Kind::kZeros;  // of pages without a place
  bool fresh = false;                            // the first frame's memory is zeros
  uint64_t watched = 0;                          // a bit for each frame that was watched when it was claimed
  FrameId frames[kMaxPages];                     // kNoFrame: what is read for this page is discarded
  uint32_t versions[kMaxPages];                  // of the frames, since they were claimed
  iovec segments[kMaxPages];  // where the content goes. A fork may give a frame other memory meanwhile

  // Makes this page the only one. `is_fresh`: the frame's memory is zeros. REQUIRES: the partition's lock; the frame was claimed for the page.
  void begin(PageId page, FrameId frame, bool is_fresh, Origins::Kind page_origin, FramePool& pool);
  // Sets the i-th page's frame. REQUIRES: as begin().
  void set_frame(uint32_t i, FrameId frame, FramePool& pool);
  // Discards what is read for the i-th page: it goes to `waste`, which has room for a page.
  void skip(uint32_t i, char* waste, size_t page_bytes);
  // Step 5 of Load for the i-th page, whose content has arrived. `is_known` is false if another load might read something else: the fingerprints are
  // unknown then. A watched frame needs none: the kernel says what was stored to. REQUIRES: has_frame(i).
  void take_fingerprints(uint32_t i, bool is_known, FramePool& pool) const;

  bool has_frame(uint32_t i) const { return frames[i] != base::kNoFrame; }
  bool is_watched(uint32_t i) const { return (watched >> i & 1) != 0; }
};

}  // namespace cache
