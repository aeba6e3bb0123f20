#include "cache/partition/claim.h"

namespace cache {

void Claim::begin(PageId page, FrameId frame, bool is_fresh, Origins::Kind page_origin, FramePool& pool) {
  first = page;
  count = 1;
  origin = page_origin;
  fresh = is_fresh;
  watched = 0;
  set_frame(0, frame, pool);
}

void Claim::set_frame(uint32_t i, FrameId frame, FramePool& pool) {
  frames[i] = frame;
  versions[i] = pool[frame].version();
  if (pool[frame].watched) watched |= uint64_t{1} << i;
  segments[i] = {pool.unwatched_bytes(frame), pool.page_bytes()};
}

void Claim::skip(uint32_t i, char* waste, size_t page_bytes) {
  frames[i] = base::kNoFrame;
  segments[i] = {waste, page_bytes};
}

void Claim::take_fingerprints(uint32_t i, bool is_known, FramePool& pool) const {
  base::Fingerprint* const fingerprints = pool.fingerprints(frames[i]);
  const char* const bytes = pool.bytes(frames[i]);
  for (uint64_t piece = 0; piece < pool.pieces(); ++piece)
    fingerprints[piece] = is_known && !is_watched(i)
                              ? base::take_fingerprint(bytes + piece * base::kOsPageBytes)
                              : base::Fingerprint::unknown();
}

}  // namespace cache
