#include "spill/fault.h"

#include <ucontext.h>

#include "base/log.h"
#include "spill/access.h"
#include "spill/address_space.h"
#include "spill/fork.h"
#include "spill/pins.h"
#include "spill/runtime.h"
#include "spill/signals.h"
#include "sys/kernel.h"
#include "sys/lock.h"
#include "sys/memory.h"

namespace spill {
namespace {

// Mapped pages in the order they were mapped: a ring of page numbers + 1, 0 for an element whose page
// was unmapped early.
constexpr uint32_t kMostMapped = 8192;  // the kernel allows about 32,000 separate mappings
constinit sys::Mutex mapped_mutex;
constinit uint64_t mapped_pages[kMostMapped] = {};
constinit uint32_t mapped_limit = 0;
constinit uint32_t mapped_next = 0;

// Ranges that stay mapped (keep_mapped), as the program gave them; `bytes` 0 for an unused element. Their
// pages are pinned once for each range that they are part of.
struct KeptRange {
  uint64_t begin;
  uint64_t bytes;
  base::PageId first_page() const { return runtime.cache->page_of(begin); }
  base::PageId last_page() const { return runtime.cache->page_of(begin + bytes - 1); }
};
constexpr uint32_t kMostKept = 512;
constinit KeptRange kept_ranges[kMostKept] = {};
constinit std::atomic<uint32_t> kept_count{0};
constinit uint64_t kept_pages = 0;

// REQUIRES: mapped_mutex.
bool is_kept(base::PageId page) {
  if (kept_count.load(std::memory_order_relaxed) == 0) return false;
  for (const KeptRange& range : kept_ranges)
    if (range.bytes != 0 && index(range.first_page()) <= index(page) &&
        index(page) <= index(range.last_page()))
      return true;
  return false;
}

void make_page_inaccessible(base::PageId page) {
  char* address = reinterpret_cast<char*>(runtime.cache->address_of(page));
  const long result = sys::make_inaccessible(address, runtime.cache->page_bytes());
  if (result != 0)
    end_process(base::Error::of(static_cast<int>(-result),
                                "cannot unmap a page: ", base::error_name(static_cast<int>(-result))),
                kFatalStatus);
}

// Maps a page that is pinned at `pinned`.
void map_page(base::PageId page, const char* pinned) {
  runtime.cache->stop_watching(page);
  const auto piece = runtime.cache->file_piece(page, pinned);
  auto mapped =
      sys::map_shared(piece.descriptor, piece.offset, runtime.cache->page_bytes(), sys::Access::kReadWrite,
                      reinterpret_cast<void*>(runtime.cache->address_of(page)));
  if (!mapped) end_process(mapped.error(), kFatalStatus);
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

// The thread's slot store hit the page that stands for "not registered": give it slots, and every
// register that was computed from the old pointer the new value. The store is then repeated.
void register_faulting_thread(ucontext_t& context) {
  this_thread();
  const auto slots = reinterpret_cast<uint64_t>(__spillway_slots);
  for (int i = REG_R8; i <= REG_RSP; ++i) {
    auto value = static_cast<uint64_t>(context.uc_mcontext.gregs[i]);
    if (value - kUnregisteredSlots < base::kOsPageBytes)
      context.uc_mcontext.gregs[i] = static_cast<greg_t>(value - kUnregisteredSlots + slots);
  }
}

bool in_pool(uint64_t address) {
  for (uint32_t i = 0; i < runtime.cache->partition_count(); ++i) {
    auto pool = runtime.cache->pool(i);
    if (address - reinterpret_cast<uint64_t>(pool.begin) < pool.bytes) return true;
  }
  return false;
}

}  // namespace

void install_fault_handler(uint32_t limit) {
  mapped_limit = limit < 2 ? 2 : limit < kMostMapped ? limit : kMostMapped;
  install_runtime_handler(SIGSEGV);
  install_runtime_handler(SIGBUS);
}

void map_at_own_address(uint64_t address, uint64_t site) {
  if (runtime.is_fork_child.load(std::memory_order_relaxed)) {
    own_for_child(address);
    return;
  }
  InRuntime inside;
  cache::Cache& cache = *runtime.cache;
  const base::PageId page = cache.page_of(address);
  auto pinned = cache.pin(page, lane_of(inside.thread()));
  if (!pinned) end_process(pinned.error(), kFatalStatus);
  sys::LockGuard guard(mapped_mutex);
  if (is_mapped(page)) {
    cache.unpin(page);
    return;
  }
  const uint32_t element = mapped_next;
  mapped_next = mapped_next + 1 == mapped_limit ? 0 : mapped_next + 1;
  unmap_element(element);
  map_page(page, *pinned);
  mapped_pages[element] = index(page) + 1;
  base::statistics.spill_faults.add();
  base::statistics.spill_fault_sites.add(site);  // mapped_mutex orders additions
}

bool keep_mapped(uint64_t address, uint64_t bytes) {
  if (bytes == 0) return true;
  if (runtime.is_fork_child.load(std::memory_order_relaxed)) {
    for (uint64_t at = base::round_down(address, base::kOsPageBytes); at < address + bytes;
         at += base::kOsPageBytes)
      own_for_child(at);
    return true;
  }
  InRuntime inside;
  const KeptRange range{address, bytes};
  const uint64_t count = index(range.last_page()) - index(range.first_page()) + 1;
  sys::LockGuard guard(mapped_mutex);
  KeptRange* unused = nullptr;
  for (KeptRange& old : kept_ranges) {
    if (old.bytes == 0) {
      unused = &old;
    } else if (address - old.begin < old.bytes && bytes <= old.begin + old.bytes - address) {
      return true;
    }
  }
  if (unused == nullptr || kept_pages + count > runtime.cache->frame_count() / 2) return false;
  for (base::PageId page = range.first_page(); index(page) <= index(range.last_page()); page = page + 1) {
    auto pinned = runtime.cache->pin(page, lane_of(inside.thread()));
    if (!pinned) end_process(pinned.error(), kFatalStatus);
    map_page(page, *pinned);
  }
  *unused = range;
  kept_pages += count;
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

void unmap_range(uint64_t address, uint64_t bytes) {
  end_kept(address, bytes);
  InRuntime inside;
  sys::LockGuard guard(mapped_mutex);
  for (uint32_t i = 0; i < mapped_limit; ++i) {
    if (mapped_pages[i] == 0) continue;
    if (runtime.cache->address_of(base::PageId{mapped_pages[i] - 1}) - address < bytes) unmap_element(i);
  }
}

void forget_mappings() {
  for (uint32_t i = 0; i < mapped_limit; ++i) {
    if (mapped_pages[i] == 0) continue;
    const uint64_t address = runtime.cache->address_of(base::PageId{mapped_pages[i] - 1});
    sys::make_inaccessible(reinterpret_cast<void*>(address), runtime.cache->page_bytes());
    mapped_pages[i] = 0;
  }
  // The child may be running on one of these.
  for (const KeptRange& range : kept_ranges) {
    if (range.bytes == 0) continue;
    for (base::PageId page = range.first_page(); index(page) <= index(range.last_page()); page = page + 1)
      keep_for_child(page);
  }
}

void handle_fault(int number, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<uint64_t>(info->si_addr);
  const bool by_access = info->si_code > 0;  // not sent by kill() or the like
  if (number == SIGSEGV && by_access) {
    if (address - kUnregisteredSlots < base::kOsPageBytes) {
      register_faulting_thread(*static_cast<ucontext_t*>(context));
      return;
    }
    if (in_range(address) && is_allocated(address)) {
      const auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
      map_at_own_address(address, static_cast<uint64_t>(registers[REG_RIP]));
      return;
    }
    if (in_pool(address)) {
      // The child's, or that of a copy that was made behind our back.
      const bool served = runtime.is_fork_child.load(std::memory_order_relaxed) && copy_for_child(address);
      if (!served) end_fork_child("needs a page that its parent has changed since");
      return;
    }
  }
  pass_to_program(number, info, context);
}

void end_fork_child(const char* what) {
  base::log("a child of fork that goes on without exec ", what, "; use posix_spawn, or exec at once");
  sys::syscall(SYS_exit_group, kFatalStatus);
  __builtin_unreachable();
}

}  // namespace spill
