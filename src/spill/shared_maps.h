// Shared mappings of files that stay the kernel's, and how much of them is resident.
//
// Only the kernel's page cache gives a shared mapping its meaning (other processes, read(), a killed program), so the
// mapping stays where it is. But what it has in the process's page tables counts against the budget, and a thread takes it
// out of there when it becomes much:
//
//   resident   above three quarters of the limit: taken out, in the order of addresses and round and round, until it is
//              below five eighths. The limit is half of the budget; its last quarter is for what the program touches
//              meanwhile, which may also go beyond it
//   stuck      what cannot be taken out (locked in memory): left alone for a second
//
// Invariants
//  1 only shared mappings are taken out (MADV_DONTNEED): private memory would be lost. So it is done under the lock, to what
//    is recorded and what the kernel then says is shared. The record is changed first, then the mapping, by munmap and
//    mremap of all code, and by mmap and syscall of compiled code. Where the kernel cannot say (before Linux 6.11), advice
//    is used that is harmless to any memory (MADV_PAGEOUT)
//  2 no descriptor of the program's file is opened, copied or closed: closing one would end the process's record locks
//  3 nothing is written or waited for: the kernel writes what was stored, and reports errors to whoever asks (msync, fsync)
//
// Not done where there is no background thread: in a child of _Fork.
//
// Thread contract: any thread, unless a function says otherwise.
#pragma once
#include <cstdint>

namespace spill {

// mmap returned [begin, begin + bytes): records it if it is a shared mapping of a file on a disk.
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

// Starts the taker's thread if something is recorded and there is none. Only from the background thread: starting a thread
// takes memory from the program's heap, whose locks a thread that maps a file may hold. If it cannot be started, the next
// call tries again. Cost: one load. While something is recorded the taker wakes 1000 times a second, for 5 us each; for up to
// some 10 ms when something is to be taken out.
void serve_shared_maps();

// For fork.
void freeze_shared_maps();
void thaw_shared_maps();
void own_shared_maps();

}  // namespace spill
