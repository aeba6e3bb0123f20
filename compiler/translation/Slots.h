//===- Slots.h - Which translation takes which slot -------------*- C++ -*-===//
//
//   slots 0, 1     scratch: translations of one access, done with it
//   slots 2 .. 31  shared translations, coloured: two that are live at one
//                  point never have the same
//
// Inline assembly may take all, since nothing is live across it.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_SLOTS_H
#define SPILLWAY_COMPILER_SLOTS_H

#include "analysis/Accesses.h"

#include "llvm/ADT/ArrayRef.h"

#include <deque>

namespace spillway {

constexpr unsigned ScratchSlots = 2;

/// Gives each translation a slot for the instructions from its leader to its
/// last follower, and each site the set of slots that must survive it. A
/// translation that finds no slot is not shared. Sites: ordered as for
/// shareTranslations.
void assignSlots(llvm::MutableArrayRef<Site> Sites,
                 std::deque<Translation> &Translations);

} // namespace spillway

#endif
