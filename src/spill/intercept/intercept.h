// What the interceptors share.
//
// An interceptor is `SPILL_EXPORT T __spill_<name>(...)` with the C library's prototype of <name>
// (include/spillway/interceptors.inc lists the names and how to add one). Rules for all of them:
//  1 plain arguments cost a range check before the C library's function
//  2 the C library's function only ever gets plain pointers; spilled ones are taken piece by piece
//    (access.h), or bounce through Scratch
//  3 errno is what the C library's function left; code that runs after it uses raw system calls only
//  4 calls that may block clear the slots first and hold nothing while they wait
//  5 callbacks into the program get the addresses that the program knows, with nothing held
// The files are compiled with SPILLWAY_KEEP_LIBC_MEMORY: memcpy and its kin in them are the C library's.
#pragma once
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <algorithm>
#include <cstddef>
#include <limits>

#include "spill/access.h"
#include "spill/protection.h"

namespace spill {

template <class... Pointers>
inline bool plain(Pointers... pointers) {
  return (!in_range(static_cast<const void*>(pointers)) && ...);
}

// Whether none of the n bytes is spilled. (A spilled global may have plain memory at its ends, so the kernel would reach only a part of it.)
inline bool all_plain(const void* memory, size_t n) { return !reaches_range(memory, n); }

// Whether a lock or the like is left to the C library's functions: it lies in plain memory, or in a mapping of the
// kernel's among spilled memory, where other processes may wait too.
template <class... Pointers>
inline bool is_c_library_object(Pointers... pointers) {
  const auto is_kernels = [](const void* pointer) {
    return protection_at(reinterpret_cast<uint64_t>(pointer)) == Protection::kKernel;
  };
  return ((plain(pointers) || is_kernels(static_cast<const void*>(pointers))) && ...);
}

// Sets errno, and returns what most calls return when they fail.
inline int fail(int number) {
  errno = number;
  return -1;
}

// Bytes that an access at `address` may cover: to the end of the OS page when spilled, else `n`.
inline size_t piece_length(const void* address, size_t n) {
  return in_range(address) ? std::min(n, bytes_to_page_end(address)) : n;
}

// How much of a spilled text is copied if not all of it may be needed: first_window() at first, then next_window() until that
// suffices. Nothing beyond the page that is needed is touched: a text in a mapped file may end, without a 0, where nothing is
// mapped. For a long text many rounds would cost more than unneeded pages.
inline constexpr size_t kLongTextBytes = 64 << 10;
inline size_t first_window(const char* text, size_t bytes) {
  return std::min(bytes, bytes_to_page_end(text));
}
inline size_t next_window(const char* text, size_t window) {
  const size_t more = 7 * window;
  return window + (window < kLongTextBytes ? std::min(more, bytes_to_page_end(text + window)) : more);
}

// hold() for an address that may be plain.
inline char* raw(const void* address, HoldSlot slot) {
  return in_range(address) ? hold(address, slot) : static_cast<char*>(const_cast<void*>(address));
}

// Takes a plain lock of the C library: at once if it is free, else with no slot held while it waits.
template <class Lock>
inline int lock_or_wait(int (*try_lock)(Lock*), int (*wait_for_lock)(Lock*), Lock* lock) {
  const int taken = try_lock(lock);
  if (taken != EBUSY) return taken;
  clear_slots();
  return wait_for_lock(lock);
}

// To be called before the C library reads n bytes or more from a stream. Clears the slots unless its buffer has them: then
// the call may wait for input, or for another thread that does.
inline void let_go_unless_buffered(const FILE* stream, size_t n) {
  if (static_cast<size_t>(stream->_IO_read_end - stream->_IO_read_ptr) < n) clear_slots();
}

// The time of the monotonic clock after `time` has passed, at most the clock's last; and whether such a time has come.
inline timespec monotonic_after(const timespec& time) {
  timespec end;
  clock_gettime(CLOCK_MONOTONIC, &end);
  const long nanoseconds = end.tv_nsec + time.tv_nsec;
  end.tv_sec += nanoseconds / 1'000'000'000;
  end.tv_nsec = nanoseconds % 1'000'000'000;
  if (__builtin_add_overflow(end.tv_sec, time.tv_sec, &end.tv_sec))
    end.tv_sec = std::numeric_limits<time_t>::max();
  return end;
}
inline bool has_come(const timespec& time) {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec > time.tv_sec || (now.tv_sec == time.tv_sec && now.tv_nsec >= time.tv_nsec);
}

// An object that the C library reads: itself, or a plain copy when it is spilled. Null stays null.
template <class T>
class PlainIn {
 public:
  explicit PlainIn(const T* object) : object_(object) {
    if (all_plain(object, sizeof(T))) return;
    copy(&copy_, object, sizeof(T));
    object_ = &copy_;
  }
  operator const T*() const { return object_; }
  const T* operator->() const { return object_; }
  const T& operator*() const { return *object_; }

