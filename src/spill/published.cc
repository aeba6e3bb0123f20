#include "spill/published.h"

#include "spill/runtime.h"
#include "sys/memory.h"

namespace spill {

base::Expected<void> publish() {
  auto page = sys::reserve_at(kPublished, base::kOsPageBytes, sys::Access::kReadWrite, "the published page");
  if (!page) return page;
  sys::keep_in_core_files(reinterpret_cast<void*>(kPublished), base::kOsPageBytes);
  auto& published = *reinterpret_cast<Published*>(kPublished);
  published.layout_version = kLayoutVersion;
  published.statistics = reinterpret_cast<uint64_t>(&base::statistics);
  published.is_fork_child = reinterpret_cast<uint64_t>(&runtime.is_fork_child);
  const auto whereabouts = runtime.device->whereabouts();
  published.storage_memory = reinterpret_cast<uint64_t>(whereabouts.memory);
  published.storage_descriptor = whereabouts.descriptor;
  published.address_maps = address_maps();
  published.cache = runtime.cache->layout();
  base::TextRef(published.device, sizeof published.device) << runtime.device->name();
  __atomic_store_n(&published.magic, Published::kMagic, __ATOMIC_RELEASE);
  return {};
}

}  // namespace spill
