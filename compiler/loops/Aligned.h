//===- Aligned.h - Loops that exist for aligned data, too -------*- C++ -*-===//
//
// An access may lie across a page's edge only if its address is no multiple of
// its size. In most loops every address is, if a few pointers are that come
// from outside of the loop: those are asked once, before it.
//
//     preheader ──all are multiples──► loop, whose accesses are marked
//         └────────────────────────► copy, which asks for each access
//
// The claims of types are not believed: nothing keeps programs from storing a
// number of eight bytes at an odd address.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_ALIGNED_H
#define SPILLWAY_COMPILER_ALIGNED_H

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/PassManager.h"

namespace spillway {

/// Copies the loops of F for which that spares questions. The copies of
/// instructions in InPage (Accesses.h) are added to it. Analyses of the function
/// are stale afterwards if it returns true.
bool copyForAlignment(llvm::Function &F, llvm::FunctionAnalysisManager &FAM,
                      llvm::SmallPtrSetImpl<llvm::Instruction *> &InPage);

/// True if the address of I is a multiple of the alignment that I claims,
/// wherever it executes.
bool isKnownAligned(const llvm::Instruction &I);

} // namespace spillway

#endif
