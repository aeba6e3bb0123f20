#include "spill/heap.h"

#include <errno.h>
#include <malloc.h>

#include <algorithm>

#include "base/ids.h"
#include "base/statistics.h"
#include "spill/access.h"
#include "spill/address_space.h"
#include "spill/discard.h"
#include "spill/jemalloc.h"
#include "spill/mapped_pages.h"
#include "spill/next.h"
#include "spill/runtime.h"
#include "sys/c_library.h"

// Slabs of one page for sizes that do not divide it, so that no object straddles; as large as jemalloc
// allows (512 objects) for those that do, which saves metadata. Freed pages are purged after half a second.
const char* spillje_malloc_conf =
    "narenas:1,dirty_decay_ms:500,muzzy_decay_ms:0,retain:true,"
    "slab_sizes:1-1024:1|16-16:2|32-32:4|64-64:8|128-128:8|256-256:8|512-512:8|1024-1024:8";

namespace spill {
namespace {

constexpr size_t kForeignSpillBytes = 64 * 1024;
// jemalloc's smallest blocks are 8 bytes and begin at any 8, where the C library's begin at 16.
constexpr size_t kMinBytes = 16;
constexpr size_t kWholePagesBytes = 16 * 1024;  // blocks that jemalloc gives pages of their own
constexpr size_t kDiscardAtOnceBytes = size_t{1} << 20;
constexpr size_t kZeroByDiscardBytes = 64 * 1024;
constexpr int64_t kMaxUncountedBytes = 64 * 1024;
constexpr int64_t kMaxUncountedPlainBytes = 4 * 1024;
constexpr unsigned kArenaCount = 4;

constinit unsigned arenas[kArenaCount] = {};
constinit std::atomic<uint32_t> next_arena{0};
// Bytes of plain blocks that compiled code has allocated, minus those it has freed, and the same for all other code, without what threads
// have not added yet. The program frees what the C library allocated for it (asprintf), and the other way round, so each count may be too
// small or too large; their sum is right.
constinit std::atomic<int64_t> plain_bytes{0}, others_plain_bytes{0};
constinit std::atomic<bool> serves_others{false};

// Of a block of the C library's. Other heaps in the process may have a function of this name, but not of this version.
size_t plain_usable_bytes(void* block) { return LIBC_VERSION(malloc_usable_size, "GLIBC_2.2.5")(block); }

void* allocate_extent(extent_hooks_t*, void* wanted, size_t bytes, size_t alignment, bool* zeroed,
                      bool* committed, unsigned) {
  *zeroed = true;
  *committed = true;
  if (wanted != nullptr) {
    const auto address = reinterpret_cast<uint64_t>(wanted);
    return allocate_addresses_at(address, bytes) ? wanted : nullptr;
  }
  return reinterpret_cast<void*>(allocate_addresses(bytes, alignment));
}
// jemalloc keeps extents and uses them again.
bool keep_extent(extent_hooks_t*, void*, size_t, bool, unsigned) { return true; }
void destroy_extent(extent_hooks_t*, void*, size_t, bool, unsigned) {}
bool succeed(extent_hooks_t*, void*, size_t, size_t, size_t, unsigned) { return false; }
bool refuse(extent_hooks_t*, void*, size_t, size_t, size_t, unsigned) { return true; }
bool purge_extent(extent_hooks_t*, void* extent, size_t, size_t offset, size_t length, unsigned) {
  const uint64_t begin = reinterpret_cast<uint64_t>(extent) + offset;
  const size_t page = runtime.cache->page_bytes();
  // Less than a page cannot be dropped: jemalloc keeps it as used memory.
  if (base::round_up(begin, page) >= base::round_down(begin + length, page)) return true;
  discard_memory(begin, length);
  return false;
}
bool split_extent(extent_hooks_t*, void*, size_t, size_t, size_t, bool, unsigned) { return false; }
bool merge_extents(extent_hooks_t*, void*, size_t, void*, size_t, bool, unsigned) { return false; }

constinit extent_hooks_t hooks = {allocate_extent, keep_extent,  destroy_extent, succeed,      refuse,
                                  refuse,          purge_extent, split_extent,   merge_extents};

// Points the calling thread's jemalloc cache at one of our arenas.
void choose_arena(Thread& thread) {
  unsigned arena = arenas[next_arena.fetch_add(1, std::memory_order_relaxed) % kArenaCount];
  spillje_mallctl("thread.arena", nullptr, nullptr, &arena, sizeof arena);
  thread.has_heap_arena.store(true, std::memory_order_relaxed);
}

void count_bytes(Thread& thread) {
  base::statistics.spill_allocated_bytes.add(
      static_cast<uint64_t>(thread.uncounted_allocated_bytes.exchange(0, std::memory_order_relaxed)));
  base::statistics.spill_live_bytes.add(
      static_cast<uint64_t>(thread.uncounted_live_bytes.exchange(0, std::memory_order_relaxed)));
}

// Counts in the thread's own counters first: adding to shared ones would be most of the cost of a small block.
void note_bytes(Thread& thread, int64_t allocated, int64_t live) {
  allocated += thread.uncounted_allocated_bytes.load(std::memory_order_relaxed);
  live += thread.uncounted_live_bytes.load(std::memory_order_relaxed);
  thread.uncounted_allocated_bytes.store(allocated, std::memory_order_relaxed);
  thread.uncounted_live_bytes.store(live, std::memory_order_relaxed);
  if (allocated > kMaxUncountedBytes || live > kMaxUncountedBytes || live < -kMaxUncountedBytes) [[unlikely]]
    count_bytes(thread);
}

// Counts plain blocks in the same way, for the same reason; has_room_in_plain adds what its own thread has not counted yet.
void note_plain_bytes(int64_t bytes, Caller caller) {
  const bool is_own = caller == Caller::kInstrumented;
  if (Thread* thread = this_thread_if_registered(); thread != nullptr) {
    auto& uncounted = is_own ? thread->uncounted_plain_bytes : thread->uncounted_others_plain_bytes;
    bytes += uncounted.load(std::memory_order_relaxed);
    const bool is_much = bytes > kMaxUncountedPlainBytes || bytes < -kMaxUncountedPlainBytes;
    uncounted.store(is_much ? 0 : bytes, std::memory_order_relaxed);
    if (!is_much) [[likely]]
      return;
  }
  (is_own ? plain_bytes : others_plain_bytes).fetch_add(bytes, std::memory_order_relaxed);
}

// May compiled code take `bytes` more of plain memory? Whatever other code seems to have beyond the limit is taken for blocks that it
// allocated and the program freed; a negative count, for blocks of the program that other code freed.
bool has_room_in_plain(size_t bytes) {
  const Thread* thread = this_thread_if_registered();
  const int64_t uncounted =
      thread != nullptr ? thread->uncounted_plain_bytes.load(std::memory_order_relaxed) : 0;
  const auto limit = static_cast<int64_t>(runtime.plain_limit_bytes);
  const int64_t others = others_plain_bytes.load(std::memory_order_relaxed);
  const int64_t given = others < 0 ? others : std::max(others - limit, int64_t{0});
  const int64_t taken = plain_bytes.load(std::memory_order_relaxed) + uncounted + given;
  return static_cast<int64_t>(bytes) <= limit - taken;
}

// Not before the start: finding the function that tells a block's size may need the loader, which allocates too.
bool counts_plain(Caller caller) {
  return caller == Caller::kInstrumented || runtime.started.load(std::memory_order_acquire);
}

void* allocate_plain(size_t bytes, size_t alignment, bool zeroed, Caller caller) {
  void* block;
  if (alignment > 16) {
    block = sys::c_memalign(alignment, bytes);
    if (block != nullptr && zeroed) spillway_plain_memset(block, 0, bytes);
  } else {
    block = zeroed ? sys::c_calloc(1, bytes) : sys::c_malloc(bytes);
  }
  if (block != nullptr && counts_plain(caller))
    note_plain_bytes(static_cast<int64_t>(plain_usable_bytes(block)), caller);
  return block;
}

// Plain memory for a thread that has left the heap.
void* allocate_spilled(size_t bytes, size_t alignment) {
  Thread& thread = this_thread();
  if (!thread.has_heap_arena.load(std::memory_order_relaxed)) [[unlikely]] {
    if (thread.has_left_heap) return allocate_plain(bytes, alignment, false, Caller::kInstrumented);
    choose_arena(thread);
  }
  void* block;
  size_t usable;
  bytes = std::max(bytes, kMinBytes);
  // jemalloc would begin the block at a random place in its first page, different in each process, and in some of them hot data would
  // cross a page's edge.
  if (bytes >= kWholePagesBytes && alignment < base::kOsPageBytes) alignment = base::kOsPageBytes;
  if (alignment > 16) {
    block = spillje_mallocx(bytes, MALLOCX_ALIGN(alignment));
    usable = block != nullptr ? spillje_sallocx(block, 0) : 0;
  } else {
    block = spillje_malloc(bytes);
    usable = spillje_nallocx(bytes, 0);
  }
  if (block == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  note_bytes(thread, static_cast<int64_t>(usable), static_cast<int64_t>(usable));
  return block;
}

void zero_block(void* block, size_t bytes) {
  const auto address = reinterpret_cast<uint64_t>(block);
  if (bytes >= kZeroByDiscardBytes && in_range(address)) {
    discard_memory(address, bytes);
    return;
  }
  for_each_piece(block, bytes, kHoldA, [](char* raw, size_t length) {
    spillway_plain_memset(raw, 0, length);
    return true;
  });
}

// Does a block of `bytes`, for which the plain heap would grow by `more`, go to plain memory?
bool goes_plain(size_t bytes, size_t more, Caller caller) {
  if (!runtime.started.load(std::memory_order_acquire)) return true;
  if (caller == Caller::kLibc) return true;
  if (caller == Caller::kForeign) return bytes < kForeignSpillBytes;
  if (runtime.options.spill_all != 0) return bytes < runtime.options.min_alloc;
  return bytes < runtime.options.min_alloc || has_room_in_plain(more);
}

// Do the pages of a large block stay in memory when it is freed? The block is likely to be allocated again, and then takes no misses. Only
// as long as there is more than enough memory for all pages: once some have had to leave, pages of freed blocks would be written too.
bool keeps_freed_pages() {
  return base::statistics.cache_evictions.get() == 0 &&
         runtime.cache->used_count() <= runtime.cache->frame_count() / 2;
}

}  // namespace

void heap_leave_thread() {
  Thread& thread = this_thread();
  thread.has_heap_arena.store(false, std::memory_order_relaxed);
  thread.has_left_heap = true;
}

void heap_count_bytes() {
  for (Thread* thread = first_thread(); thread != nullptr; thread = thread->next) count_bytes(*thread);
}

bool heap_serves_others() { return serves_others.load(std::memory_order_relaxed); }

base::Expected<void> open_heap() {
  plain_usable_bytes(nullptr);  // looks the function up while nobody can hold the loader's lock
  struct ArenaConfig {
    extent_hooks_t* hooks;
    bool metadata_use_hooks;
  };
  for (unsigned& arena : arenas) {
    size_t length = sizeof arena;
    ArenaConfig config = {&hooks, false};
    int result = spillje_mallctl("experimental.arenas_create_ext", &arena, &length, &config, sizeof config);
    if (result != 0) return base::failure(result, "cannot create the spill heap: ", base::error_name(result));
  }
  return {};
}

void* heap_allocate(size_t bytes, size_t alignment, bool zeroed, Caller caller) {
  if (bytes > PTRDIFF_MAX) {
    errno = ENOMEM;
    return nullptr;
  }
  if (caller != Caller::kInstrumented && !heap_serves_others())
    serves_others.store(true, std::memory_order_relaxed);
  if (goes_plain(bytes, bytes, caller)) return allocate_plain(bytes, alignment, zeroed, caller);
  void* block = allocate_spilled(bytes, alignment);
  if (block != nullptr && zeroed) zero_block(block, bytes);
  return block;
}

void* heap_allocate_resident(size_t bytes, size_t alignment, bool zeroed) {
  if (bytes > PTRDIFF_MAX) {
    errno = ENOMEM;
    return nullptr;
  }
  return allocate_plain(bytes, alignment, zeroed, Caller::kInstrumented);
}

void* heap_allocate_spilled(size_t bytes, size_t alignment) {
  if (bytes > PTRDIFF_MAX) {
    errno = ENOMEM;
    return nullptr;
  }
  return allocate_spilled(bytes, alignment);
}

void heap_free(void* block, Caller caller) {
  if (block == nullptr) return;
  if (!in_range(block)) {
    if (counts_plain(caller)) note_plain_bytes(-static_cast<int64_t>(plain_usable_bytes(block)), caller);
    sys::c_free(block);
    return;
  }
  const int saved_errno = errno;
  const size_t usable = spillje_sallocx(block, 0);
  note_bytes(this_thread(), 0, -static_cast<int64_t>(usable));
  end_kept(reinterpret_cast<uint64_t>(block), usable);
  if (usable >= kDiscardAtOnceBytes && !keeps_freed_pages())
    discard_memory(reinterpret_cast<uint64_t>(block), usable);
  // Given the size, jemalloc does not look the block up again.
  spillje_sdallocx(block, usable, 0);
  errno = saved_errno;
}

size_t heap_usable_bytes(void* block) {
  if (block == nullptr) return 0;
  return in_range(block) ? spillje_sallocx(block, 0) : plain_usable_bytes(block);
}

void* heap_resize_resident(void* block, size_t bytes) {
  void* moved = heap_allocate_resident(bytes > 0 ? bytes : 1, 0, false);
  if (moved == nullptr || block == nullptr) return moved;
  copy(moved, block, std::min(bytes, heap_usable_bytes(block)));
  heap_free(block, Caller::kInstrumented);
  return moved;
}

void* heap_resize(void* block, size_t bytes, Caller caller) {
  if (block == nullptr) return heap_allocate(bytes, 0, false, caller);
  if (bytes == 0) {
    heap_free(block, caller);
    return nullptr;
  }
  if (bytes > PTRDIFF_MAX) {
    errno = ENOMEM;
    return nullptr;
  }
  const size_t old_usable = heap_usable_bytes(block);
  if (!in_range(block)) {
    if (bytes <= old_usable || goes_plain(bytes, bytes - old_usable, caller)) {
      void* moved = sys::c_realloc(block, bytes);
      if (moved != nullptr && counts_plain(caller))
        note_plain_bytes(static_cast<int64_t>(plain_usable_bytes(moved)) - static_cast<int64_t>(old_usable),
                         caller);
      return moved;
    }
  } else if (size_t usable = spillje_xallocx(block, bytes, 0, 0); usable >= bytes) {
    const int64_t grown = static_cast<int64_t>(usable) - static_cast<int64_t>(old_usable);
    note_bytes(this_thread(), std::max(grown, int64_t{0}), grown);
    // In place, and not much larger than asked for.
    if (usable / 2 <= bytes || usable <= base::kOsPageBytes) return block;
  }
  void* moved = in_range(block) ? allocate_spilled(bytes, 0) : heap_allocate(bytes, 0, false, caller);
  if (moved == nullptr) return nullptr;
  copy(moved, block, bytes < old_usable ? bytes : old_usable);
  heap_free(block, caller);
  return moved;
}

}  // namespace spill