 private:
  const T* object_;
  T copy_;
};

// An object that the C library writes, or reads and writes. A spilled one is loaded first, so that what the call leaves alone keeps its value, and
// stored when this ends, if the call has changed it: otherwise what a handler or another thread has stored there meanwhile stays.
template <class T>
class PlainObject {
 public:
  explicit PlainObject(T* object) : object_(object) {
    if (is_plain()) return;
    copy(&before_, object, sizeof(T));
    memcpy(&copy_, &before_, sizeof(T));
  }
  ~PlainObject() {
    if (!is_plain() && memcmp(&copy_, &before_, sizeof(T)) != 0) copy(object_, &copy_, sizeof(T));
  }
  PlainObject(const PlainObject&) = delete;
  PlainObject& operator=(const PlainObject&) = delete;
  operator T*() { return is_plain() ? object_ : &copy_; }
  T* operator->() { return *this; }

 private:
  bool is_plain() const { return all_plain(object_, sizeof(T)); }

  T* object_;
  T before_, copy_;
};

// `n` bytes that the C library reads (kIn), reads and writes (kInOut), or of which it writes the first ones (kOut, store()).
// data() is null when there is no memory for the copy, or `bytes` was null.
class PlainBytes {
 public:
  enum Direction { kIn, kOut, kInOut };
  PlainBytes(const void* bytes, size_t n, Direction direction)
      : bytes_(static_cast<char*>(const_cast<void*>(bytes))),
        n_(n),
        direction_(direction),
        scratch_(is_plain() ? 0 : n) {
    if (!is_plain() && direction != kOut && scratch_.data() != nullptr) copy(scratch_.data(), bytes, n);
  }
  ~PlainBytes() {
    if (!is_plain() && direction_ == kInOut && scratch_.data() != nullptr) copy(bytes_, scratch_.data(), n_);
  }
  PlainBytes(const PlainBytes&) = delete;
  PlainBytes& operator=(const PlainBytes&) = delete;
  char* data() { return is_plain() ? bytes_ : scratch_.data(); }
  // Not kInOut: stores the first n bytes of the copy. With kIn, those that the call did not write are as they were before.
  void store(size_t n) {
    if (!is_plain() && scratch_.data() != nullptr) copy(bytes_, scratch_.data(), std::min(n, n_));
  }

 private:
  bool is_plain() const { return all_plain(bytes_, n_); }

  char* bytes_;
  size_t n_;
  Direction direction_;
  Scratch scratch_;
};

// Loads or stores an object at an address that may be spilled.
template <class T>
inline T load(const T* from) {
  if (plain(from)) return *from;
  T value;
  copy(&value, from, sizeof(T));
  return value;
}
template <class T>
inline void store(T* to, T value) {
  if (plain(to))
    *to = value;
  else
    copy(to, &value, sizeof(T));
}

// syscall(2) with a number that copies the process (fork.cc).
long copy_process_by_number(long number, const long* arguments);
// Whether clone() is possible with these flags and this word for the child's number; else it fails with ENOTSUP.
bool can_clone(long flags, const void* child_word);
// futex(2) on a word in spilled memory (futex.cc); for FUTEX_WAKE_OP `word`, `word2` or both are. `value3`: a bit set, for FUTEX_CMP_REQUEUE the
// expected value, for FUTEX_WAKE_OP the change.
long call_futex(const uint32_t* word, int operation, uint32_t value, const timespec* timeout, uint32_t* word2,
                uint32_t value3);
// syscall(2) with any other number, and the six arguments (by_number.cc). REQUIRES: no slot is held.
long call_by_number(long number, const long* arguments);

// To be called after descriptor 2 may have been closed or replaced: from then on the runtime's messages go where it
// leads, or nowhere (descriptor.cc, sys/files.h).
void look_at_error_output();

// Ends the process as the C library's _chk functions do when a destination is too small.
[[noreturn]] void buffer_overflow();

}  // namespace spill

extern "C" {
// The heap that instrumented code uses (heap.cc).
void* __spill_malloc(size_t bytes);
void* __spill_realloc(void* block, size_t bytes);
void __spill_free(void* block);
}
