// Raw system calls: the runtime never calls the C library's wrappers, which it intercepts, and leaves errno alone. Each returns what the kernel does:
// a result, or -errno.
//
// (It is not called syscall.h, since <sys/syscall.h> would find it: no file here may have the name of one of the C library's sys/ headers.)
#pragma once
#include <sys/syscall.h>
#include <time.h>

#include <cstddef>
#include <cstdint>

namespace sys {

inline long syscall_raw(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
  long result;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

namespace syscall_argument {
inline long of(const void* pointer) { return reinterpret_cast<long>(pointer); }
inline long of(std::nullptr_t) { return 0; }
template <class T>
  requires(!__is_pointer(T))
long of(T value) {
  return static_cast<long>(value);
}
}  // namespace syscall_argument

// syscall(SYS_read, fd, buffer, n): arguments are integers or pointers.
template <class... Arguments>
long syscall(long number, Arguments... arguments) {
  return syscall_raw(number, syscall_argument::of(arguments)...);
}

inline bool failed(long result) { return result < 0 && result >= -4095; }

// The monotonic clock, from the kernel: the C library's function may be interposed by the runtime.
inline uint64_t monotonic_ns() {
  timespec now = {};
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace sys
