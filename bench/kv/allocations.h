// Counts what a program asks of the C library's heap, by taking the place of malloc and its kin. For one .cc of a program, which is
// linked with glibc; operator new and libraries come here as well.
#pragma once
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace load {

// Threads count in lines of their own, as a rule: programs that allocate a lot are not to be slower for it.
struct alignas(64) AllocationCount {
  std::atomic<uint64_t> value{0};
};
inline constexpr size_t kAllocationCounts = 64;
inline AllocationCount allocation_counts[kAllocationCounts];
inline std::atomic<size_t> next_allocation_count{0};
inline thread_local AllocationCount* own_allocation_count = nullptr;

inline void count_allocation() noexcept {
  if (own_allocation_count == nullptr)
    own_allocation_count =
        &allocation_counts[next_allocation_count.fetch_add(1, std::memory_order_relaxed) % kAllocationCounts];
  own_allocation_count->value.fetch_add(1, std::memory_order_relaxed);
}

// Since the program began.
inline uint64_t allocation_count() {
  uint64_t sum = 0;
  for (const AllocationCount& count : allocation_counts) sum += count.value.load(std::memory_order_relaxed);
  return sum;
}

}  // namespace load

extern "C" {

void* __libc_malloc(size_t) noexcept;
void* __libc_calloc(size_t, size_t) noexcept;
void* __libc_realloc(void*, size_t) noexcept;
void* __libc_memalign(size_t, size_t) noexcept;

void* malloc(size_t bytes) noexcept {
  load::count_allocation();
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) noexcept {
  load::count_allocation();
  return __libc_calloc(count, bytes);
}
void* realloc(void* old, size_t bytes) noexcept {
  load::count_allocation();
  return __libc_realloc(old, bytes);
}
void* memalign(size_t alignment, size_t bytes) noexcept {
  load::count_allocation();
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) noexcept { return memalign(alignment, bytes); }
int posix_memalign(void** to, size_t alignment, size_t bytes) noexcept {
  void* const memory = memalign(alignment, bytes);
  if (memory == nullptr) return ENOMEM;
  *to = memory;
  return 0;
}
}
