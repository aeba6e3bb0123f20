// What all C APIs share: objects in the C library's heap, structs of callers with another version's header, the kinds of errors and their lines.
//
// Each C API is a library of its own, which these are part of.
#pragma once
#include <stdlib.h>
#include <string.h>

#include <new>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace capi {

// Makes an object in the C library's heap; null: there is no memory.
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

// Reads a struct of a caller whose header may be older or newer than this library: members that it lacks are 0. Null: all are 0. Errors: EINVAL: it sets
// members that this library does not know.
template <class T>
base::Expected<T> read_struct(const T* given, const char* name);
base::Expected<void> read_struct_bytes(const void* given, void* own, size_t own_bytes, const char* name);

template <class T>
base::Expected<T> read_struct(const T* given, const char* name) {
  T own = {};
  if (given != nullptr) {
    if (auto read = read_struct_bytes(given, &own, sizeof own, name); !read)
      return std::unexpected(read.error());
    // Refused, so that it can mean something one day.
    if constexpr (requires { own.reserved; })
      if (own.reserved != 0)
        return base::failure(EINVAL, name, ": reserved is ", own.reserved, "; set it to 0");
  }
  return own;
}

// "1.500". REQUIRES: number >= 0.
void write_thousandths(double number, base::TextRef& text);

// Copies a text, and the 0 behind it, to the caller's `bytes` at `to`, as far as there is room; `needed_bytes` (may be null) becomes what it takes.
// Returns whether all of it was copied. REQUIRES: `to` is not null, unless bytes is 0.
bool give_text(std::string_view text, char* to, size_t bytes, size_t* needed_bytes);

// The kinds of errors that all C APIs distinguish. Each API has a status of its own for each kind, and for some errors besides.
enum class ErrorKind { kInvalid, kNoMemory, kFull, kDamaged, kInUse, kNotFound, kDenied, kIo };
ErrorKind error_kind(const base::Error& error);

// "0.1.0"
const char* version();
// The line of the calling thread's last call that failed and had no other place for its line.
char* thread_error();
// Keeps the error's line at `line`, which has as much room as an Error's message, or if that is null at thread_error().
void keep_line(const base::Error& error, char* line);

}  // namespace capi
