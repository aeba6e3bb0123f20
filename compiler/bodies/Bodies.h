//===- Bodies.h - Two bodies for a function ---------------------*- C++ -*-===//
//
// While nothing has been evicted, spilled memory is mapped at its own
// addresses, where code that does not translate can access it. So a function
// may have two bodies: F itself is the original code, and F.spill, a local
// function, is instrumented. The byte at abi::NativeBodies, which becomes 0
// once and remains 0, says which one runs:
//
//     F ──not 0──► native body
//     │ 0             │ at the head of each loop that may run long:
//     ▼               │   0
//     F.spill ◄───────┴────► way: what is live there ─► the same head in F.spill
//
// A way leads from the head of a native loop into the instrumented body. The
// values that are live at the head are its cargo.
//
//   1  F.spill has all its ways before it is instrumented: a way begins in its
//      entry and ends at the head, with values that are loaded from the cargo.
//      So the passes see correct dominance, and no translation is live on a
//      way.
//   2  The cargo lies in the frame of F, which calls F.spill and returns its
//      result. A stack variable that is live on the way stays in F's frame, and
//      its address is cargo.
//   3  Native code that is not at a loop's head when the byte becomes 0 goes
//      on, and remains correct by the fault path (abi.inc).
//   4  An instrumented body calls the F.spill of others, which is always
//      correct. A native body checks the byte when it begins, unless only
//      native bodies call it. Of native bodies that call each other in a cycle,
//      one checks.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_BODIES_H
#define SPILLWAY_COMPILER_BODIES_H

#include "Abi.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/PassManager.h"

namespace spillway {

struct Bodies {
  llvm::Function *Native;
  /// Has one more parameter than Native, for the cargo, if there are ways.
  llvm::Function *Spill;
};

/// Gives F a second body and returns it, to be instrumented. Null if F keeps a
/// single body: it accesses nothing that may be spilled, or its code must not
/// exist twice. REQUIRES: F's static allocas are gathered (Functions.h).
/// Analyses of F are stale afterwards.
llvm::Function *addSpillBody(llvm::Function &F, Abi &Runtime,
                             llvm::FunctionAnalysisManager &FAM);

/// To be called when all bodies of a module are instrumented: makes native ones
/// check the byte when they begin, and instrumented ones call each other.
void connectBodies(llvm::ArrayRef<Bodies> All, Abi &Runtime);

/// Makes the block From of B.Native call B.Spill and return its result.
/// Cargo: null if there is none.
void goOver(llvm::BasicBlock *From, const Bodies &B,
            llvm::ArrayRef<llvm::Value *> Arguments, llvm::Value *Cargo);

/// Emits the test whether only instrumented bodies may run from now on.
llvm::Value *isOver(llvm::IRBuilderBase &B, const Abi &Runtime);

} // namespace spillway

#endif
