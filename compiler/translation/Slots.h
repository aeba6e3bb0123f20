//===- Slots.h - Which translation takes which slot -------------*- C++ -*-===//
//
//   slots 0, 1     scratch: translations for one access, which end with it
//   slots 2 .. 31  shared translations, coloured: two that are live at the same
//                  point never have the same slot
//
// Inline assembly takes one slot for each group of operands, from 0 on, since
// no translation lives across it.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_SLOTS_H
#define SPILLWAY_COMPILER_SLOTS_H

#include "analysis/Accesses.h"

#include "llvm/ADT/ArrayRef.h"

#include <deque>

namespace spillway {

constexpr unsigned ScratchSlots = 2;

/// Gives each translation a slot from its leader to its last follower, and in
/// all of the loop in which it is held (Held.h); and each site the set of slots
/// that must survive it. A translation that finds no free slot is not shared.
/// Sites: ordered as for shareTranslations.
void assignSlots(llvm::MutableArrayRef<Site> Sites,
                 std::deque<Translation> &Translations);

} // namespace spillway

#endif
