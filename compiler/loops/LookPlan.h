//===- LookPlan.h - Which loops look ahead, and to what ---------*- C++ -*-===//
#ifndef SPILLWAY_COMPILER_LOOKPLAN_H
#define SPILLWAY_COMPILER_LOOKPLAN_H

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/PassManager.h"

namespace llvm {
class BranchInst;
class LoadInst;
class Loop;
class PHINode;
} // namespace llvm

namespace spillway {

/// A branch of the loop that goes this way in each iteration that reaches a
/// target.
struct LookGuard {
  llvm::BranchInst *Branch = nullptr;
  unsigned Way = 0;                             // the successor
  llvm::SmallVector<llvm::LoadInst *, 4> Loads; // that its condition needs

  bool operator==(const LookGuard &Other) const {
    return Branch == Other.Branch && Way == Other.Way;
  }
};

/// Where an iteration accesses memory.
struct LookTarget {
  llvm::Value *Pointer = nullptr;               // or a vector of them
  llvm::SmallPtrSet<llvm::LoadInst *, 4> Loads; // that the address needs
  /// In the order in which an iteration meets them. Without those that cannot
  /// be computed ahead.
  llvm::SmallVector<LookGuard, 2> Guards;
};

/// What a loop looks ahead to (Prefetch.h), and how that is computed.
struct LookPlan {
  llvm::Loop *L = nullptr;
  llvm::Value *TripCount = nullptr; // 64 bits, in the preheader; null: unknown
  bool IsQuiet = true;              // it calls nothing that could leave it
  bool StoresNothing = true; // so that loads ahead yield what later ones would
  bool IsRow = false;        // LoopSplit.h
  /// An inner loop looks ahead, too: then this one looks to where that begins.
  bool LooksInside = false;
  llvm::Value *Position = nullptr; // a pointer or an integer, in L's terms
  int64_t Step = 0;                // of Position
  llvm::SmallVector<LookTarget, 0> Targets;
  llvm::SmallPtrSet<llvm::LoadInst *, 8> Sure, AnyTime, Sequential;
  /// Phis of the header that are assumed to stay the same.
  llvm::SmallPtrSet<llvm::Instruction *, 2> Reloaded;
  uint64_t Traits = 0; // bits of abi.inc
  /// By how much the loop's counters advance in each iteration: a value of 64
  /// bits, or of the phi's type.
  llvm::DenseMap<llvm::PHINode *, llvm::Value *> Steps;
  /// The initial values of phis of inner loops.
  llvm::DenseMap<llvm::PHINode *, llvm::Value *> Begins;
};

/// Finds the loops of F for which it may pay to look ahead, and prepares them:
/// they have preheaders, in which their trip counts are computed.
llvm::SmallVector<LookPlan, 0> planLooks(llvm::Function &F,
                                         llvm::FunctionAnalysisManager &FAM);

} // namespace spillway

#endif
