//===- Ways.h - From native loops into the instrumented body ----*- C++ -*-===//
//
// Where native code of F may switch to F.spill (Bodies.h), and what is live
// there.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_WAYS_H
#define SPILLWAY_COMPILER_WAYS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/BasicBlock.h"
#include "llvm/IR/PassManager.h"

namespace spillway {

/// From the head of a native loop into the instrumented body.
struct Way {
  llvm::BasicBlock *Head;
  llvm::SmallBitVector Arguments;       // of F, live there; passed as usual
  llvm::SetVector<llvm::Value *> Cargo; // what else is live there
  /// Pointers that are live there at a constant distance from any of these,
  /// and need not be brought along.
  llvm::SmallVector<llvm::Instruction *, 8> Derived;
  llvm::BasicBlock *Leave = nullptr; // the native block in which it begins
};

/// The ways of F, still without what is live there.
llvm::SmallVector<Way, 4> findWays(llvm::Function &F,
                                   llvm::FunctionAnalysisManager &FAM);

/// Merges F's small variables into one, so that ways bring one address.
void gatherVariables(llvm::Function &F);

/// Records what is live at the heads of F's ways.
void findCargo(llvm::Function &F, llvm::MutableArrayRef<Way> Ways);

} // namespace spillway

#endif
