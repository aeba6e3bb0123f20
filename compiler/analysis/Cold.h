//===- Cold.h - Code that runs rarely ---------------------------*- C++ -*-===//
//
// Of the code of a program most runs rarely. There an access is a call of a
// stub, a third as long as a translation in line, and loops stay as they are.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_COLD_H
#define SPILLWAY_COMPILER_COLD_H

#include "llvm/IR/PassManager.h"

namespace llvm {
class BlockFrequencyInfo;
class LoopInfo;
} // namespace llvm

namespace spillway {

/// What is known of F as it is now: valid until its blocks change.
class ColdCode {
public:
  ColdCode(llvm::Function &F, llvm::FunctionAnalysisManager &FAM);

  /// Runs at most once in options::Cold calls of the function or iterations of
  /// its loop. Without a profile that is what the program says itself: what is
  /// not expected, what does not return. To guess is no use: a switch of an
  /// interpreter has hundreds of cases that each run all the time.
  bool contains(const llvm::BasicBlock &BB) const;

private:
  llvm::LoopInfo *Loops = nullptr;
  llvm::BlockFrequencyInfo *Frequencies = nullptr; // null: all or nothing is
  bool All = false;
};

} // namespace spillway

#endif
