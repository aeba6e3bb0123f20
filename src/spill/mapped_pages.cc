#include "spill/mapped_pages.h"

#include <algorithm>

#include "base/options.h"
#include "base/probe.h"
#include "spill/access.h"
#include "spill/address_space.h"
#include "spill/budget.h"
#include "spill/file_maps.h"
#include "spill/fork.h"
#include "spill/native.h"
#include "spill/pins.h"
#include "spill/protection.h"
#include "spill/runtime.h"
#include "sys/lock.h"
#include "sys/memory.h"

namespace spill {
namespace {

// Mapped pages in the order they were mapped: a ring of page numbers + 1, 0 for an element whose page
// was unmapped early.
constinit sys::Mutex mapped_mutex;
constinit uint64_t mapped_pages[base::kMaxMappedPages] = {};
constinit std::atomic<uint32_t> mapped_limit = 0;
constinit uint32_t mapped_next = 0;

// How many were mapped while native bodies ran, and how many may be.
constexpr uint32_t kMaxSinglePages = 2048;
constinit uint32_t single_pages = 0;

// Ranges that stay mapped (keep_mapped), as the program gave them; `bytes` 0 for an unused element. Their
// pages are pinned once for each range that they are part of.
struct KeptRange {
  uint64_t begin;
  uint64_t bytes;
  base::PageId first_page() const { return runtime.cache->page_of(begin); }
  base::PageId last_page() const { return runtime.cache->page_of(begin + bytes - 1); }
};
constexpr uint32_t kMaxKept = 512;
constinit KeptRange kept_ranges[kMaxKept] = {};
constinit std::atomic<uint32_t> kept_count{0};
constinit std::atomic<uint64_t> kept_pages = 0;

// Calls f(address, bytes, protection) for each part of the page that has one protection, except where the kernel has a mapping of its own.
template <class F>
void for_each_part(base::PageId page, F&& f) {
  const uint64_t begin = runtime.cache->address_of(page), end = begin + runtime.cache->page_bytes();
  for (uint64_t at = begin; at < end;) {
    const Protection protection = protection_at(at);
    const uint64_t stop = same_protection_end(at, end);
    if (protection != Protection::kKernel) f(at, stop - at, protection);
    at = stop;
  }
}

void require_done(long result, const char* what) {
  const int number = static_cast<int>(-result);
  if (result != 0) end_process(base::Error::of(number, what, base::error_name(number)), kFatalStatus);
}

void make_page_inaccessible(base::PageId page) {
  for_each_part(page, [](uint64_t address, uint64_t bytes, Protection) {
    require_done(sys::make_inaccessible(reinterpret_cast<void*>(address), bytes), "cannot unmap a page: ");
  });
}

// Maps a page that is pinned at `pinned`.
void map_page(base::PageId page, const char* pinned) {
  runtime.cache->stop_watching(page);
  const auto piece = runtime.cache->file_piece(page, pinned);
  const uint64_t begin = runtime.cache->address_of(page);
  for_each_part(page, [&](uint64_t address, uint64_t bytes, Protection protection) {
    auto mapped = sys::map_shared(piece.descriptor, piece.offset + (address - begin), bytes,
                                  access_of(protection), reinterpret_cast<void*>(address));
    if (!mapped) end_process(mapped.error(), kFatalStatus);
  });
}

// Gives a page that stays mapped the access that its protection now says.
void set_page_access(base::PageId page) {
  for_each_part(page, [](uint64_t address, uint64_t bytes, Protection protection) {
    require_done(sys::set_access(reinterpret_cast<void*>(address), bytes, access_of(protection)),
                 "cannot protect memory that is a stack: ");
  });
}

// REQUIRES: mapped_mutex.
void unmap_element(uint32_t element) {
  if (mapped_pages[element] == 0) return;
  const base::PageId page{mapped_pages[element] - 1};
  mapped_pages[element] = 0;
  if (!is_kept(page)) make_page_inaccessible(page);
  runtime.cache->unpin(page);
  base::statistics.spill_unmaps.add();
}

bool is_mapped(base::PageId page) {
  for (uint32_t i = 0; i < mapped_limit; ++i)
    if (mapped_pages[i] == index(page) + 1) return true;
  return false;
}

// Maps a page that is pinned at `pinned` as the newest element. REQUIRES: mapped_mutex, and that it is not mapped.
void map_pinned(base::PageId page, const char* pinned, uint64_t site) {
  const uint32_t element = mapped_next;
  mapped_next = mapped_next + 1 == mapped_limit ? 0 : mapped_next + 1;
  unmap_element(element);
  map_page(page, pinned);
  mapped_pages[element] = index(page) + 1;
  base::statistics.spill_faults.add();
  base::statistics.spill_fault_sites.add(site);  // mapped_mutex orders additions
  // If regions cannot be mapped, instrumented bodies are faster.
  if (runtime.cache->maps_regions() && ++single_pages == kMaxSinglePages)
    end_native(cache::RegionsEnd::kSinglePages);
}

// Is all of the range kept already, as a part of another? If not, `unused` becomes an element for it, unless there is none. REQUIRES: mapped_mutex.
bool find_kept(const KeptRange& range, KeptRange*& unused) {
  for (KeptRange& old : kept_ranges) {
    if (old.bytes == 0)
      unused = &old;
    else if (range.begin - old.begin < old.bytes && range.bytes <= old.begin + old.bytes - range.begin)
      return true;
  }
  return false;
}

}  // namespace

void adjust_mapped_pages() {
  constexpr uint64_t kMapped = 1024;
  uint64_t limit = runtime.options.mapped_pages != 0 ? runtime.options.mapped_pages : kMapped;
  limit = std::max<uint64_t>(2, std::min<uint64_t>(limit, runtime.cache->frame_count() / 4));
  sys::LockGuard guard(mapped_mutex);
  for (auto i = static_cast<uint32_t>(limit); i < mapped_limit; ++i) unmap_element(i);
  mapped_limit = static_cast<uint32_t>(limit);
  if (mapped_next >= mapped_limit) mapped_next = 0;
}

uint64_t kept_page_count() { return kept_pages.load(std::memory_order_relaxed); }

uint64_t most_mapped_pages() { return mapped_limit.load(std::memory_order_relaxed); }

void map_at_own_address(uint64_t address, uint64_t site) {
  InRuntime inside;
  cache::Cache& cache = *runtime.cache;
  const base::PageId page = cache.page_of(address);
  if (keeps_pages()) {
    sys::LockGuard guard(mapped_mutex);
    if (is_kept(page)) return;
  }
  if (map_native(address)) return;
  base::probes::fault(address, site);
  auto pinned = cache.pin_shared(page, workspace_of(inside.thread()));
  if (!pinned && is_file_map_error(address, pinned.error())) {
    show_bus_error(address);
    return;
  }
  if (!pinned) end_process(pinned.error(), kFatalStatus);
  const bool waits = !mapped_mutex.try_lock();
  // The lock's holder may be a fork, which waits for pins; and after a fork the frame is the child's too.
  if (waits || !cache.is_shared(page)) {
    cache.unpin(page);
    if (waits) mapped_mutex.lock();
    pinned = cache.pin_shared(page, workspace_of(inside.thread()));
    if (!pinned && is_file_map_error(address, pinned.error())) {
      mapped_mutex.unlock();  // the access is repeated, and comes here again if need be
      return;
    }
    if (!pinned) end_process(pinned.error(), kFatalStatus);
  }
  const FileMapKind kind = file_map_kind(address);
  if (kind == FileMapKind::kPlain || kind == FileMapKind::kGone) {
    cache.unpin(page);
  } else if (is_mapped(page)) {
    // Another thread was faster; or the region around it was unmapped.
    map_page(page, *pinned);
    cache.unpin(page);
  } else {
    map_pinned(page, *pinned, site);
  }
  mapped_mutex.unlock();
}

bool keep_mapped(uint64_t address, uint64_t bytes) {
  if (bytes == 0) return true;
  if (protection_at(address) == Protection::kKernel &&
      same_protection_end(address, address + bytes) == address + bytes)
    return true;
  InRuntime inside;
  const KeptRange range{address, bytes};
  const uint64_t count = index(range.last_page()) - index(range.first_page()) + 1;
  freeze_budget();
  sys::LockGuard guard(mapped_mutex);
  KeptRange* unused = nullptr;
  const bool is_known = find_kept(range, unused);
  const bool has_room = !is_known && unused != nullptr && count_as_staying(kept_pages, count);
  thaw_budget();
  if (!has_room) return is_known;
  const auto pin = [&](base::PageId page) {
    // A page that is already kept is mapped, perhaps from a memory file that dates from before a fork.
    auto pinned = is_kept(page) ? runtime.cache->pin(page, workspace_of(inside.thread()))
                                : runtime.cache->pin_shared(page, workspace_of(inside.thread()));
    if (!pinned) end_process(pinned.error(), kFatalStatus);
    return *pinned;
  };
  for (base::PageId page = range.first_page(); index(page) <= index(range.last_page()); page = page + 1)
    pin(page);
  // A region is unmapped when a page of it is evicted, which must not happen to this range. Once its pages are in memory,
  // no region is mapped there again.
  runtime.cache->unmap_regions(address, bytes);
  for (base::PageId page = range.first_page(); index(page) <= index(range.last_page()); page = page + 1) {
    if (is_kept(page)) continue;
    map_page(page, pin(page));
    runtime.cache->unpin(page);
  }
  *unused = range;
  kept_count.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void end_kept(uint64_t address, uint64_t bytes) {
  if (kept_count.load(std::memory_order_relaxed) == 0) return;
  InRuntime inside;
  sys::LockGuard guard(mapped_mutex);
  for (KeptRange& range : kept_ranges) {
    if (range.bytes == 0 || range.begin - address >= bytes || range.bytes > address + bytes - range.begin)
      continue;
    const KeptRange ended = range;
    range.bytes = 0;
    kept_count.fetch_sub(1, std::memory_order_relaxed);
    for (base::PageId page = ended.first_page(); index(page) <= index(ended.last_page()); page = page + 1) {
      if (!is_kept(page) && !is_mapped(page)) make_page_inaccessible(page);
      runtime.cache->unpin(page);
      --kept_pages;
    }
  }
}

void hand_over(uint64_t address, uint64_t bytes, void (*f)(void* context), void* context) {
  end_kept(address, bytes);
  change_mappings(address, bytes, f, context);
}

void change_mappings(uint64_t address, uint64_t bytes, void (*f)(void* context), void* context) {
  InRuntime inside;
  cache::Cache& cache = *runtime.cache;
  sys::LockGuard guard(mapped_mutex);
  for (uint32_t i = 0; i < mapped_limit; ++i) {
    if (mapped_pages[i] == 0) continue;
    const uint64_t begin = cache.address_of(base::PageId{mapped_pages[i] - 1});
    if (begin < address + bytes && address < begin + cache.page_bytes()) unmap_element(i);
  }
  f(context);
  cache.cut(address, bytes);
  if (!keeps_pages()) return;
  for (const KeptRange& range : kept_ranges) {
    if (range.bytes == 0) continue;
    const base::PageId last = std::min(range.last_page(), cache.page_of(address + bytes - 1));
    for (base::PageId page = std::max(range.first_page(), cache.page_of(address)); page <= last;
         page = page + 1)
      set_page_access(page);
  }
}

bool keeps_any(uint64_t address, uint64_t bytes) {
  InRuntime inside;
  sys::LockGuard guard(mapped_mutex);
  for (const KeptRange& range : kept_ranges)
    if (range.bytes != 0 && runtime.cache->address_of(range.first_page()) < address + bytes &&
        address < runtime.cache->address_of(range.last_page() + 1))
      return true;
  return false;
}

void unmap_range(uint64_t address, uint64_t bytes) {
  hand_over(address, bytes, [](void*) {}, nullptr);
}

bool is_kept(base::PageId page) {
  if (!keeps_pages()) return false;
  for (const KeptRange& range : kept_ranges)
    if (range.bytes != 0 && index(range.first_page()) <= index(page) &&
        index(page) <= index(range.last_page()))
      return true;
  return false;
}

bool keeps_pages() { return kept_count.load(std::memory_order_relaxed) != 0; }

void freeze_mappings() {
  mapped_mutex.lock();
  for (uint32_t i = 0; i < mapped_limit; ++i) unmap_element(i);
  // What the child stored through them would be stored to its parent's memory.
  end_native(cache::RegionsEnd::kFork);
  runtime.cache->unmap_all_regions();
}

void thaw_mappings() { mapped_mutex.unlock(); }

void own_kept_pages() {
  for (const KeptRange& range : kept_ranges) {
    if (range.bytes == 0) continue;
    for (base::PageId page = range.first_page(); index(page) <= index(range.last_page()); page = page + 1) {
      void* const address = reinterpret_cast<void*>(runtime.cache->address_of(page));
      // It is copied from there.
      sys::set_access(address, runtime.cache->page_bytes(), sys::Access::kReadWrite);
      if (runtime.cache->own_kept(page, address) != 0)
        end_fork_child("there is no memory for its stacks; raise ulimit -n and ulimit -f");
      set_page_access(page);
    }
  }
}

}  // namespace spill
