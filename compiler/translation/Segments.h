//===- Segments.h - Straight code that asks once ----------------*- C++ -*-===//
//
// Accesses of one block that share a translation would each check whether its
// window crosses a page's edge. Instead the code from the first of them to the
// last becomes a segment that exists twice, and the first decides:
//
//     if (the window crosses an edge)  segment, translating each access alone
//     else                             segment without checks
//
// Segments nest where the accesses of two translations alternate. A translation
// with followers after the segment has an entry if the hot copy ran, and none
// if the other one did.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_SEGMENTS_H
#define SPILLWAY_COMPILER_SEGMENTS_H

#include "analysis/Accesses.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/IR/Instructions.h"

namespace spillway {

/// What is left to do once the blocks are laid out, in the order of the vector.
struct Step {
  enum KindType {
    Rewrite, // rewrite the site S
    Decide,  // make Branch depend on whether the window of S's first access
             // crosses an edge; true leads to the copy that shares nothing
    Join,    // after a segment: Entry takes Shared's entry as its first
             // incoming value, and is Shared's entry from here on
  } Kind;
  Site S;
  llvm::BranchInst *Branch = nullptr;
  Translation *Shared = nullptr;
  llvm::PHINode *Entry = nullptr;
};

/// Lays out the blocks, with segments if Duplicates. Sites: ordered as for
/// shareTranslations, with slots.
llvm::SmallVector<Step, 0> arrangeSteps(llvm::MutableArrayRef<Site> Sites,
                                        bool Duplicates);

} // namespace spillway

#endif
