// C++ on top of spill.h: an allocator of spilled memory, for containers that should spill whatever their size. Needs C++17.
//
//   std::vector<int, spillway::allocator<int>> numbers;
//
// In a program without Spillway's runtime the memory is the C library's. Thread contract: any thread.
#ifndef SPILLWAY_SPILL_HPP
#define SPILLWAY_SPILL_HPP
#include <cstddef>
#include <new>

#include "spillway/spill.h"

namespace spillway {

// Meets the standard's requirements of allocators; all of them are equal. Costs what spill_alloc() and spill_free() cost.
template <class T>
struct allocator {
  using value_type = T;

  allocator() = default;
  template <class U>
  constexpr allocator(const allocator<U>&) noexcept {}

  // Room for `count` objects, uninitialised; it is the caller's until deallocate(). Throws std::bad_alloc, or
  // std::bad_array_new_length if the size in bytes does not fit into a ptrdiff_t.
  [[nodiscard]] T* allocate(std::size_t count) {
    if (count > static_cast<std::size_t>(-1) / 2 / sizeof(T)) throw std::bad_array_new_length();
    void* const block = spill_alloc(count * sizeof(T), alignof(T));
    if (block == nullptr) throw std::bad_alloc();
    return static_cast<T*>(block);
  }
  // REQUIRES: `block` is from allocate() with the same count.
  void deallocate(T* block, std::size_t) noexcept { spill_free(block); }

  template <class U>
  friend constexpr bool operator==(const allocator&, const allocator<U>&) noexcept {
    return true;
  }
  // Before C++20 the compiler does not derive != from ==, and containers that are copied use it.
  template <class U>
  friend constexpr bool operator!=(const allocator&, const allocator<U>&) noexcept {
    return false;
  }
};

}  // namespace spillway

#endif
