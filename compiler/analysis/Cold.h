//===- Cold.h - Code that runs rarely ---------------------------*- C++ -*-===//
//
// Most code of a program runs rarely. An access there is a call of a stub,
// which takes a third of the bytes of a translation in line, and loops are left
// as they are.
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

/// What is known about a function's blocks; valid until they change.
class ColdCode {
public:
  ColdCode(llvm::Function &F, llvm::FunctionAnalysisManager &FAM);

  /// True if BB runs at most once in options::Cold calls of the function, or
  /// iterations of its loop. Without a profile only the program's own
  /// statements count: what it marks as unlikely, and what does not return.
  /// Guesses would do harm: each of the hundred cases of an interpreter's
  /// switch would seem cold, but runs all the time.
  bool contains(const llvm::BasicBlock &BB) const;

private:
  llvm::LoopInfo *Loops = nullptr;
  llvm::BlockFrequencyInfo *Frequencies = nullptr; // null: All decides
  bool All = false; // whether all blocks are cold, or none
};

} // namespace spillway

#endif
