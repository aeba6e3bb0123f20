// Address space and memory from the operating system.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/error.h"

namespace sys {

enum class Access { kNone, kRead, kReadWrite, kReadExecute, kEverything };

// Reserves [address, address + bytes) at exactly that address; nothing may be mapped there. Pages are
// zeros, take memory only when touched, are kept out of core dumps, and are not counted against
// overcommit. Errors: ENOMEM or EEXIST, with a message that names the limit to raise.
base::Expected<void> reserve_at(uint64_t address, uint64_t bytes, Access access, const char* purpose);

// Private zeroed memory: at `wish` if nothing is mapped there, else anywhere. Errors: ENOMEM.
base::Expected<char*> map_anonymous(uint64_t bytes, const char* purpose, const void* wish = nullptr);
// Zeroed memory, anywhere, that children of fork share. Errors: ENOMEM.
base::Expected<char*> map_shared_anonymous(uint64_t bytes, const char* purpose);
// Does nothing if the address is null.
void unmap(void* address, uint64_t bytes);

// A memory file of `bytes` bytes (not allocated until touched), as an own descriptor.
base::Expected<int> create_memory_file(uint64_t bytes, const char* name);

// Maps `bytes` of a memory file, shared. With `address`, exactly there, over what was mapped.
base::Expected<char*> map_shared(int descriptor, uint64_t offset, uint64_t bytes, Access access,
                                 void* address = nullptr);

// Maps all of a memory file, shared, to read and write: above the libraries, if there is room below the largest extent of the first thread's stack,
// which there nearly always is unless the program's addresses are not randomised; else anywhere. One thread at a time. Errors: ENOMEM and what else mmap
// says, like those of map_shared.
base::Expected<char*> map_shared_high(int descriptor, uint64_t bytes);

// Core files of this process have this memory, or do not, however it was mapped.
void keep_in_core_files(void* address, uint64_t bytes);
void keep_from_core_files(void* address, uint64_t bytes);

// Maps `bytes` of a memory file privately at `address`, over what was mapped: an OS page has the file's content until somebody stores to it, and is
// this process's own from then on. Returns 0 or -errno.
long map_private(int descriptor, uint64_t offset, uint64_t bytes, void* address);

// Children of fork do not inherit this memory, or do.
void keep_from_children(void* address, uint64_t bytes);
void give_to_children(void* address, uint64_t bytes);

// Makes [address, address + bytes) read-only, or readable and writable. Returns whether the kernel agreed.
bool forbid_stores(void* address, uint64_t bytes);
bool allow_stores(void* address, uint64_t bytes);

// Writes to a memory file. Returns whether everything was written: there may be too little memory, or the size of files may be limited.
bool write_file_piece(int descriptor, uint64_t offset, const void* from, uint64_t bytes);

// Writes [address, address + bytes) to a memory file, and maps that piece of the file there, shared. The calling thread stores nothing in between, so
// this memory may be the stack that it runs on. Returns 0 or -errno.
long move_to_file(int descriptor, uint64_t offset, uint64_t bytes, void* address);

// Replaces whatever is mapped at [address, address + bytes) by inaccessible address space. Returns 0 or -errno.
long make_inaccessible(void* address, uint64_t bytes);

// Changes how [address, address + bytes) may be accessed; what is mapped there stays. Returns 0 or -errno.
long set_access(void* address, uint64_t bytes, Access access);

// Gives back the memory of [address, address + bytes), which reads as zeros afterwards. For private memory.
void release(void* address, uint64_t bytes);
// The same for a piece of a memory file. False if the kernel refuses, as it does in some sandboxes; the piece keeps its content then.
bool release_file_piece(int descriptor, uint64_t offset, uint64_t bytes);
// Maps the OS page of `address` as an access would, and returns whether such an access succeeds. Linux 5.14; false before.
bool populate(void* address, bool to_write);

// Memory that this process may still take: the smallest of what the machine has available and what each of its cgroups (v1 or v2) leaves. The kernel's
// cache of files counts as free. `root`: a prefix of /proc and /sys, for tests.
uint64_t free_memory_bytes(const char* root = "");
uint64_t machine_memory_bytes();
// How much of this process is in memory, mapped files included; 0 if the kernel does not tell. Cost: some 5 us.
uint64_t resident_bytes();
// The most that this has been. (getrusage() would count the peak of the process that started this one, too.) Cost: some 20 us.
uint64_t peak_resident_bytes();

}  // namespace sys
