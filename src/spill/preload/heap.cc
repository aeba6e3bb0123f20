// The malloc family in preload mode: large blocks are memory of the spilled range. Small ones come from the program's own
// heap: the C library's, or one that it is linked with and may also call by other names.
//
// A large block begins at an OS page; a table says how many pages it has.
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include <algorithm>
#include <bit>

#include "spill/preload/large.h"
#include "spill/preload/next.h"
#include "spill/preload/start.h"
#include "spill/runtime.h"
#include "sys/memory.h"
#include "sys/signals.h"

extern "C" size_t malloc_usable_size(void* block) noexcept;
extern "C" void* reallocarray(void* block, size_t count, size_t bytes) noexcept;
extern "C" void* memalign(size_t alignment, size_t bytes) noexcept;
extern "C" void* valloc(size_t bytes) noexcept;
extern "C" void* pvalloc(size_t bytes) noexcept;

namespace spill::preload {
namespace {

using base::kOsPageBytes;

DECLARE_NEXT(malloc)
DECLARE_NEXT(calloc)
DECLARE_NEXT(realloc)
DECLARE_NEXT(reallocarray)
DECLARE_NEXT(free)
DECLARE_NEXT(memalign)
DECLARE_NEXT(aligned_alloc)
DECLARE_NEXT(posix_memalign)
DECLARE_NEXT(valloc)
DECLARE_NEXT(pvalloc)
DECLARE_NEXT(malloc_usable_size)

// For each OS page of the range: the OS pages of the block that begins there, 0 if none does. Mapped on first use.
constexpr uint64_t kLengthBytes = (kRangeEnd - kRangeBegin) / kOsPageBytes * sizeof(uint32_t);
constinit std::atomic<uint32_t*> lengths{nullptr};

uint32_t* length_of(uint64_t address) {
  uint32_t* table = lengths.load(std::memory_order_acquire);
  if (table == nullptr) {
    auto mapped = sys::map_anonymous(kLengthBytes, "the lengths of large blocks");
    if (!mapped) end_process(mapped.error(), kFatalStatus);
    auto* made = reinterpret_cast<uint32_t*>(*mapped);
    if (lengths.compare_exchange_strong(table, made))
      table = made;
    else
      sys::unmap(made, kLengthBytes);
  }
  return table + (address - kRangeBegin) / kOsPageBytes;
}

void* no_memory() {
  errno = ENOMEM;
  return nullptr;
}

void* allocate_large(size_t bytes, size_t alignment) {
  if (bytes > PTRDIFF_MAX) return no_memory();
  const sys::BlockedSignals blocked(sys::kAllSignals);
  const uint64_t length = whole_pages(bytes);
  const uint64_t address = map_large(length, alignment);
  if (address == 0) return no_memory();
  *length_of(address) = static_cast<uint32_t>(length / kOsPageBytes);
  return reinterpret_cast<void*>(address);
}

uint64_t block_bytes(const void* block) {
  const auto address = reinterpret_cast<uint64_t>(block);
  const uint64_t length = address % kOsPageBytes == 0 ? uint64_t{*length_of(address)} * kOsPageBytes : 0;
  if (length == 0)
    end_process(base::Error::of(EINVAL, "free or realloc of a pointer that malloc did not give"),
                kFatalStatus);
  return length;
}

// A child of fork has no large blocks; their addresses stay taken.
bool is_childs(const void* block) {
  return in_range(block) && runtime.is_fork_child.load(std::memory_order_relaxed);
}

void free_large(void* block) {
  if (is_childs(block)) return;
  const sys::BlockedSignals blocked(sys::kAllSignals);
  const auto address = reinterpret_cast<uint64_t>(block);
  const uint64_t length = block_bytes(block);
  *length_of(address) = 0;
  unmap_large(address, length);
}

void copy_bytes(void* to, const void* from, size_t n) { __builtin_memcpy(to, from, n); }

// Between plain memory and large blocks.
void* move_block(void* block, size_t old_bytes, size_t bytes) {
  void* moved = spills(bytes) ? allocate_large(bytes, 0) : NEXT(malloc)(bytes);
  if (moved == nullptr) return nullptr;
  copy_bytes(moved, block, std::min(old_bytes, bytes));
  if (in_range(block))
    free_large(block);
  else
    NEXT(free)(block);
  return moved;
}

// For a block that is large, or becomes large.
void* resize(void* block, size_t bytes) {
  if (bytes > PTRDIFF_MAX) return no_memory();
  if (block == nullptr) return allocate_large(bytes, 0);
  if (!in_range(block)) return move_block(block, NEXT(malloc_usable_size)(block), bytes);
  if (bytes == 0) {
    free_large(block);
    return nullptr;
  }
  const uint64_t old_length = block_bytes(block);
  if (bytes < kLargeBytes || is_childs(block)) return move_block(block, old_length, bytes);
  const sys::BlockedSignals blocked(sys::kAllSignals);
  const uint64_t length = whole_pages(bytes);
  const auto address = reinterpret_cast<uint64_t>(block);
  // Before the addresses can become another block's.
  *length_of(address) = 0;
  const uint64_t moved = resize_large(address, old_length, length, true);
  if (moved == 0) {
    *length_of(address) = static_cast<uint32_t>(old_length / kOsPageBytes);
    return no_memory();
  }
  *length_of(moved) = static_cast<uint32_t>(length / kOsPageBytes);
  return reinterpret_cast<void*>(moved);
}

void* aligned(size_t alignment, size_t bytes) {
  if (alignment > (SIZE_MAX >> 1) + 1) {
    errno = EINVAL;
    return nullptr;
  }
  return allocate_large(bytes, std::bit_ceil(std::max(alignment, size_t{1})));
}

// Is an allocation of `bytes` left to the next definition of the function? Call once for each allocation: large ones are counted.
bool is_left(size_t bytes) { return is_passive() || !spills(bytes); }

}  // namespace
}  // namespace spill::preload

