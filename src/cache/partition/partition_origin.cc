// Partition: step 4 of Load for pages that come from elsewhere (origins.h).
#include "base/probe.h"
#include "cache/partition/partition.h"

namespace cache {

// What an origin that may change yields is not what it yields next time: its fingerprint stays unknown.
base::Expected<void> Partition::fill_from_origin(Lane& lane) {
  for (uint32_t i = 0; i < lane.victim_count; ++i)
    lane.segments[i] = {lane.victims[i].memory, shared_->page_bytes};
  auto bytes = shared_->origins->read(lane.victims[0].page, lane.segments, lane.victim_count);
  // What was only read ahead may be what failed.
  if (!bytes && lane.victim_count > 1) bytes = shared_->origins->read(lane.victims[0].page, lane.segments, 1);
  const uint64_t got = bytes ? *bytes : 0;
  const auto good_count = static_cast<uint32_t>((got + shared_->page_bytes - 1) / shared_->page_bytes);
  if (const uint64_t rest = good_count * shared_->page_bytes - got; rest > 0)
    spillway_plain_memset(lane.victims[good_count - 1].memory + (shared_->page_bytes - rest), 0, rest);
  for (uint32_t i = 0; i < good_count; ++i)
    take_fingerprints(lane.victims[i], lane.victims[i].origin == Origins::Kind::kConstant);
  const PageId page = lane.victims[0].page;
  base::statistics.cache_origin_reads.add(good_count);
  finish_load({lane.victims, lane.victim_count}, good_count);
  base::probes::load_done(index(page), good_count, got);
  if (!bytes) return std::unexpected(bytes.error());
  if (good_count == 0)
    return base::failure(ENXIO, "page ", index(page), " is past the end of what it comes from");
  return {};
}

}  // namespace cache
