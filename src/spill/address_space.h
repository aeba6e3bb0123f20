// Which addresses are spilled memory: allocated parts of the range, whoever has allocated them (heap extents,
// mmap), and globals wherever they lie (globals.h).
//
//   free list   address ranges given back, sorted, coalesced; first fit, else the end grows
//   chunk map   one byte per 2 MiB: nothing, everything, or some OS pages of it allocated
//   page bits   one bit per OS page, valid in chunks of which some is allocated
//
// An address that is not allocated is not translated: the access faults, as it would natively.
// Thread contract: any thread. is_allocated() takes no lock; allocating, freeing and marking take one that fork takes too, so a compiled
// program does these within InRuntime: a handler that interrupted them might fork.
#pragma once
#include <cstdint>

#include "base/error.h"
#include "base/ids.h"
#include "spill/abi.h"

namespace spill {

// Is `bytes` more than the whole range? (Rounding such a number up to OS pages might yield 0.)
constexpr bool is_too_large(uint64_t bytes) { return bytes > kRangeEnd - kRangeBegin; }

// Maps the maps. Errors: ENOMEM.
base::Expected<void> open_address_space();

// `bytes` (multiple of the OS page) of address space at a multiple of `alignment` (a power of two, at
// least an OS page); reads as zeros. 0 when the range has no such room.
uint64_t allocate_addresses(uint64_t bytes, uint64_t alignment);
// Takes exactly [address, address + bytes) if all of it is free. Returns false if not.
bool allocate_addresses_at(uint64_t address, uint64_t bytes);
// Gives back any part of what was allocated. REQUIRES: its pages were discarded.
void free_addresses(uint64_t address, uint64_t bytes);

// Marks any part of what was allocated as not allocated, but lets nobody else have it before free_addresses.
void withhold_addresses(uint64_t address, uint64_t bytes);

// The two maps, for other processes that look into this one.
inline constexpr uint64_t kChunkBytes = uint64_t{2} << 20;
enum class ChunkUse : uint8_t { kNothing, kEverything, kSome };
struct AddressMaps {
  uint64_t chunk_use;  // address of ChunkUse by chunk of all addresses
  uint64_t page_bits;  // address of words of 64 bits, bit by OS page of all addresses
};
AddressMaps address_maps();

// Do the maps say that the OS page of `address` is allocated, or a global's? `chunk_use(i)` and `page_bits(i)` read
// element i of them. REQUIRES: below 2^kAddressBits.
template <class ReadChunkUse, class ReadPageBits>
inline bool is_allocated_by(uint64_t address, ReadChunkUse&& chunk_use, ReadPageBits&& page_bits) {
  const ChunkUse use = chunk_use(address / kChunkBytes);
  if (use != ChunkUse::kSome) return use == ChunkUse::kEverything;
  const uint64_t page = address / base::kOsPageBytes;
  return (page_bits(page / 64) >> (page % 64) & 1) != 0;
}

// Does a spilled global lie in [begin, begin + bytes)? (bytes_before_globals of abi.h says how far away.) Cost: one byte read for each 2 MiB
// without globals.
bool touches_globals(uint64_t begin, uint64_t bytes);

// [begin, begin + bytes), whole OS pages outside the range, become globals, or cease to be.
void mark_globals(uint64_t begin, uint64_t bytes, bool spilled);

// Between the two nothing is allocated or freed. For fork.
void freeze_addresses();
void thaw_addresses();

// Is the OS page of `address` allocated, or a global's? REQUIRES: below 2^kAddressBits. Async-signal-safe.
bool is_allocated(uint64_t address);
// The end of the OS pages from `address` on for which is_allocated returns the same; at most `end`. Cost: one read for each
// chunk, and for each OS page only in chunks that are partly allocated. REQUIRES: in_range(address); all below
// 2^kAddressBits.
uint64_t same_allocation_end(uint64_t address, uint64_t end);

// Does [address, address + bytes) touch what the runtime keeps at fixed addresses: the table, the published page, the
// page that says whether native bodies may run, and the one that unregistered threads' slots point to? Nobody else may map anything there.
bool touches_runtime(const void* address, uint64_t bytes);

// Do some of the addresses have no entry in the table? With 57-bit addresses the kernel maps memory up there only if it is asked to, be it by a hint.
inline bool is_beyond_table(const void* address, uint64_t bytes) {
  constexpr uint64_t kEnd = uint64_t{1} << kAddressBits;
  const auto begin = reinterpret_cast<uint64_t>(address);
  return begin > kEnd || bytes > kEnd - begin;
}

}  // namespace spill
