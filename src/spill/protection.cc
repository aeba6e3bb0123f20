#include "spill/protection.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>

#include "base/check.h"
#include "spill/access.h"
#include "spill/address_space.h"
#include "spill/holders.h"
#include "spill/mapped_pages.h"
#include "spill/native.h"
#include "spill/runtime.h"
#include "spill/satc.h"

namespace spill {
namespace {

constexpr uint64_t kRangeBytes = kRangeEnd - kRangeBegin;
constexpr uint64_t kPagesPerChunk = kChunkBytes / base::kOsPageBytes;
// A chunk whose OS pages have different protections.
constexpr uint8_t kMixed = 0xff;

// Protection by chunk of the range, or kMixed; and by OS page, valid in mixed chunks. A chunk becomes mixed only after
// the protections of all its OS pages have been stored.
std::atomic<uint8_t>* of_chunk = nullptr;
std::atomic<uint8_t>* of_page = nullptr;

uint64_t chunk_of(uint64_t address) { return (address - kRangeBegin) / kChunkBytes; }
uint64_t page_of(uint64_t address) { return (address - kRangeBegin) / base::kOsPageBytes; }
uint64_t chunk_end(uint64_t address) { return base::round_down(address, kChunkBytes) + kChunkBytes; }

class ClosedPages final : public cache::Closed {
 public:
  bool has_any(base::PageId page) override {
    const uint64_t address = runtime.cache->address_of(page);
    return in_reserved_range(address) && of_chunk[chunk_of(address)].load(std::memory_order_seq_cst) != 0;
  }
  bool has(base::PageId page, uint64_t i) override {
    return !is_open(runtime.cache->address_of(page) + i * base::kOsPageBytes);
  }
};
constinit ClosedPages closed;

// Step 3: sets a guard for each OS page that is closed and held. The range is whole pages of the cache, since
// close_again ended the guards of all their OS pages.
void guard_held(uint64_t begin, uint64_t end) {
  for_each_held(
      begin, end,
      [](void*, uint64_t address) {
        const Protection protection = protection_at(address);
        if (protection == Protection::kOpen || protection == Protection::kKernel) return;
        runtime.cache->guard(address, access_of(protection));
        base::statistics.spill_guards.add();
      },
      nullptr);
}

// Steps 2 and 3.
void settle(uint64_t address, uint64_t bytes, bool closes) {
  InRuntime inside;
  if (closes) satc_invalidate(address, bytes);
  cache::Cache& cache = *runtime.cache;
  const uint64_t begin = base::round_down(address, cache.page_bytes());
  const uint64_t end = base::round_up(address + bytes, cache.page_bytes());
  const auto seen = cache.close_again(cache.page_of(begin), (end - begin) / cache.page_bytes());
  // Whoever translates from here on sees the new entries; whoever did before stands in a slot.
  if (closes && seen.resident) hazard_holders().barrier();
  if ((closes && seen.resident) || seen.guarded) guard_held(begin, end);
}

struct Change {
  uint64_t address;
  uint64_t bytes;
  Protection protection;
};

// Step 1.
void change(const Change& wanted) {
  change_mappings(
      wanted.address, wanted.bytes,
      [](void* context) {
        const auto [address, bytes, protection] = *static_cast<Change*>(context);
        for (uint64_t at = address; at < address + bytes;) {
          const uint64_t stop = same_protection_end(at, address + bytes);
          if (protection_at(at) == Protection::kKernel) {
            const long result = sys::make_inaccessible(reinterpret_cast<void*>(at), stop - at);
            const int number = static_cast<int>(-result);
            if (result != 0)
              end_process(base::Error::of(number, "cannot unmap memory: ", base::error_name(number)),
                          kFatalStatus);
          }
          at = stop;
        }
        note_protection(address, bytes, protection);
      },
      const_cast<Change*>(&wanted));
}

}  // namespace

base::Expected<void> open_protections() {
  auto chunks = sys::map_anonymous(kRangeBytes / kChunkBytes, "the protections of chunks");
  if (!chunks) return std::unexpected(chunks.error());
  auto pages = sys::map_anonymous(kRangeBytes / base::kOsPageBytes, "the protections of OS pages");
  if (!pages) return std::unexpected(pages.error());
  of_chunk = reinterpret_cast<std::atomic<uint8_t>*>(*chunks);
  of_page = reinterpret_cast<std::atomic<uint8_t>*>(*pages);
  return {};
}

cache::Closed& closed_pages() { return closed; }

Protection protection_of_flags(int flags) {
  const bool executes = (flags & PROT_EXEC) != 0;
  if ((flags & PROT_WRITE) != 0) return executes ? Protection::kEverything : Protection::kOpen;
  if (executes) return Protection::kReadExecute;
  return (flags & PROT_READ) != 0 ? Protection::kRead : Protection::kNone;
}

sys::Access access_of(Protection protection) {
  switch (protection) {
    case Protection::kOpen: return sys::Access::kReadWrite;
    case Protection::kRead: return sys::Access::kRead;
    case Protection::kReadExecute: return sys::Access::kReadExecute;
    case Protection::kEverything: return sys::Access::kEverything;
    case Protection::kNone:
    case Protection::kKernel: break;
  }
  CHECK(protection == Protection::kNone);
  return sys::Access::kNone;
}

bool allows(Protection protection, Need need) {
  switch (protection) {
    case Protection::kOpen: return need != Need::kExecute;
    case Protection::kRead: return need == Need::kRead;
    case Protection::kReadExecute: return need != Need::kWrite;
    case Protection::kEverything: return true;
    case Protection::kNone:
    case Protection::kKernel: break;
  }
  return false;
}

Protection protection_at(uint64_t address) {
  if (!in_reserved_range(address)) return Protection::kOpen;  // a global
  uint8_t found = of_chunk[chunk_of(address)].load(std::memory_order_acquire);
  if (found == kMixed) found = of_page[page_of(address)].load(std::memory_order_acquire);
  return static_cast<Protection>(found);
}

uint64_t same_protection_end(uint64_t address, uint64_t end) {
  const auto wanted = static_cast<uint8_t>(protection_at(address));
  uint64_t at = address;
  while (at < end && in_reserved_range(at)) {
    const uint8_t found = of_chunk[chunk_of(at)].load(std::memory_order_acquire);
    if (found == kMixed) {
      if (of_page[page_of(at)].load(std::memory_order_acquire) != wanted) break;
      at = base::round_down(at, base::kOsPageBytes) + base::kOsPageBytes;
    } else {
      if (found != wanted) break;
      at = chunk_end(at);
    }
  }
  return in_reserved_range(address) && at < end ? at : end;
}

void note_protection(uint64_t address, uint64_t bytes, Protection protection) {
  const auto value = static_cast<uint8_t>(protection);
  for (uint64_t at = address; at < address + bytes;) {
    const uint64_t stop = std::min(chunk_end(at), address + bytes);
    std::atomic<uint8_t>& chunk = of_chunk[chunk_of(at)];
    const uint8_t before = chunk.load(std::memory_order_relaxed);
    if (stop - at == kChunkBytes) {
      // No store where nothing changes: it would take memory.
      if (before != value) chunk.store(value, std::memory_order_seq_cst);
    } else if (before != value) {
      const uint64_t first = page_of(base::round_down(at, kChunkBytes));
      for (uint64_t i = 0; before != kMixed && i < kPagesPerChunk; ++i)
        of_page[first + i].store(before, std::memory_order_relaxed);
      for (uint64_t page = page_of(at); page < page_of(stop - 1) + 1; ++page)
        of_page[page].store(value, std::memory_order_seq_cst);
      chunk.store(kMixed, std::memory_order_seq_cst);
    }
    at = stop;
  }
}

void protect(uint64_t address, uint64_t bytes, Protection protection) {
  const uint64_t end = address + bytes;
  if (protection == Protection::kOpen && is_open(address) && same_protection_end(address, end) == end) return;
  clear_slots();
  base::statistics.spill_protections.add();
  change({address, bytes, protection});
  settle(address, bytes, protection != Protection::kOpen);
}

void end_protection(uint64_t address, uint64_t bytes) { protect(address, bytes, Protection::kOpen); }

void renew_guards(uint64_t address) {
  settle(base::round_down(address, base::kOsPageBytes), base::kOsPageBytes, false);
}

bool give_to_kernel(uint64_t address, uint64_t bytes, bool (*map)(void* context), void* context) {
  struct Gift {
    Change change;
    bool (*map)(void* context);
    void* context;
    bool done;
  };
  Gift gift = {{address, bytes, Protection::kKernel}, map, context, false};
  clear_slots();
  // A handler that came while this thread has a partition's lock might need a page of that partition.
  const InRuntime inside;
  // Before the kernel's mapping is made: a region is unmapped as a whole, whatever has been mapped there since.
  end_native(cache::RegionsEnd::kKernelMapping);
  runtime.cache->unmap_regions(address, bytes);
  change_mappings(
      address, bytes,
      [](void* given) {
        Gift& wanted = *static_cast<Gift*>(given);
        wanted.done = wanted.map(wanted.context);
        if (wanted.done) note_protection(wanted.change.address, wanted.change.bytes, Protection::kKernel);
      },
      &gift);
  if (gift.done) settle(address, bytes, true);
  return gift.done;
}

}  // namespace spill
