// Address space and memory from the operating system.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/error.h"

namespace sys {

enum class Access { kNone, kRead, kReadWrite, kReadExecute, kEverything };

// Reserves [address, address + bytes) at exactly that address; nothing may be mapped there. Pages are
// zeros, come into being when touched, are kept out of core dumps, and are not counted against
// overcommit. Errors: ENOMEM or EEXIST, with a message that names the limit to raise.
base::Expected<void> reserve_at(uint64_t address, uint64_t bytes, Access access, const char* purpose);

// Private zeroed memory anywhere. Errors: ENOMEM.
base::Expected<char*> map_anonymous(uint64_t bytes, const char* purpose);
// Zeroed memory anywhere that a child of fork shares. Errors: ENOMEM.
base::Expected<char*> map_shared_anonymous(uint64_t bytes, const char* purpose);
// Null: does nothing.
void unmap(void* address, uint64_t bytes);

// A memory file of `bytes` bytes (not allocated until touched), as an own descriptor.
base::Expected<int> create_memory_file(uint64_t bytes, const char* name);

// Maps `bytes` of a memory file, shared. With `address`, exactly there, over what was mapped.
base::Expected<char*> map_shared(int descriptor, uint64_t offset, uint64_t bytes, Access access,
                                 void* address = nullptr);

// Maps all of a memory file, shared, to read and write: above the libraries, where room is left below the first
// thread's stack and what that may grow to (nearly always, but for programs whose addresses are not randomised);
// else anywhere. Of one thread at a time.
base::Expected<char*> map_shared_high(int descriptor, uint64_t bytes);

// Core files of this process have this memory, or not, whatever it was mapped by.
void keep_in_core_files(void* address, uint64_t bytes);
void keep_from_core_files(void* address, uint64_t bytes);

// Maps `bytes` of a memory file privately at `address`, over what was mapped: the file's content as long as nobody
// stores to it, this process's own from then on. Returns 0 or -errno.
long map_private(int descriptor, uint64_t offset, uint64_t bytes, void* address);

// Whether a child of fork has this memory.
void keep_from_children(void* address, uint64_t bytes);
void give_to_children(void* address, uint64_t bytes);

// Stores to [address, address + bytes) fault, or not any more. Returns whether the kernel agreed.
bool forbid_stores(void* address, uint64_t bytes);
bool allow_stores(void* address, uint64_t bytes);

// Writes to a memory file. Returns whether all of it was written; memory may be short.
bool write_file_piece(int descriptor, uint64_t offset, const void* from, uint64_t bytes);

// Writes [address, address + bytes) to a memory file and maps that there, shared. The calling thread stores nothing
// in between: it may be the stack that it runs on. Returns 0 or -errno.
long move_to_file(int descriptor, uint64_t offset, uint64_t bytes, void* address);

// Replaces whatever is mapped at [address, address + bytes) by inaccessible address space again.
// Returns 0 or -errno.
long make_inaccessible(void* address, uint64_t bytes);

// The program may do with [address, address + bytes) what `access` says; what is mapped there stays. Returns 0 or -errno.
long set_access(void* address, uint64_t bytes, Access access);

// Is there anything at the OS page's address, accessible or not?
bool is_mapped(void* address);

// Gives the memory of [address, address + bytes) back; it reads as zeros afterwards. Private memory.
void release(void* address, uint64_t bytes);
// The same for a piece of a memory file. False when the kernel refuses, as sandboxes let it: then it keeps its content.
bool release_file_piece(int descriptor, uint64_t offset, uint64_t bytes);
// Whether an access to the OS page of `address` would succeed, which is then mapped. Linux 5.14; false before.
bool populate(void* address, bool to_write);

// Memory that this process may still take: the smallest of what the machine has available and what
// its cgroups (v1 or v2) leave. What is kept of files in memory counts as free. `root`: "" but in tests, of /proc and /sys.
uint64_t free_memory_bytes(const char* root = "");
uint64_t machine_memory_bytes();
// What of this process is in memory, of files too; 0 if the kernel does not tell. Cost: some 5 us.
uint64_t resident_bytes();

}  // namespace sys
