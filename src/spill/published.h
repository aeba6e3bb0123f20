// What the runtime shows of itself to other processes of its user: `spillway dump` and `spillway top` read it, dump in a
// core file too.
//
//   kPublished (abi.inc)   one OS page at a fixed address: a Published, filled before main and not changed afterwards, except
//                          for requests about the budget and their answers (budget.h)
//   what it points to      counters, maps, frames: read as they are while the process runs, and believed with care
//                          (cache/pages/page_reader.h)
//
// A reader must have been built from the same sources: of a Published with another kLayoutVersion, it can tell only that.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "base/statistics.h"
#include "cache/pages/frame.h"
#include "cache/pages/layout.h"
#include "spill/address_space.h"
#include "spill/budget.h"

namespace spill {

struct Published {
  // These two keep their place in every version.
  uint64_t magic;           // kMagic; stored last: whoever sees it finds the rest
  uint64_t layout_version;  // kLayoutVersion

  uint64_t statistics;         // base::Statistics
  uint64_t is_fork_child;      // bool: memory is what its parent had, and not to be found by the rest of this
  uint64_t storage_memory;     // Device::whereabouts(): address, or 0
  int64_t storage_descriptor;  // descriptor, or -1
  AddressMaps address_maps;
  cache::Layout cache;
  char device[256];  // its name
  BudgetRequest budget_request;
  BudgetAnswer budget_answer;

  static constexpr uint64_t kMagic = 0x7961776c6c697053;  // "Spillway"
};
static_assert(sizeof(Published) <= base::kOsPageBytes);
static_assert(offsetof(Published, magic) == 0 && offsetof(Published, layout_version) == 8);

// What the layout of all that is published depends on. Raise kLayoutRevision for a change that nothing else here reflects.
inline constexpr uint64_t kLayoutRevision = 2;
inline constexpr char kStatisticNames[] =
#define STATISTIC(folder, name, doc) #folder "." #name " "
#define SITES(folder, name, doc) "sites " #folder "." #name " "
#define CURVE(folder, name, doc) "curve " #folder "." #name " "
#define WORD(folder, name, doc) "word " #folder "." #name " "
#include "base/statistics.inc"
    ;
constexpr uint64_t compute_layout_version() {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  const auto add = [&](uint64_t value) { hash = (hash ^ value) * 0x100000001b3; };
  for (uint64_t value : {kLayoutRevision, uint64_t{sizeof(Published)}, uint64_t{sizeof(cache::Frame)},
                         uint64_t{sizeof(base::SiteTable)}, uint64_t{sizeof(base::MissCurve)}, kChunkBytes})
    add(value);
  for (char c : std::string_view(kStatisticNames)) add(static_cast<unsigned char>(c));
  return hash;
}
inline constexpr uint64_t kLayoutVersion = compute_layout_version();

// Fills the page. REQUIRES: device, cache and address space are there. Errors: EEXIST, ENOMEM.
base::Expected<void> publish();

}  // namespace spill
