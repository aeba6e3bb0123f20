// What all C APIs share: objects in the C library's heap, structs of callers whose header may be another version's, the lines of errors.
//
// Each C API is a library of its own, with these in it.
#pragma once
#include <stdlib.h>
#include <string.h>

#include <new>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace capi {

// An object in the C library's heap; null: no memory.
template <class T, class... Arguments>
T* make(Arguments&&... arguments) {
  void* const memory = aligned_alloc(alignof(T), (sizeof(T) + alignof(T) - 1) / alignof(T) * alignof(T));
  return memory != nullptr ? new (memory) T(std::forward<Arguments>(arguments)...) : nullptr;
}
template <class T>
void destroy(T* object) {
  object->~T();
  free(object);
}

// A struct of the caller's, whose header may have been an older or a newer one: what it lacks is 0. Null: all 0. Errors: EINVAL for one
// that sets what this library does not know.
template <class T>
base::Expected<T> read_struct(const T* given, const char* name);
base::Expected<void> read_struct_bytes(const void* given, void* own, size_t own_bytes, const char* name);

template <class T>
base::Expected<T> read_struct(const T* given, const char* name) {
  T own = {};
  if (given != nullptr) {
    if (auto read = read_struct_bytes(given, &own, sizeof own, name); !read)
      return std::unexpected(read.error());
    // So that it can mean something one day.
    if constexpr (requires { own.reserved; })
      if (own.reserved != 0)
        return base::failure(EINVAL, name, ": reserved is ", own.reserved, "; set it to 0");
  }
  return own;
}

// "1.500"; what is not negative.
void write_thousandths(double number, base::TextRef& text);

// "0.1.0"
const char* version();
// Where the line of the calling thread's last call is that failed, of those that have no other place for it.
char* thread_error();
// Keeps the error's line there, or if it is not null at `line`, which has as much room as an Error.
void keep_line(const base::Error& error, char* line);

}  // namespace capi
