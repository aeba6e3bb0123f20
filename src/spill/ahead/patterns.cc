#include "spill/ahead/patterns.h"

#include <atomic>

#include "spill/abi.h"
#include "spill/address_space.h"
#include "sys/memory.h"

namespace spill {
namespace {

using Byte = std::atomic<Pattern>;
static_assert(sizeof(Byte) == 1);

constexpr uint64_t kMapBytes = (uint64_t{1} << kAddressBits) / kChunkBytes;

constinit std::atomic<Byte*> map{nullptr};

// No lock: if another thread held it during a fork, the child could never take it.
Byte* map_of_all() {
  Byte* present = map.load(std::memory_order_acquire);
  if (present != nullptr) return present;
  auto memory = sys::map_anonymous(kMapBytes, "what was said of memory");
  if (!memory) return nullptr;
  auto* const made = reinterpret_cast<Byte*>(*memory);
  // Pairs with pattern_at. Another thread may have been faster.
  if (map.compare_exchange_strong(present, made, std::memory_order_acq_rel)) return made;
  sys::unmap(made, kMapBytes);
  return present;
}

}  // namespace

// Relaxed: a pattern is only a hint.
void set_pattern(uint64_t address, uint64_t bytes, Pattern pattern) {
  if (bytes == 0 || (pattern == Pattern::kNormal && map.load(std::memory_order_relaxed) == nullptr)) return;
  Byte* const all = map_of_all();
  if (all == nullptr) return;
  for (uint64_t chunk = address / kChunkBytes; chunk <= (address + bytes - 1) / kChunkBytes; ++chunk)
    if (all[chunk].load(std::memory_order_relaxed) != pattern)
      all[chunk].store(pattern, std::memory_order_relaxed);
}

void forget_pattern(uint64_t address, uint64_t bytes) {
  const uint64_t first = base::round_up(address, kChunkBytes),
                 end = base::round_down(address + bytes, kChunkBytes);
  if (first < end) set_pattern(first, end - first, Pattern::kNormal);
}

Pattern pattern_at(uint64_t address) {
  const Byte* const all = map.load(std::memory_order_acquire);
  return all == nullptr ? Pattern::kNormal : all[address / kChunkBytes].load(std::memory_order_relaxed);
}

}  // namespace spill
