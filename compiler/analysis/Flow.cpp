//===- Flow.cpp - Paths between instructions without a call ---------------===//
#include "analysis/Flow.h"
#include "analysis/Kills.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Function.h"

using namespace llvm;

namespace spillway {

// Bounds the walk; farther apart, values would be spilled to the stack anyway.
static constexpr unsigned MaxBlocks = 100;

Flow::Flow(Function &F) {
  for (BasicBlock &BB : F)
    for (Instruction &I : BB)
      if (endsTranslations(I))
        Calls[&BB].push_back(&I);
}

bool Flow::hasCallBetween(Instruction *From, Instruction *To) const {
  auto Found = Calls.find(From->getParent());
  if (Found == Calls.end())
    return false;
  auto Next = partition_point(Found->second, [&](Instruction *Call) {
    return !From->comesBefore(Call);
  });
  return Next != Found->second.end() && (*Next)->comesBefore(To);
}

bool Flow::hasCallBefore(Instruction *To) const {
  auto Found = Calls.find(To->getParent());
  return Found != Calls.end() && Found->second.front()->comesBefore(To);
}

bool Flow::hasCallAfter(Instruction *From) const {
  auto Found = Calls.find(From->getParent());
  return Found != Calls.end() && From->comesBefore(Found->second.back());
}

bool Flow::reachesFreely(Instruction *From, Instruction *To) const {
  BasicBlock *Start = From->getParent(), *End = To->getParent();
  if (Start == End && (From == To || From->comesBefore(To)))
    return !hasCallBetween(From, To);
  if (hasCallBefore(To) || hasCallAfter(From))
    return false;
  SmallPtrSet<BasicBlock *, 16> Seen;
  SmallVector<BasicBlock *, 16> Work(1, End);
  while (!Work.empty()) {
    for (BasicBlock *Pred : predecessors(Work.pop_back_val())) {
      if (Pred == Start || !Seen.insert(Pred).second)
        continue;
      if (hasCall(Pred) || Seen.size() > MaxBlocks)
        return false;
      Work.push_back(Pred);
    }
  }
  return true;
}

void Flow::collectLiveIn(Instruction *From, Instruction *To,
                         SmallVectorImpl<BasicBlock *> &LiveIn) {
  BasicBlock *Start = From->getParent(), *End = To->getParent();
  if (Start == End && (From == To || From->comesBefore(To)))
    return;
  SmallPtrSet<BasicBlock *, 16> Seen;
  SmallVector<BasicBlock *, 16> Work(1, End);
  Seen.insert(End);
  while (!Work.empty()) {
    BasicBlock *BB = Work.pop_back_val();
    LiveIn.push_back(BB);
    for (BasicBlock *Pred : predecessors(BB))
      if (Pred != Start && Seen.insert(Pred).second)
        Work.push_back(Pred);
  }
}

} // namespace spillway
