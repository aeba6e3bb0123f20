//===- Bodies.h - Two bodies for a function ---------------------*- C++ -*-===//
//
// While nothing has been evicted, spilled memory is mapped at its own addresses
// and plain code can access it. So a function may have a second body: the code
// as it was. Which one runs says the byte at abi::NativeBodies, which becomes 0
// once and stays so:
//
//     entry ──not 0──► native body
//       │ 0              │ at the head of each loop that may run long:
//       ▼                │   0
//     instrumented ◄─────┴──────► way: what is alive there ─► the same head
//
//   1  What comes after InstrumentPass's steps sees one body, the instrumented
//      one: the other is in a function of its own meanwhile. It is a copy; what
//      is known of the function's instructions is known of the instrumented
//      body's.
//   2  Meanwhile the ways in from native loops exist already, as successors of
//      the entry, with stand-ins for the values that they will bring: what
//      dominates what is as it will be.
//   3  No translation is alive on a way: it comes from where there are none.
//   4  Native code that is not at a loop's head when the byte becomes 0 remains
//      right (abi.inc).
//
// Static allocas are those of both bodies.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_BODIES_H
#define SPILLWAY_COMPILER_BODIES_H

#include "Abi.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/PassManager.h"
#include "llvm/IR/ValueHandle.h"
#include "llvm/Transforms/Utils/ValueMapper.h"

namespace spillway {

class NativeBody {
public:
  /// Whether F is to have two bodies: it accesses memory that may be spilled,
  /// and its code may exist twice.
  static bool isWanted(llvm::Function &F);

  /// Takes the native body out of F, whose static allocas are gathered.
  /// REQUIRES: isWanted(F). Analyses of F are stale afterwards.
  NativeBody(llvm::Function &F, Abi &Runtime,
             llvm::FunctionAnalysisManager &FAM);

  /// Puts it back, when the other one is instrumented.
  void putBack();

private:
  /// From the head of a native loop into the instrumented body.
  struct Way {
    llvm::BasicBlock *Head;
    llvm::BasicBlock *Block; // in the instrumented body
    llvm::BasicBlock *Leave; // in the native one, its part of the way
    /// Of what is alive at the head. What nothing uses may be gone.
    llvm::SmallVector<llvm::WeakVH, 8> StandIns;
    /// The native body's values in their stead, in Leave's carrier from
    /// leaveAtHead on.
    llvm::SmallVector<llvm::Value *, 8> Values;
  };

  void findWays(llvm::FunctionAnalysisManager &FAM);
  void copyBlocks();
  void openWays();
  llvm::Instruction *standIn(Way &W, llvm::Instruction &For);
  void bring(llvm::Instruction &I, llvm::ArrayRef<unsigned> LiveAt);
  llvm::Value *isOver(llvm::IRBuilderBase &B);
  void leaveAtHead(Way &W);
  void lookLessOften(llvm::FunctionAnalysisManager &FAM);
  void connect(const Way &W);
  void moveOutOfEntry();

  llvm::Function &F;
  Abi &Runtime;
  llvm::Function *Native; // a function of its own meanwhile
  llvm::ValueToValueMapTy Copies;
  llvm::SmallVector<Way, 4> Ways;
  llvm::SwitchInst *Choice;
  llvm::AllocaInst *Plain; // what stand-ins of plain pointers point to
};

} // namespace spillway

#endif
