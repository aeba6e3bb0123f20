//===- Cold.cpp - Code that runs rarely -----------------------------------===//
#include "analysis/Cold.h"
#include "Options.h"

#include "llvm/Analysis/BlockFrequencyInfo.h"
#include "llvm/Analysis/LoopInfo.h"

using namespace llvm;

namespace spillway {

ColdCode::ColdCode(Function &F, FunctionAnalysisManager &FAM) {
  if (F.hasOptNone() || options::Cold == 0)
    return;
  All = F.hasMinSize() || F.hasFnAttribute(Attribute::Cold);
  if (All)
    return;
  Loops = &FAM.getResult<LoopAnalysis>(F);
  Frequencies = &FAM.getResult<BlockFrequencyAnalysis>(F);
}

bool ColdCode::contains(const BasicBlock &BB) const {
  if (!Frequencies)
    return All;
  auto IsRareBeside = [&](BlockFrequency Other) {
    return Frequencies->getBlockFreq(&BB).getFrequency() <=
           Other.getFrequency() / options::Cold;
  };
  const Loop *L = Loops->getLoopFor(&BB);
  return IsRareBeside(Frequencies->getEntryFreq()) ||
         (L && IsRareBeside(Frequencies->getBlockFreq(L->getHeader())));
}

} // namespace spillway
