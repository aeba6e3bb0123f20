// Shared mappings of files that stay the kernel's, and how much of them is resident.
//
// The kernel's page cache alone gives a shared mapping its meaning (other processes, read(), a killed program), so that it
// stays where it is. But what it has in the process's page tables counts against the budget, and the background
// thread takes it out from there when it becomes much:
//
//   resident   above three quarters of the limit: taken out, in the order of addresses and round again, until it is below
//              five eighths. The limit is half of the budget; its last quarter is for what the program touches
//              meanwhile, which may also go beyond it
//   stuck      what cannot be taken out (locked in memory): left alone for a second
//
// Invariants
//  1 what is taken out (MADV_DONTNEED) is a shared mapping: it would be lost were it private memory. So it is done under the
//    lock, to what is recorded and, as the kernel says then, shared. The record is changed first, then the mapping, by
//    all code's munmap and mremap and compiled code's mmap and syscall. Where the kernel does not say (before Linux 6.11),
//    by advice that is harmless to any memory (MADV_PAGEOUT)
//  2 no descriptor of the program's file is opened, copied or closed: closing one would end the process's record locks
//  3 nothing is written or waited for: the kernel writes what was stored, and tells who asks (msync, fsync) of errors
//
// Not done where there is no background thread: in a child of _Fork.
//
// Thread contract: any thread, unless a function says otherwise.
#pragma once
#include <cstdint>

namespace spill {

// mmap gave [begin, begin + bytes): recorded if it is a shared mapping of a file on a disk.
void note_shared_map(const void* begin, uint64_t bytes, int flags, int descriptor);
// [begin, begin + bytes) is about to be unmapped or mapped over. Cost: one load where nothing is recorded.
void forget_shared_maps(const void* begin, uint64_t bytes);

// For mremap: forgets the old addresses, and records the new ones, or the old again if it failed.
class MovedSharedMap {
 public:
  MovedSharedMap(const void* begin, uint64_t bytes);
  // `moved`: mremap's result. `stays`: the old addresses remain mapped.
  void moved_to(const void* moved, uint64_t bytes, bool stays) const;

 private:
  const void* begin_;
  uint64_t bytes_;
  bool is_recorded_ = false;
};

// Starts the taker if something is recorded and there is none: from the background thread only, since to start a thread takes
// memory from the program's heap, whose locks who maps a file may hold. If it cannot be started, it is tried again with the
// next call. Cost: one load. The taker wakes 1000 times in a second while something is recorded, and takes 5 us; up to some
// 10 ms when something is to be taken out.
void serve_shared_maps();

// For fork.
void freeze_shared_maps();
void thaw_shared_maps();
void own_shared_maps();

}  // namespace spill
