//===- LookPlan.h - Which loops look ahead, and to what ---------*- C++ -*-===//
#ifndef SPILLWAY_COMPILER_LOOKPLAN_H
#define SPILLWAY_COMPILER_LOOKPLAN_H

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/PassManager.h"

namespace llvm {
class LoadInst;
class Loop;
class PHINode;
} // namespace llvm

namespace spillway {

/// What a loop looks ahead to (Prefetch.h), and how that is computed.
struct LookPlan {
  llvm::Loop *L = nullptr;
  llvm::Value *TripCount = nullptr; // 64 bits, in the preheader; null: unknown
  bool IsQuiet = true;              // it calls nothing that could end it
  bool StoresNothing = true; // so that what it loads now it would load then
  bool IsRow = false;        // Loops.h
  /// A loop inside looks ahead, too: this one, to where that begins.
  bool LooksInside = false;
  llvm::Value *Position = nullptr; // a pointer or an integer, in L's terms
  int64_t Step = 0;                // of that
  llvm::SmallVector<llvm::Value *, 8> Targets; // pointers, or vectors
  llvm::SmallPtrSet<llvm::LoadInst *, 8> Sure, AnyTime, Sequential;
  /// Phis of the header that are taken for what stays the same.
  llvm::SmallPtrSet<llvm::Instruction *, 2> Reloaded;
  uint64_t Traits = 0; // bits of abi.inc
  /// What counters of the loop advance by in each iteration: of 64 bits, or of
  /// the phi's type.
  llvm::DenseMap<llvm::PHINode *, llvm::Value *> Steps;
  /// What phis of loops inside begin with.
  llvm::DenseMap<llvm::PHINode *, llvm::Value *> Begins;
};

/// Finds the loops of F for which it may pay to look ahead, and prepares them:
/// they have preheaders, in which their trip counts are computed.
llvm::SmallVector<LookPlan, 0> planLooks(llvm::Function &F,
                                         llvm::FunctionAnalysisManager &FAM);

} // namespace spillway

#endif
