// Scans of the index.
#include "base/check.h"
#include "kv/index/index_inside.h"

namespace kv {

namespace {

constexpr unsigned kRegionShift = 64 - std::bit_width(kRegions - 1);

// The first position of hashes whose home is in the region, and whose next bits are those of `bits`, the lowest one first.
uint64_t position(uint32_t region, uint64_t bits) {
  return uint64_t{region} << kRegionShift | __builtin_bitreverse64(bits) >> (64 - kRegionShift);
}

// A hash with this position.
uint64_t hash_at(uint64_t position) {
  const uint64_t bits = __builtin_bitreverse64(position << (64 - kRegionShift));
  return bits << kHomeBits | (position >> kRegionShift) * kRegionSlots;
}

}  // namespace

uint64_t Index::position_of(uint64_t hash) { return position(region_of(home_of(hash)), rest(hash, 0)); }

ScanStep Index::scan(uint64_t at, std::span<Location> found, const Hook<ScanStep>& hook) const {
  CHECK_GE(found.size(), kMaxScan);
  CHECK_NE(at, kScanEnd);
  const uint64_t hash = hash_at(at);
  return locked(hash, true, [&](const Table& table, RegionLocks& locks) {
    const uint32_t region = region_of(home_of(hash));
    ScanStep step;
    step.begin = position(region, table.prefix);
    step.end = step.begin + (uint64_t{1} << (kRegionShift - locks.word().depth()));
    if (step.end == 0) step.end = kScanEnd;
    for_each_homed(table, region,
                   [&](uint32_t, uint32_t, uint64_t entry) { found[step.count++] = location(entry); });
    hook(step);
    return step;
  });
}

}  // namespace kv
