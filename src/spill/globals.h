// Globals in spilled memory (spillcc -fspill-globals; compiler/module/Globals.h): they keep their addresses, in the
// program's or a library's own .data and .bss, and have pages of the cache there.
//
//   1 a constructor of the object, before all others, hands over the records of its globals
//   2 adjacent ones are merged; the whole pages in them are spilled, the rest at their ends stays plain memory, and so does a
//     library that lies above the frames (sys::map_shared_high)
//   3 for each piece: its content is copied aside, its addresses become inaccessible and a global's (in_range,
//     is_allocated), its entries unknown; then the content is stored through the cache, but for zeros
//   4 dlclose: hazard slots that still name the pages are cleared, their pins end, the pages are dropped, their entries unknown
//
// Invariant: an entry of the table that is not a global's is unknown or identity, whatever lay there before.
//
// Thread contract: nobody else uses an object's globals before its constructors, or after its destructors.
#pragma once
#include <cstdint>

#include "spill/abi.h"

namespace spill {

// A record that the compiler made (abi.inc).
struct GlobalRecord {
  uint64_t address;
  uint64_t bytes;
};

// A dlclose is under way in the calling thread: destructors that run now belong to libraries that are being unloaded.
class ClosingLibraries {
 public:
  ClosingLibraries();
  ~ClosingLibraries();
  ClosingLibraries(const ClosingLibraries&) = delete;
  ClosingLibraries& operator=(const ClosingLibraries&) = delete;
};

}  // namespace spill
