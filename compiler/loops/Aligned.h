//===- Aligned.h - Loops that exist for aligned data, too -------*- C++ -*-===//
//
// An access can lie across a page's edge only if its address is no multiple of
// its size. In most loops all addresses are multiples if a few pointers from
// outside the loop are. Those are checked once, before the loop:
//
//     preheader ──all are multiples──► loop, whose accesses are marked
//         └────────────────────────► copy, which checks each access
//
// What types claim is not relied on: nothing keeps programs from storing a
// number of eight bytes at an odd address.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_ALIGNED_H
#define SPILLWAY_COMPILER_ALIGNED_H

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/PassManager.h"

namespace spillway {

/// Copies the loops of F in which that saves checks. The copies of instructions
/// in InPage (Accesses.h) are added to it. Returns whether F has changed;
/// analyses of F are stale then.
bool copyForAlignment(llvm::Function &F, llvm::FunctionAnalysisManager &FAM,
                      llvm::SmallPtrSetImpl<llvm::Instruction *> &InPage);

} // namespace spillway

#endif
