// What the program may do with its spilled memory where that is not just to read and write it: mprotect, mappings without
// access, and the kernel's own mappings that the program put among spilled memory (MAP_FIXED).
//
//   open          to read and write: the table leads to frames
//   no access     nothing is mapped at the address; what was stored is kept
//   other access  (to be read, or executed) the fault path maps the frame at the address itself, with this access, and the
//                 kernel honours it
//   kernel's      a mapping of the kernel's lies there; the cache has nothing for these addresses
//
// All but open OS pages are closed to the table (cache/pages/closed.h): compiled code and interceptors go to the address itself.
// So an access that is not allowed faults there, with the program's address, and one that has become allowed meanwhile (by the
// program's handler) succeeds when it is repeated.
//
// Steps of a change: 1 under the lock of mappings (mapped_pages.h) the map is changed, and what the fault path had mapped is
// unmapped  2 entries of pages in memory are closed or opened  3 accesses that were translated before are guarded against (holders)
//
// Invariants
//  1 an OS page whose protection is not kOpen has no entry that leads to a frame once step 2 is done: whoever opens entries
//    checks under the partition's lock
//  2 a mapping of the fault path allows what the map says: both change under one lock
//  3 addresses that are free are open
//
// Thread contract: any thread reads, without a lock; changes are made under the lock of mappings.
#pragma once
#include <cstdint>

#include "base/error.h"
#include "cache/pages/closed.h"
#include "spill/abi.h"
#include "sys/memory.h"

namespace spill {

enum class Protection : uint8_t { kOpen, kNone, kRead, kReadExecute, kEverything, kKernel };
// What an access needs.
enum class Need : uint8_t { kRead, kWrite, kExecute };

// Maps the map. Errors: ENOMEM.
base::Expected<void> open_protections();
cache::Closed& closed_pages();

// Of mprotect's and mmap's argument. Writing implies reading, executing too.
Protection protection_of_flags(int flags);
// REQUIRES: not kKernel.
sys::Access access_of(Protection protection);
// False for kKernel, where it is not known.
bool allows(Protection protection, Need need);

// Cost: one load where 2 MiB have one protection, else two. Async-signal-safe.
Protection protection_at(uint64_t address);
inline bool is_open(uint64_t address) { return protection_at(address) == Protection::kOpen; }
// The end of the OS pages from `address` on that have its protection; at most `end`. Cost: as same_allocation_end.
uint64_t same_protection_end(uint64_t address, uint64_t end);

// The map's part of step 1. REQUIRES: the lock of mappings; in_reserved_range.
void note_protection(uint64_t address, uint64_t bytes, Protection protection);

// Changes the protection of spilled memory, all steps. REQUIRES: allocated, none of it kernel's. May do system calls.
void protect(uint64_t address, uint64_t bytes, Protection protection);
// Opens all of it again and unmaps what is the kernel's, before the addresses are freed. Cost: a look at the map if all of it is open.
void end_protection(uint64_t address, uint64_t bytes);

// Sets the guards of the page of `address` (FramePool::guard) as its protection says now. For an access that a guard has refused although it
// is allowed: two threads changed the protection at the same time, and the one whose change is older guarded last.
void renew_guards(uint64_t address);

// A mapping of the kernel's takes the place of what was there. `map(context)` makes it at the address (MAP_FIXED), and
// returns false if that failed: then nothing has changed. REQUIRES: allocated, not kept mapped (mapped_pages.h).
bool give_to_kernel(uint64_t address, uint64_t bytes, bool (*map)(void* context), void* context);

}  // namespace spill
