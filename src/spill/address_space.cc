#include "spill/address_space.h"

#include <atomic>

#include "base/check.h"
#include "sys/lock.h"
#include "sys/memory.h"

namespace spill {
namespace {

constexpr uint64_t kChunkCount = (uint64_t{1} << kAddressBits) / kChunkBytes;
constexpr uint64_t kPagesPerChunk = kChunkBytes / base::kOsPageBytes;

struct FreeRange {
  uint64_t begin;
  uint64_t end;
  FreeRange* next;
};

constinit sys::Mutex mutex;
std::atomic<ChunkUse>* chunk_use = nullptr;
std::atomic<uint64_t>* page_bits = nullptr;
FreeRange* free_list = nullptr;  // sorted by address, never touching
FreeRange* spare_nodes = nullptr;
uint64_t range_end = kRangeBegin;  // addresses at or past it were never allocated

FreeRange* new_node(uint64_t begin, uint64_t end, FreeRange* next) {
  if (spare_nodes == nullptr) {
    constexpr uint64_t kBlockBytes = 64 * 1024;
    auto memory = sys::map_anonymous(kBlockBytes, "free address ranges");
    if (!memory) return nullptr;
    auto* nodes = reinterpret_cast<FreeRange*>(*memory);
    for (uint64_t i = 0; i < kBlockBytes / sizeof(FreeRange); ++i) {
      nodes[i].next = spare_nodes;
      spare_nodes = &nodes[i];
    }
  }
  FreeRange* node = spare_nodes;
  spare_nodes = node->next;
  *node = {begin, end, next};
  return node;
}

void set_page_bits(uint64_t chunk, uint64_t first, uint64_t end, bool allocated) {
  for (uint64_t page = first; page < end; ++page) {
    auto& word = page_bits[(chunk * kPagesPerChunk + page) / 64];
    const uint64_t bit = uint64_t{1} << (page % 64);
    if (allocated) {
      word.fetch_or(bit, std::memory_order_relaxed);
    } else {
      word.fetch_and(~bit, std::memory_order_relaxed);
    }
  }
}

// Marks [address, address + bytes) allocated or free. REQUIRES: mutex.
void mark(uint64_t address, uint64_t bytes, bool allocated) {
  for (uint64_t at = address; at < address + bytes;) {
    const uint64_t chunk = at / kChunkBytes;
    const uint64_t chunk_begin = chunk * kChunkBytes;
    uint64_t end = chunk_begin + kChunkBytes;
    if (end > address + bytes) end = address + bytes;
    if (end - at == kChunkBytes) {
      chunk_use[chunk].store(allocated ? ChunkUse::kEverything : ChunkUse::kNothing,
                             std::memory_order_release);
    } else {
      const ChunkUse use = chunk_use[chunk].load(std::memory_order_relaxed);
      if (use != ChunkUse::kSome) set_page_bits(chunk, 0, kPagesPerChunk, use == ChunkUse::kEverything);
      set_page_bits(chunk, (at - chunk_begin) / base::kOsPageBytes, (end - chunk_begin) / base::kOsPageBytes,
                    allocated);
      chunk_use[chunk].store(ChunkUse::kSome, std::memory_order_release);
    }
    at = end;
  }
}

// Cuts [begin, begin + bytes) out of *link's range. False when there is no memory for a second piece.
bool cut(FreeRange** link, uint64_t begin, uint64_t bytes) {
  FreeRange* range = *link;
  const uint64_t end = begin + bytes;
  if (begin > range->begin && end < range->end) {
    FreeRange* rest = new_node(end, range->end, range->next);
    if (rest == nullptr) return false;
    range->end = begin;
    range->next = rest;
  } else if (begin > range->begin) {
    range->end = begin;
  } else if (end < range->end) {
    range->begin = end;
  } else {
    *link = range->next;
    range->next = spare_nodes;
    spare_nodes = range;
  }
  return true;
}

void add_free(uint64_t begin, uint64_t end) {
  FreeRange** link = &free_list;
  while (*link != nullptr && (*link)->end < begin) link = &(*link)->next;
  FreeRange* next = *link;
  if (next != nullptr && next->begin <= end) {
    // Touches the range found: grow it, and swallow the one after if they meet now.
    if (begin < next->begin) next->begin = begin;
    if (end > next->end) next->end = end;
    FreeRange* after = next->next;
    if (after != nullptr && after->begin <= next->end) {
      next->end = after->end;
      next->next = after->next;
      after->next = spare_nodes;
      spare_nodes = after;
    }
    return;
  }
  // Without memory for a node the addresses are lost; the range is 16 TiB.
  if (FreeRange* node = new_node(begin, end, next)) *link = node;
}

}  // namespace

base::Expected<void> open_address_space() {
  auto chunks = sys::map_anonymous(kChunkCount, "the chunk map");
  if (!chunks) return std::unexpected(chunks.error());
  auto pages = sys::map_anonymous(kChunkCount * kPagesPerChunk / 8, "the map of allocated pages");
  if (!pages) return std::unexpected(pages.error());
  chunk_use = reinterpret_cast<std::atomic<ChunkUse>*>(*chunks);
  page_bits = reinterpret_cast<std::atomic<uint64_t>*>(*pages);
  return {};
}

uint64_t allocate_addresses(uint64_t bytes, uint64_t alignment) {
  CHECK_EQ(bytes % base::kOsPageBytes, 0u);
  sys::LockGuard guard(mutex);
  for (FreeRange** link = &free_list; *link != nullptr; link = &(*link)->next) {
    const uint64_t begin = base::round_up((*link)->begin, alignment);
    if (begin > (*link)->end || (*link)->end - begin < bytes) continue;
    if (!cut(link, begin, bytes)) break;
    mark(begin, bytes, true);
    return begin;
  }
  const uint64_t begin = base::round_up(range_end, alignment);
  if (begin >= kRangeEnd || kRangeEnd - begin < bytes) return 0;
  if (begin > range_end) add_free(range_end, begin);
  range_end = begin + bytes;
  mark(begin, bytes, true);
  return begin;
}

bool allocate_addresses_at(uint64_t address, uint64_t bytes) {
  sys::LockGuard guard(mutex);
  if (address == range_end && kRangeEnd - address >= bytes) {
    range_end += bytes;
    mark(address, bytes, true);
    return true;
  }
  for (FreeRange** link = &free_list; *link != nullptr; link = &(*link)->next) {
    if (address < (*link)->begin || address >= (*link)->end) continue;
    if ((*link)->end - address < bytes || !cut(link, address, bytes)) return false;
    mark(address, bytes, true);
    return true;
  }
  return false;
}

void free_addresses(uint64_t address, uint64_t bytes) {
  sys::LockGuard guard(mutex);
  mark(address, bytes, false);
  add_free(address, address + bytes);
}

void withhold_addresses(uint64_t address, uint64_t bytes) {
  sys::LockGuard guard(mutex);
  mark(address, bytes, false);
}

AddressMaps address_maps() {
  return {reinterpret_cast<uint64_t>(chunk_use), reinterpret_cast<uint64_t>(page_bits)};
}

void mark_globals(uint64_t begin, uint64_t bytes, bool spilled) {
  sys::LockGuard guard(mutex);
  mark(begin, bytes, spilled);
}

uint64_t bytes_before_globals(uint64_t begin, uint64_t bytes) {
  const uint64_t end = begin + bytes;
  for (uint64_t at = base::round_down(begin, base::kOsPageBytes); at < end && at >> kAddressBits == 0;) {
    if (chunk_use[at / kChunkBytes].load(std::memory_order_acquire) == ChunkUse::kNothing) {
      at = base::round_down(at, kChunkBytes) + kChunkBytes;
    } else if (is_allocated(at)) {
      return at > begin ? at - begin : 0;
    } else {
      at += base::kOsPageBytes;
    }
  }
  return bytes;
}

bool touches_globals(uint64_t begin, uint64_t bytes) { return bytes_before_globals(begin, bytes) < bytes; }

bool is_global(uint64_t address) { return address >> kAddressBits == 0 && is_allocated(address); }

void freeze_addresses() { mutex.lock(); }
void thaw_addresses() { mutex.unlock(); }

bool is_allocated(uint64_t address) {
  return is_allocated_by(
      address, [](uint64_t i) { return chunk_use[i].load(std::memory_order_acquire); },
      [](uint64_t i) { return page_bits[i].load(std::memory_order_relaxed); });
}

bool touches_runtime(const void* address, uint64_t bytes) {
  const auto begin = reinterpret_cast<uint64_t>(address);
  const auto touches = [=](uint64_t own, uint64_t own_bytes) {
    return begin < own + own_bytes && (begin >= own || bytes > own - begin);
  };
  return touches(kNativeBodies, base::kOsPageBytes) || touches(kPublished, base::kOsPageBytes) ||
         touches(kUnregisteredSlots, base::kOsPageBytes) || touches(kTableBase, kTableBytes);
}

uint64_t same_allocation_end(uint64_t address, uint64_t end) {
  const bool allocated = is_allocated(address);
  uint64_t at = base::round_down(address, base::kOsPageBytes);
  while (at < end) {
    const uint64_t chunk = at / kChunkBytes;
    const ChunkUse use = chunk_use[chunk].load(std::memory_order_acquire);
    if ((use == ChunkUse::kSome ? is_allocated(at) : use == ChunkUse::kEverything) != allocated) break;
    at = use == ChunkUse::kSome ? at + base::kOsPageBytes : (chunk + 1) * kChunkBytes;
  }
  return at < end ? at : end;
}

}  // namespace spill