using namespace spill;           // NOLINT: what follows is the C library's names
using namespace spill::preload;  // NOLINT

SPILL_EXPORT void* malloc(size_t bytes) {
  if (is_left(bytes)) PASS(malloc, bytes);
  return allocate_large(bytes, 0);
}

SPILL_EXPORT void* calloc(size_t count, size_t bytes) {
  size_t total;
  if (__builtin_mul_overflow(count, bytes, &total) || is_left(total)) PASS(calloc, count, bytes);
  return allocate_large(total, 0);
}

SPILL_EXPORT void* realloc(void* block, size_t bytes) {
  if (is_passive() || (!in_range(block) && !spills(bytes))) PASS(realloc, block, bytes);
  return resize(block, bytes);
}

SPILL_EXPORT void* reallocarray(void* block, size_t count, size_t bytes) noexcept {
  size_t total;
  if (__builtin_mul_overflow(count, bytes, &total)) return no_memory();
  if (is_passive() || (!in_range(block) && !spills(total))) PASS(reallocarray, block, count, bytes);
  return resize(block, total);
}

SPILL_EXPORT void free(void* block) {
  if (is_passive() || !in_range(block)) PASS(free, block);
  free_large(block);
}

SPILL_EXPORT void* memalign(size_t alignment, size_t bytes) noexcept {
  if (is_left(bytes)) PASS(memalign, alignment, bytes);
  return aligned(alignment, bytes);
}

SPILL_EXPORT void* aligned_alloc(size_t alignment, size_t bytes) {
  if (is_left(bytes)) PASS(aligned_alloc, alignment, bytes);
  return aligned(alignment, bytes);
}

SPILL_EXPORT int posix_memalign(void** result, size_t alignment, size_t bytes) {
  if (is_left(bytes)) PASS(posix_memalign, result, alignment, bytes);
  if (!std::has_single_bit(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  const int saved_errno = errno;
  void* block = aligned(alignment, bytes);
  errno = saved_errno;
  if (block == nullptr) return ENOMEM;
  *result = block;
  return 0;
}

SPILL_EXPORT void* valloc(size_t bytes) noexcept {
  if (is_left(bytes)) PASS(valloc, bytes);
  return aligned(kOsPageBytes, bytes);
}

SPILL_EXPORT void* pvalloc(size_t bytes) noexcept {
  const size_t whole = bytes > PTRDIFF_MAX ? bytes : whole_pages(bytes);
  if (is_left(whole)) PASS(pvalloc, bytes);
  return aligned(kOsPageBytes, whole);
}

SPILL_EXPORT size_t malloc_usable_size(void* block) noexcept {
  if (is_passive() || !in_range(block)) PASS(malloc_usable_size, block);
  return block_bytes(block);
}
