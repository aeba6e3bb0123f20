// Devices and Queues live in pages of their own, since no code here may use the C library's heap.
#pragma once
#include <new>
#include <utility>

#include "base/error.h"
#include "sys/memory.h"

namespace storage {

// A new T with `extra_bytes` of zeroed memory right after it (sizeof(T) is a multiple of its alignment).
// Errors: ENOMEM.
template <class T, class... Arguments>
base::Expected<T*> make_object(uint64_t extra_bytes, const char* purpose, Arguments&&... arguments) {
  auto memory = sys::map_anonymous(sizeof(T) + extra_bytes, purpose);
  if (!memory) return std::unexpected(memory.error());
  return new (*memory) T(std::forward<Arguments>(arguments)...);
}

template <class T>
void* extra_of(T* object) {
  return object + 1;
}

template <class T>
void free_object(T* object, uint64_t extra_bytes) {
  sys::unmap(object, sizeof(T) + extra_bytes);
}

}  // namespace storage
