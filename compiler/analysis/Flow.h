//===- Flow.h - Paths between instructions without a call -------*- C++ -*-===//
//
// "Call" here means whatever ends translations (Kills.h).
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_FLOW_H
#define SPILLWAY_COMPILER_FLOW_H

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/BasicBlock.h"

namespace spillway {

/// The calls of a function, by block; valid until its code changes.
class Flow {
public:
  explicit Flow(llvm::Function &F);

  /// True if no path from From to To has a call between them. Very long paths
  /// count as if they had one. REQUIRES: From dominates To.
  bool reachesFreely(llvm::Instruction *From, llvm::Instruction *To) const;

  /// Adds to LiveIn the blocks at whose beginning the result of From is live
  /// for the use in To. REQUIRES: reachesFreely(From, To).
  static void collectLiveIn(llvm::Instruction *From, llvm::Instruction *To,
                            llvm::SmallVectorImpl<llvm::BasicBlock *> &LiveIn);

private:
  bool hasCall(const llvm::BasicBlock *BB) const { return Calls.contains(BB); }
  bool hasCallBetween(llvm::Instruction *From, llvm::Instruction *To) const;
  bool hasCallBefore(llvm::Instruction *To) const;
  bool hasCallAfter(llvm::Instruction *From) const;

  // In the order of each block.
  llvm::DenseMap<const llvm::BasicBlock *,
                 llvm::SmallVector<llvm::Instruction *, 4>>
      Calls;
};

} // namespace spillway

#endif
