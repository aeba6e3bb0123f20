//===- Kills.cpp - Where translations end ---------------------------------===//
#include "analysis/Kills.h"
#include "analysis/Accesses.h"

#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace spillway {

bool endsTranslations(const Instruction &I) {
  auto *Call = dyn_cast<CallBase>(&I);
  if (!Call)
    return false;
  // Assembly that only computes, such as the check for a page's edge.
  if (Call->isInlineAsm() && Call->doesNotAccessMemory())
    return false;
  auto *II = dyn_cast<IntrinsicInst>(Call);
  if (!II)
    return !Call->hasFnAttr(KeepsTranslations);
  // What is not expanded in line is a call of the C library's function, or of one
  // of the program's own with its name.
  if (isa<MemIntrinsic>(II))
    return !isa<MemCpyInlineInst>(II) && !isa<MemSetInlineInst>(II);
  switch (II->getIntrinsicID()) {
  case Intrinsic::masked_gather:
  case Intrinsic::masked_load:
  case Intrinsic::masked_scatter:
  case Intrinsic::masked_store:
  case Intrinsic::prefetch:
  case Intrinsic::stackrestore:
  case Intrinsic::stacksave:
    return false;
  default:
    return !II->doesNotAccessMemory() && !II->onlyAccessesArgMemory() &&
           !II->onlyAccessesInaccessibleMemory();
  }
}

bool awaitsOthers(const Instruction &I) {
  auto *Load = dyn_cast<LoadInst>(&I);
  return Load && (Load->isAtomic() || Load->isVolatile());
}

} // namespace spillway
