//===- Segments.h - Straight code that asks once ----------------*- C++ -*-===//
//
// Accesses of one block that share a translation would each ask whether its
// window crosses a page's edge. Instead the code from the first of them to the
// last becomes a segment that exists twice, and the first decides:
//
//     if (the window crosses an edge)  segment, translating each access alone
//     else                             segment, in which nobody asks
//
// Segments nest where the accesses of two translations alternate. What the hot
// copy translates for code behind the segment, the other one gives no entry.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_SEGMENTS_H
#define SPILLWAY_COMPILER_SEGMENTS_H

#include "analysis/Accesses.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/IR/Instructions.h"

namespace spillway {

/// What is to be done in order of the vector, once the blocks are laid out.
struct Step {
  enum KindType {
    Rewrite, // the site S
    Decide,  // condition of Branch: the first access of S crosses; true is cold
    Join,    // Entry's first incoming value becomes Shared's entry, Entry its
             // entry from here on
  } Kind;
  Site S;
  llvm::BranchInst *Branch = nullptr;
  Translation *Shared = nullptr;
  llvm::PHINode *Entry = nullptr;
};

/// Duplicates segments, if that is wanted. Sites: ordered as for
/// shareTranslations, with slots.
llvm::SmallVector<Step, 0> arrangeSteps(llvm::MutableArrayRef<Site> Sites,
                                        bool Duplicates);

} // namespace spillway

#endif
