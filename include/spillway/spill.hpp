// C++ over spill.h: an allocator of spilled memory, for containers that are to spill whatever their size. Needs C++17.
//
//   std::vector<int, spillway::allocator<int>> numbers;
//
// Compiled by another compiler than spillcc it is the C library's memory. Thread contract: any thread.
#ifndef SPILLWAY_SPILL_HPP
#define SPILLWAY_SPILL_HPP
#include <cstddef>
#include <new>

#include "spillway/spill.h"

namespace spillway {

// Meets the standard's requirements of allocators; all are equal.
template <class T>
struct allocator {
  using value_type = T;

  allocator() = default;
  template <class U>
  constexpr allocator(const allocator<U>&) noexcept {}

  // Room for `count` objects, uninitialised; the caller's until deallocate. Errors: std::bad_alloc; std::bad_array_new_length
  // when their size is no number.
  [[nodiscard]] T* allocate(std::size_t count) {
    if (count > static_cast<std::size_t>(-1) / 2 / sizeof(T)) throw std::bad_array_new_length();
    void* const block = spill_alloc(count * sizeof(T), alignof(T));
    if (block == nullptr) throw std::bad_alloc();
    return static_cast<T*>(block);
  }
  // REQUIRES: of allocate of an equal allocator, with the same count.
  void deallocate(T* block, std::size_t) noexcept { spill_free(block); }

  template <class U>
  friend constexpr bool operator==(const allocator&, const allocator<U>&) noexcept {
    return true;
  }
  // Before C++20 nobody makes it of ==, and containers that are copied ask for it.
  template <class U>
  friend constexpr bool operator!=(const allocator&, const allocator<U>&) noexcept {
    return false;
  }
};

}  // namespace spillway

#endif
