// Partition: step 4 of Load for pages with an origin (origins.h).
#include "base/probe.h"
#include "cache/partition/partition.h"

namespace cache {

// What a changing origin yields now may differ from what it yields next time, so such pages keep unknown fingerprints.
base::Expected<void> Partition::fill_from_origin(const Claim& claim) {
  auto bytes = shared_->origins->read(claim.first, claim.segments, claim.count);
  // Perhaps only the pages that were read ahead have failed.
  if (!bytes && claim.count > 1) bytes = shared_->origins->read(claim.first, claim.segments, 1);
  const uint64_t got = bytes ? *bytes : 0;
  const auto good_count = static_cast<uint32_t>((got + shared_->page_bytes - 1) / shared_->page_bytes);
  if (const uint64_t rest = good_count * shared_->page_bytes - got; rest > 0)
    spillway_plain_memset(
        static_cast<char*>(claim.segments[good_count - 1].iov_base) + (shared_->page_bytes - rest), 0, rest);
  for (uint32_t i = 0; i < good_count; ++i)
    claim.take_fingerprints(i, claim.origin == Origins::Kind::kConstant, frames_);
  const PageId page = claim.first;
  base::statistics.cache_origin_reads.add(good_count);
  finish_load(claim, good_count);
  base::probes::load_done(index(page), good_count, got);
  if (!bytes) return std::unexpected(bytes.error());
  if (good_count == 0)
    return base::failure(ENXIO, "page ", index(page), " is past the end of what it comes from");
  return {};
}

}  // namespace cache
