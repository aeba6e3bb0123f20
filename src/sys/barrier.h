// The asymmetric memory barrier: readers pay nothing, the writer pays a system call.
#pragma once
#include <atomic>

#include "base/error.h"

namespace sys {

// Tells the kernel that this process will use barriers. Errors: ENOSYS, EINVAL on kernels without
// membarrier (before 4.14).
base::Expected<void> register_barrier();

// By its return every thread of the process has passed a full memory barrier. Cost: 0.4 us
// alone, about 5 us with other threads running (an interrupt each).
void process_barrier();

// The two sides of a barrier between a thread that passes it often and one that seldom does. Each of them stores, passes its side of the barrier, and
// loads what the other stores: at least one of them sees the other's store. `has_barrier`: register_barrier() has succeeded; without it both sides cost
// the same, a fence.
inline void pass_often(bool has_barrier) {
  if (has_barrier)
    std::atomic_signal_fence(std::memory_order_seq_cst);
  else
    std::atomic_thread_fence(std::memory_order_seq_cst);
}
inline void pass_seldom(bool has_barrier) {
  if (has_barrier)
    process_barrier();
  else
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

// The kernel guarantees some orders that the thread sanitizer cannot see. These functions tell it of them; in other builds they do nothing.
//
//   death     All that a thread did happens before the kernel's report that it is dead (ESRCH from tgkill). A thread
//             calls note_life() with its record after it wrote there; whoever got the report calls note_death().
//   mapping   All accesses to memory happen before it is unmapped, and that before its address is mapped again:
//             note_unmap() before each unmap, note_map() after each map.
//
// The barrier itself needs no note. Readers publish by a release store (to a slot) and look by an acquire load (of an entry), and the writer does both
// on the same words: whichever comes later reads the other's value, and so synchronizes with it.
#if __has_feature(thread_sanitizer)
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
inline void note_life(void* record) { __tsan_release(record); }
inline void note_death(void* record) { __tsan_acquire(record); }
inline constinit char mappings = 0;
inline void note_unmap() { __tsan_release(&mappings); }
inline void note_map() { __tsan_acquire(&mappings); }
#else
inline void note_life(void*) {}
inline void note_death(void*) {}
inline void note_unmap() {}
inline void note_map() {}
#endif

}  // namespace sys
