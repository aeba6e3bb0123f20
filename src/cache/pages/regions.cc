#include "cache/pages/regions.h"

#include "sys/memory.h"

namespace cache {

base::Expected<void> Regions::open(uint64_t address_end) {
  bytes_ = base::round_up(address_end / kRegionBytes * sizeof(uint32_t) + 1, base::kOsPageBytes);
  auto memory = sys::map_anonymous(bytes_, "the regions' frames");
  if (!memory) return std::unexpected(memory.error());
  first_frames_ = reinterpret_cast<std::atomic<uint32_t>*>(*memory);
  return {};
}

void Regions::close() { sys::unmap(first_frames_, bytes_); }

bool Regions::begin_mapping() {
  if (mapped_count_.fetch_add(1, std::memory_order_seq_cst) >= most_mapped_) end(RegionsEnd::kMappings);
  if (is_on()) return true;
  mapped_count_.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

void Regions::note_mapped(uint64_t address, FrameId first_frame) {
  const uint64_t begin = base::round_down(address, kRegionBytes);
  first_frames_[begin / kRegionBytes].store(index(first_frame) + 1, std::memory_order_relaxed);
  uint64_t lowest = lowest_.load(std::memory_order_relaxed);
  while (begin < lowest && !lowest_.compare_exchange_weak(lowest, begin, std::memory_order_relaxed)) {
  }
  uint64_t highest = highest_end_.load(std::memory_order_relaxed);
  while (begin + kRegionBytes > highest &&
         !highest_end_.compare_exchange_weak(highest, begin + kRegionBytes, std::memory_order_relaxed)) {
  }
}

void Regions::note_unmapped(uint64_t address) {
  first_frames_[address / kRegionBytes].store(0, std::memory_order_relaxed);
  mapped_count_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace cache
