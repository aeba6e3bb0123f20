// Files that the program maps, through the cache.
//
//   reading   private or shared, read only. Holds a read lease on the file: nobody has it open for writing. When somebody wants to, the
//             kernel makes them wait until the mapping has become an ordinary one of the kernel's, at the same addresses (make_plain), and
//             the lease is given back: what they write is then seen as natively
//   private   private, to read and write. Nobody had the file open for writing when it was mapped. A page that was read is written to
//             storage when it leaves, unless nobody can have stored to it, so that what is written to the file later is not taken for the
//             program's stores
//   plain     a reading mapping that has become the kernel's: entries of the table lead to the addresses themselves
//   gone      unmapped; pages that somebody held at that moment have yet to leave memory
//
// A reading mapping is made plain when the program asks for something that only the kernel can do to it. All other mappings of files are the
// kernel's from the start.
//
// Invariants
//  1 a file map has whole chunks of 2 MiB of addresses to itself, until all of it is unmapped and no page of it is left
//  2 pages of plain and gone maps are not loaded any more: kind_of says so under the partition's lock. A plain map's
//    lease is given back after all its pages have left, or are held and out of reach
//  3 a page that cannot be had (past the end of the file, a failed read) stays inaccessible: the access faults, and
//    show_bus_error lets the kernel raise SIGBUS for it
//  4 no descriptor of a file is opened or closed while it has record locks: closing one would end the process's own locks. A map that is
//    gone waits until there are none
//
// Thread contract: any thread; maps are changed under one lock.
#pragma once
#include <errno.h>

#include <cstddef>
#include <cstdint>

#include "cache/partition/workspace.h"
#include "spill/abi.h"

namespace spill {

// Maps the index of maps. Errors: ENOMEM.
base::Expected<void> open_file_maps();
cache::Origins& file_origins();

// mmap without MAP_FIXED. Returns the address, or 0 if the mapping does not go through the cache: the caller then asks the kernel, which
// maps the file or says what is wrong.
uint64_t map_file(uint64_t bytes, int protection, int flags, int descriptor, int64_t offset);

enum class FileMapKind : uint8_t { kNone, kReading, kPrivate, kPlain, kGone };
// Cost: two loads. Async-signal-safe. REQUIRES: in_range(address).
FileMapKind file_map_kind(uint64_t address);
inline bool is_file_map(uint64_t address) { return file_map_kind(address) != FileMapKind::kNone; }
// Is any file mapped through the cache now?
bool has_file_maps();
// A load of the page of `address` failed with `error`: should the access be made at the address itself? It finds the kernel's mapping there,
// or raises the signal that says what is wrong (invariant 3).
inline bool is_file_map_error(uint64_t address, const base::Error& error) {
  return (error.number == ENXIO || error.number == ESTALE) && is_file_map(address);
}
// The end of the addresses from `address` on that belong to the same map, or to none if it belongs to none; at most `end`.
uint64_t file_map_end(uint64_t address, uint64_t end);

// Makes the reading map of `address` the kernel's, and waits until nobody pins pages of it any more. Afterwards its kind is kPlain, and
// translations lead to the kernel's mapping. A map of another kind keeps its kind.
void make_plain(uint64_t address);

// munmap of a part of one map. REQUIRES: allocated.
void unmap_file(uint64_t address, uint64_t bytes);

// madvise(MADV_DONTNEED) for OS pages of one private map: they have the file's content again. Returns false if that cannot
// be read.
bool reload_file(uint64_t address, uint64_t bytes);

// The address lies in a plain map, or in another mapping of the kernel's: makes its entry identity, unless it is locked.
void note_plain(uint64_t address);

// The cache cannot have this page of a map: until hide_bus_error, accesses to it raise SIGBUS. Both do nothing for plain maps and outside of maps.
void show_bus_error(uint64_t address);
void hide_bus_error(uint64_t address);

// Called by the background thread: makes maps plain if others want to write their files, and frees maps that are gone once nobody holds
// their pages.
void file_maps_step(cache::Workspace& workspace, uint32_t round);

// For fork. In a child all reading maps become plain.
void freeze_file_maps();
void thaw_file_maps();
void own_file_maps();

}  // namespace spill
