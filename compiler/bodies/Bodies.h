//===- Bodies.h - Two bodies for a function ---------------------*- C++ -*-===//
//
// While nothing has been evicted, spilled memory is mapped at its own addresses
// and plain code can access it. So a function may have a second body. F itself
// is the code as it was, and F.spill, a local function, is instrumented. Which
// one runs says the byte at abi::NativeBodies, which becomes 0 once and stays
// so:
//
//     F ──not 0──► native body
//     │ 0             │ at the head of each loop that may run long:
//     ▼               │   0
//     F.spill ◄───────┴────► way: what is alive there ─► the same head in F.spill
//
//   1  F.spill is whole before it is instrumented: a way begins in its entry
//      and ends at the head, with values that are loaded from the cargo. So who
//      dominates whom is known, and no translation is alive on a way.
//   2  The cargo lies in the frame of F, which calls F.spill and returns what
//      it returns. A variable of the stack that is alive on the way stays
//      there, and its address is cargo.
//   3  Native code that is not at a loop's head when the byte becomes 0 remains
//      right (abi.inc).
//   4  An instrumented body calls others by their F.spill, which is always
//      right. A native one looks at the byte when it begins, unless only native
//      bodies call it; of those that call each other in a circle one looks.
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
  /// With one more parameter than Native, for the cargo, if there are ways.
  llvm::Function *Spill;
};

/// Gives F, whose static allocas are gathered, two bodies, of which the other
/// one is to be instrumented. Null if F is to have one: it accesses nothing
/// that may be spilled, or its code may not exist twice. Analyses of F are stale
/// afterwards.
llvm::Function *addSpillBody(llvm::Function &F, Abi &Runtime,
                             llvm::FunctionAnalysisManager &FAM);

/// Lets all bodies of a module begin as they are to, and call each other, when
/// they are instrumented.
void connectBodies(llvm::ArrayRef<Bodies> All, Abi &Runtime);

/// In a block of Native: calls Spill, and returns what it returns. Cargo: null
/// if there is none.
void goOver(llvm::BasicBlock *From, const Bodies &B,
            llvm::ArrayRef<llvm::Value *> Arguments, llvm::Value *Cargo);

/// Whether only instrumented bodies may run.
llvm::Value *isOver(llvm::IRBuilderBase &B, const Abi &Runtime);

} // namespace spillway

#endif
