#include "spill/native.h"

#include <algorithm>

#include "base/probe.h"
#include "base/statistics.h"
#include "spill/access.h"
#include "spill/address_space.h"
#include "spill/file_maps.h"
#include "spill/protection.h"
#include "spill/runtime.h"
#include "sys/kernel.h"
#include "sys/memory.h"

// Each object with native bodies defines it; other programs do not have it.
extern "C" const char __spillway_has_native_bodies __attribute__((weak, visibility("default")));

namespace spill {
namespace {

// Each partition needs frames for this many regions, or native bodies would end before they had begun. Chaos mode is to exercise their end.
constexpr uint64_t kMinRegions = 8;
constexpr uint64_t kMinRegionsInChaos = 1;

constinit uint64_t begin_ns = 0;

std::atomic<uint8_t>& byte() { return *reinterpret_cast<std::atomic<uint8_t>*>(kNativeBodies); }

uint64_t milliseconds() { return std::max<uint64_t>(1, (sys::monotonic_ns() - begin_ns) / 1'000'000); }

// What is allocated, open, and not a file's.
class NativeAddresses final : public cache::Mappable {
 public:
  bool find(uint64_t& begin, uint64_t& end) override {
    if (!in_reserved_range(begin) || is_file_map(begin)) return false;
    while (begin < end) {
      const uint64_t stop = std::min(same_allocation_end(begin, end), same_protection_end(begin, end));
      if (is_allocated(begin) && is_open(begin)) {
        end = stop;
        return true;
      }
      begin = stop;
    }
    return false;
  }

  void ended(cache::RegionsEnd why) override {
    byte().store(0, std::memory_order_release);
    const uint64_t ran_ms = milliseconds();
    base::statistics.spill_native_ms.set(ran_ms);
    base::statistics.spill_native_end.set(static_cast<uint64_t>(why));
    base::probes::native_end(static_cast<uint64_t>(why), ran_ms);
  }
};
constinit NativeAddresses addresses;

}  // namespace

base::Expected<void> open_native() {
  return sys::reserve_at(kNativeBodies, base::kOsPageBytes, sys::Access::kReadWrite,
                         "what tells of native bodies");
}

void begin_native() {
  if (&__spillway_has_native_bodies == nullptr || runtime.options.native == 0) return;
  cache::Cache& cache = *runtime.cache;
  const uint64_t regions =
      cache.frame_count() / cache.partition_count() * cache.page_bytes() / cache::kRegionBytes;
  if (regions < (runtime.options.chaos != 0 ? kMinRegionsInChaos : kMinRegions)) return;
  begin_ns = sys::monotonic_ns();
  byte().store(1, std::memory_order_release);
  cache.begin_regions(addresses);
}

bool runs_native() { return byte().load(std::memory_order_relaxed) != 0; }

void end_native(cache::RegionsEnd why) { runtime.cache->end_regions(why); }

bool map_native(uint64_t address) {
  if (!runtime.cache->has_regions() || !in_reserved_range(address) || !is_open(address)) return false;
  InRuntime inside;
  if (!runtime.cache->map_own(runtime.cache->page_of(address), workspace_of(inside.thread()))) return false;
  base::statistics.spill_native_faults.add();
  return true;
}

void count_native_time() {
  if (runtime.cache->maps_regions()) base::statistics.spill_native_ms.set(milliseconds());
}

}  // namespace spill
