// What mmap.cc, mremap.cc and advise.cc share: finding out what kind of memory lies at an address, going through a range
// part by part, and allocating and freeing spilled addresses.
#pragma once
#include <errno.h>
#include <sys/mman.h>

#include <algorithm>

#include "base/ids.h"
#include "base/statistics.h"
#include "spill/address_space.h"
#include "spill/file_maps.h"
#include "spill/intercept/intercept.h"
#include "spill/protection.h"
#include "spill/runtime.h"

namespace spill {

inline constexpr int kAllAccess = PROT_READ | PROT_WRITE | PROT_EXEC;

// Sets errno, and returns what the calls that map return when they fail.
inline void* no_map(int number = ENOMEM) {
  errno = number;
  return MAP_FAILED;
}

// The kind of map that the address belongs to. The kernel's mappings among spilled memory count as plain ones.
inline FileMapKind kind_at(uint64_t address) {
  return protection_at(address) == Protection::kKernel ? FileMapKind::kPlain : file_map_kind(address);
}

// The first address where the kind or the protection of the memory changes; at most `end`.
inline uint64_t part_end(uint64_t address, uint64_t end) {
  return same_protection_end(address, file_map_end(address, end));
}

// Whether a spilled global lies at the address: it can neither be unmapped nor moved.
inline bool is_global_at(const void* address) {
  const auto begin = reinterpret_cast<uint64_t>(address);
  return !in_reserved_range(begin) && in_range(begin);
}

inline bool holds_globals(const void* address, size_t bytes) {
  return spillway_has_globals.load(std::memory_order_relaxed) &&
         touches_globals(reinterpret_cast<uint64_t>(address), bytes);
}

inline bool touches_range(const void* address, size_t bytes) {
  const auto begin = reinterpret_cast<uint64_t>(address);
  return (begin < kRangeEnd && begin + bytes > kRangeBegin) || holds_globals(address, bytes);
}

// Whether the memory begins outside the spilled range and contains spilled globals, whose ends may be plain memory.
inline bool is_around_globals(const void* address, size_t bytes) {
  return !in_reserved_range(reinterpret_cast<uint64_t>(address)) && holds_globals(address, bytes);
}

// Calls f(part, bytes, is_spilled) for each part of such memory that is entirely spilled or entirely plain, in order.
// Stops when f returns something other than 0, and returns that.
template <class F>
int for_each_part_around_globals(const void* address, size_t bytes, F f) {
  const auto begin = reinterpret_cast<uint64_t>(address);
  const uint64_t end =
      std::min(begin + base::round_up(bytes, base::kOsPageBytes), uint64_t{1} << kAddressBits);
  for (uint64_t at = begin; at < end;) {
    const uint64_t stop = same_allocation_end(at, end);
    if (const int result = f(reinterpret_cast<void*>(at), stop - at, is_allocated(at)); result != 0)
      return result;
    at = stop;
  }
  return 0;
}

// The kind of the file map that all of [begin, begin + bytes) belongs to; kNone if there is no such map. A map that is
// read through the cache becomes a plain mapping of the kernel's first, since only the kernel can do what is asked for:
// this clears the thread's slots, and may block.
FileMapKind kernel_kind(uint64_t begin, uint64_t bytes);

// allocate_addresses and allocate_addresses_at, for code that is not in the runtime yet.
inline uint64_t take_addresses(uint64_t bytes) {
  const InRuntime inside;
  return allocate_addresses(bytes, base::kOsPageBytes);
}
inline bool take_addresses_at(uint64_t address, uint64_t bytes) {
  const InRuntime inside;
  return allocate_addresses_at(address, bytes);
}

// Counts spilled memory that the program was given by a mapping without a file, or by the growth of one.
inline void count_mapped(uint64_t bytes) {
  base::statistics.spill_allocated_bytes.add(bytes);
  base::statistics.spill_live_bytes.add(bytes);
}

// Spilled memory at an address of the runtime's choice, zeros; MAP_FAILED and ENOMEM if there is no room.
void* map_spilled(size_t bytes, Protection protection);

// The same for MAP_FIXED, at spilled addresses; replaces what was there.
void* map_fixed(void* address, size_t bytes, Protection protection);

// munmap of spilled addresses: 0, or -1 and errno.
int unmap_spilled(void* address, size_t bytes);

// Calls f(part, bytes) for each part of [address, address + bytes) that belongs to one file map, or to none, and has one
// protection, in order. Stops when f returns something other than 0, and returns that.
template <class F>
int for_each_part(const void* address, size_t bytes, F f) {
  const auto begin = reinterpret_cast<uint64_t>(address);
  uint64_t end = begin + base::round_up(bytes, base::kOsPageBytes);
  if (!is_global_at(address)) end = std::min(end, kRangeEnd);
  for (uint64_t at = begin; at < end;) {
    const uint64_t stop = part_end(at, end);
    if (const int result = f(reinterpret_cast<void*>(at), stop - at); result != 0) return result;
    at = stop;
  }
  return 0;
}

// The same for the parts that are mapped. Like the kernel, it skips holes, and returns -1 with ENOMEM at the end if there were any.
template <class F>
int for_each_mapped_part(const void* address, size_t bytes, F f) {
  bool holes = !is_global_at(address) &&
               base::round_up(bytes, base::kOsPageBytes) > kRangeEnd - reinterpret_cast<uint64_t>(address);
  const int result = for_each_part(address, bytes, [&](void* part, size_t length) {
    if (is_global_at(part)) return f(part, length);
    const uint64_t end = reinterpret_cast<uint64_t>(part) + length;
    for (auto at = reinterpret_cast<uint64_t>(part); at < end;) {
      const uint64_t stop = same_allocation_end(at, end);
      if (!is_allocated(at))
        holes = true;
      else if (const int failed = f(reinterpret_cast<void*>(at), stop - at); failed != 0)
        return failed;
      at = stop;
    }
    return 0;
  });
  return result == 0 && holes ? fail(ENOMEM) : result;
}

}  // namespace spill
